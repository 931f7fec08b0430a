//! Where the engine's answers to the adds of one message go.

use std::sync::Arc;

use tidemill_proto::bookie::AddResult;
use tidemill_storage::{AckSink, AddOutcome};
use tidemill_types::LedgerId;

use crate::{
    acks::Acks,
    codes,
    connection::AddPermit,
    shared::{Core, Serving},
    touch::Waiting,
};

/// Shared by all adds of one message. The budget goes back when the last answer is out.
#[derive(Clone)]
pub(crate) struct MessageSink {
    parts: Arc<Parts>,
}

struct Parts {
    acks: Acks,
    core: Arc<Core>,
    serving: Arc<Serving>,
    /// Ledgers of the message, sorted: their LACs may rise with an answer.
    ledgers: Vec<LedgerId>,
    _budget: AddPermit,
}

impl MessageSink {
    pub(crate) fn new(
        acks: Acks,
        core: Arc<Core>,
        serving: Arc<Serving>,
        ledgers: Vec<LedgerId>,
        budget: AddPermit,
    ) -> Self {
        Self { parts: Arc::new(Parts { acks, core, serving, ledgers, _budget: budget }) }
    }

    /// As the engine wants it.
    pub(crate) fn shared(&self) -> Arc<dyn AckSink> {
        Arc::new(self.clone())
    }
}

impl AckSink for MessageSink {
    fn acked(&self, acks: Vec<(u64, AddOutcome)>) {
        let mut results = Vec::with_capacity(acks.len());
        let mut stored = false;
        for (request, outcome) in acks {
            match outcome {
                AddOutcome::FirstTouch { ticket, entry } => {
                    let waiting = Waiting { request, entry, sink: self.shared() };
                    self.parts.serving.touches.ask(ticket.ledger, waiting);
                }
                outcome => {
                    stored |= outcome == AddOutcome::Ok;
                    let (code, retry_after_ms) = codes::add(&outcome);
                    if retry_after_ms > 0 {
                        self.parts.core.counters.overloaded.inc();
                    }
                    results.push(AddResult { request_id: request, code: code.into(), retry_after_ms });
                }
            }
        }
        if stored {
            self.parts.serving.lacs.wake(&self.parts.ledgers);
        }
        self.parts.acks.put_opened(results);
    }
}
