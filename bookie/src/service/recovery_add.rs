//! Recovery and repair adds in small numbers; many go over the data stream.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tidemill_proto::bookie::Code;
use tidemill_storage::{AckSink, AddKind, AddOutcome, AddRequest};
use tidemill_types::EntryHeader;
use tokio::sync::oneshot;

use crate::{
    codes,
    shared::{Core, Serving},
};

/// Gathers the answers of one call.
struct Gather {
    state: Mutex<State>,
}

struct State {
    codes: Vec<Code>,
    left: usize,
    done: Option<oneshot::Sender<Vec<Code>>>,
}

impl AckSink for Gather {
    fn acked(&self, acks: Vec<(u64, AddOutcome)>) {
        let mut state = self.state.lock();
        for (request, outcome) in acks {
            let slot = usize::try_from(request).ok().and_then(|i| state.codes.get_mut(i));
            if let Some(slot) = slot {
                *slot = codes::add(&outcome).0;
            }
            state.left = state.left.saturating_sub(1);
        }
        if state.left == 0
            && let Some(done) = state.done.take()
        {
            let _gone = done.send(std::mem::take(&mut state.codes));
        }
    }
}

/// Adds all of them; one code per entry, same order.
pub(crate) async fn run(core: &Core, serving: &Serving, entries: Vec<Bytes>) -> Vec<Code> {
    let n = entries.len();
    if n == 0 {
        return Vec::new();
    }
    core.counters.adds.inc_by(n as u64);
    core.counters.add_bytes.inc_by(entries.iter().map(|e| e.len() as u64).sum());
    let mut ledgers: Vec<_> =
        entries.iter().filter_map(|e| EntryHeader::parse(e).ok()).map(|h| h.ledger).collect();
    ledgers.dedup();
    let (tx, rx) = oneshot::channel();
    // An answer that never comes belongs to an engine that stopped: unknown.
    let state = State { codes: vec![Code::Unknown; n], left: n, done: Some(tx) };
    let sink: Arc<dyn AckSink> = Arc::new(Gather { state: Mutex::new(state) });
    let adds = entries
        .into_iter()
        .zip(0u64..)
        .map(|(entry, request)| AddRequest { request, entry, kind: AddKind::Recovery })
        .collect();
    serving.engine.add_batch(adds, &sink);
    drop(sink);
    let codes = rx.await.unwrap_or_else(|_| vec![Code::Unknown; n]);
    serving.lacs.wake(&ledgers);
    codes
}
