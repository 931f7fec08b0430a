//! The add stream: one reader per stream, answers gathered by [`Acks`].

use std::{pin::Pin, sync::Arc};

use futures::Stream;
use tidemill_proto::{
    bookie::{
        AddEntry, AddRequest, AddResponse, AddResult, Code, Identity, ReadRequest, ReadResponse,
        bookie_data_server::BookieData,
    },
    convert,
    direct::Inbound,
};
use tidemill_storage::AddKind;
use tidemill_types::{EntryHeader, ErrorCode, LedgerId};
use tonic::{Request, Response, Status, Streaming};

use super::{read, sink::MessageSink};
use crate::{
    acks::{Acks, acks},
    connection::Budgets,
    shared::Core,
    touch::Waiting,
};

/// The delay that is named when a connection has too much under way, ms.
const CONNECTION_RETRY_MS: u32 = 10;

/// Adds and reads.
#[derive(Clone, Debug)]
pub(crate) struct AddService {
    core: Arc<Core>,
}

impl AddService {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl BookieData for AddService {
    type AddStream = Answers<AddResponse>;
    type ReadStream = Answers<ReadResponse>;

    async fn add(
        &self,
        request: Request<Streaming<AddRequest>>,
    ) -> Result<Response<Self::AddStream>, Status> {
        let budgets = budgets(&request)?;
        let (acks, answers) = acks();
        let reader = Reader { core: self.core.clone(), acks, budgets };
        // Not spawned until stop: what was accepted is still answered (see `Reader::run`).
        let inbound = Inbound::of(request, self.core.config.max_message_bytes());
        self.core.sup.spawn("add stream", reader.run(inbound));
        Ok(Response::new(Box::pin(answers)))
    }

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let budgets = budgets(&request)?;
        let answers = read::start(&self.core, budgets, request.get_ref())?;
        Ok(Response::new(Box::pin(answers)))
    }
}

/// The budgets of the connection that a request came over.
fn budgets<T>(request: &Request<T>) -> Result<Budgets, Status> {
    request.extensions().get::<Budgets>().cloned().ok_or_else(|| {
        convert::status(ErrorCode::Internal, "the connection is not known", convert::Details::default())
    })
}

struct Reader {
    core: Arc<Core>,
    acks: Acks,
    budgets: Budgets,
}

impl Reader {
    async fn run(self, mut inbound: Inbound<AddRequest>) {
        let stop = self.core.sup.token().clone();
        let mut hello = None;
        while self.acks.room().await {
            let message = tokio::select! {
                () = stop.cancelled() => break,
                m = inbound.message() => m,
            };
            match message {
                Ok(Some(m)) => {
                    if let Some(named) = m.hello {
                        if hello.is_none() {
                            self.acks.hello(self.core.identity());
                        }
                        hello = Some(named);
                    }
                    let Some(named) = &hello else {
                        self.acks.fail(convert::status(
                            ErrorCode::InvalidArgument,
                            "the first message of an add stream must carry hello",
                            convert::Details {
                                field: Some(("hello".into(), "required".into())),
                                ..Default::default()
                            },
                        ));
                        return;
                    };
                    self.take(named, m.adds);
                }
                Ok(None) => break,
                Err(status) => {
                    self.acks.fail(status);
                    return;
                }
            }
        }
        self.acks.end();
    }

    /// Hands the adds of one message to the engine. Never waits.
    fn take(&self, hello: &Identity, adds: Vec<AddEntry>) {
        if adds.is_empty() {
            return;
        }
        let counters = &self.core.counters;
        let bytes = adds.iter().map(|a| a.entry.len()).sum::<usize>();
        counters.adds.inc_by(adds.len() as u64);
        counters.add_bytes.inc_by(bytes as u64);
        let serving = match self.core.gate(Some(hello)) {
            Ok(serving) => serving,
            Err(code) => return self.refuse(&adds, code, 0),
        };
        let Some(budget) = self.budgets.try_add(bytes) else {
            counters.overloaded.inc_by(adds.len() as u64);
            return self.refuse(&adds, Code::Overloaded, CONNECTION_RETRY_MS);
        };
        // Bytes that are not an entry have no ledger here; the engine refuses them one by one.
        let mut ledgers: Vec<LedgerId> = adds.iter().filter_map(ledger_of).collect();
        ledgers.sort_unstable();
        ledgers.dedup();
        self.acks.open(adds.len());
        let sink = MessageSink::new(self.acks.clone(), self.core.clone(), serving.clone(), ledgers, budget);
        let sink = sink.shared();
        let ask_always = serving.touches.ask_always();
        let mut direct = Vec::with_capacity(adds.len());
        for add in adds {
            let kind = if add.recovery { AddKind::Recovery } else { AddKind::Normal };
            if ask_always
                && kind == AddKind::Normal
                && let Some(ledger) = ledger_of(&add).filter(|&l| serving.touches.must_ask(l))
            {
                let waiting = Waiting { request: add.request_id, entry: add.entry, sink: sink.clone() };
                serving.touches.ask(ledger, waiting);
                continue;
            }
            direct.push(tidemill_storage::AddRequest { request: add.request_id, entry: add.entry, kind });
        }
        if !direct.is_empty() {
            serving.engine.add_batch(direct, &sink);
        }
    }

    /// Answers all adds of a message alike; nothing was written.
    fn refuse(&self, adds: &[AddEntry], code: Code, retry_after_ms: u32) {
        let result = |a: &AddEntry| AddResult { request_id: a.request_id, code: code.into(), retry_after_ms };
        self.acks.put(adds.iter().map(result).collect());
    }
}

fn ledger_of(add: &AddEntry) -> Option<LedgerId> {
    EntryHeader::parse(&add.entry).ok().map(|h| h.ledger)
}
