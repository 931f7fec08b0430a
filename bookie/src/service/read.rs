//! Reads: the disk is waited for on threads that may block, answers in flight are bounded per connection.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::Stream;
use tidemill_proto::{
    bookie::{Code, ReadRequest, ReadResponse, ReadResult},
    convert,
};
use tidemill_storage::{Engine, ReadMode, ReadOutcome};
use tidemill_types::{EntryId, ErrorCode, LedgerId};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tonic::Status;

use super::fence;
use crate::{
    codes,
    connection::Budgets,
    shared::{Core, Serving},
};

/// Most entries of a call.
const MAX_ENTRIES: i64 = 100_000;
/// Ceiling and default of a call's bytes.
const MAX_BYTES: u32 = 64 << 20;
const DEFAULT_BYTES: u32 = 4 << 20;
/// A message is filled up to so many bytes or results.
const MESSAGE_BYTES: usize = 1 << 20;
const MESSAGE_RESULTS: usize = 4_096;

/// A message and its share of the connection's budget.
type Answer = (ReadResponse, Option<OwnedSemaphorePermit>);

/// The answers of one call. A message counts as in flight until the transport asks for the next one.
pub(super) struct Answers {
    rx: mpsc::Receiver<Answer>,
    in_flight: Option<OwnedSemaphorePermit>,
}

impl Stream for Answers {
    type Item = Result<ReadResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.in_flight = None;
        match self.rx.poll_recv(cx) {
            Poll::Ready(Some((message, permit))) => {
                self.in_flight = permit;
                Poll::Ready(Some(Ok(message)))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Checks a request and starts to answer it.
pub(super) fn start(core: &Arc<Core>, budgets: Budgets, request: &ReadRequest) -> Result<Answers, Status> {
    let (tx, rx) = mpsc::channel(1);
    let plan = match core.gate(request.identity.as_ref()) {
        Err(code) => Err(code),
        Ok(serving) => plan(request).ok_or(Code::Invalid).map(|p| (serving, p)),
    };
    match plan {
        Err(code) => {
            let result = ReadResult { entry: request.first, code: code.into(), bytes: bytes::Bytes::new() };
            let message = ReadResponse { results: vec![result] };
            tx.try_send((message, None)).map_err(|_| {
                convert::status(ErrorCode::Internal, "a fresh queue is full", convert::Details::default())
            })?;
        }
        Ok((serving, plan)) => {
            let core = core.clone();
            core.sup.clone().spawn_until_stop("read", async move {
                run(&core, serving, plan, budgets, &tx).await;
            });
        }
    }
    Ok(Answers { rx, in_flight: None })
}

/// What is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    ledger: LedgerId,
    first: i64,
    last: i64,
    max_bytes: usize,
    mode: ReadMode,
    fence: bool,
}

/// `None`: a field outside what is allowed.
fn plan(r: &ReadRequest) -> Option<Plan> {
    let ordered = 0 <= r.first && r.first <= r.last;
    if !ordered || r.last - r.first >= MAX_ENTRIES || r.max_bytes > MAX_BYTES {
        return None;
    }
    Some(Plan {
        ledger: LedgerId(r.ledger),
        first: r.first,
        last: r.last,
        max_bytes: if r.max_bytes == 0 { DEFAULT_BYTES } else { r.max_bytes } as usize,
        mode: if r.header_only { ReadMode::Head } else { ReadMode::Full },
        fence: r.fence,
    })
}

async fn run(core: &Core, serving: Arc<Serving>, plan: Plan, budgets: Budgets, tx: &mpsc::Sender<Answer>) {
    if plan.fence {
        // R25: only after the fence and all adds accepted before are durable and indexed may a "no" be said. In limbo the
        // fence stands although its answer is unknown: what is there is still told, and nothing missing is denied.
        let fenced = fence::one(core, &serving, plan.ledger).await;
        if fenced.0 != Code::Ok && !serving.engine.limbo() {
            let results = (plan.first..=plan.last).map(|entry| ReadResult {
                entry,
                code: Code::Unknown.into(),
                bytes: bytes::Bytes::new(),
            });
            for part in results.collect::<Vec<_>>().chunks(MESSAGE_RESULTS) {
                if tx.send((ReadResponse { results: part.to_vec() }, None)).await.is_err() {
                    return;
                }
            }
            return;
        }
    }
    let mut next = plan.first;
    let mut left = plan.max_bytes;
    let mut first_message = true;
    while next <= plan.last && (left > 0 || first_message) {
        let want = left.min(MESSAGE_BYTES);
        // Room for what is expected; a larger entry is accounted for below.
        let Some(room) = budgets.read(want).await else { return };
        let mut outcomes = cached(&serving.engine, plan, next, want);
        if outcomes.is_empty() {
            let engine = serving.engine.clone();
            match tidemill_runtime::work::blocking(move || fill(&engine, plan, next, want)).await {
                Ok(filled) => outcomes = filled,
                Err(_) => return,
            }
        }
        let bytes: usize = outcomes.iter().map(|(_, o)| len(o)).sum();
        let permit = if bytes > want {
            // Given back first: two that wait for more while they hold some would wait for ever.
            drop(room);
            budgets.read(bytes).await
        } else {
            Some(room)
        };
        let Some(&(last, ref last_outcome)) = outcomes.last() else { return };
        let ended = !plan.fence && !matches!(last_outcome, ReadOutcome::Entry(_));
        core.counters.reads.inc_by(outcomes.len() as u64);
        core.counters.read_bytes.inc_by(bytes as u64);
        let results = outcomes.into_iter().map(result).collect();
        if tx.send((ReadResponse { results }, permit)).await.is_err() || ended {
            return;
        }
        next = last.0 + 1;
        left = left.saturating_sub(bytes.max(1));
        first_message = false;
    }
}

/// Answers that need no disk, such as the newest entries: no other thread is asked for them. Empty: the first one needs it.
fn cached(engine: &Engine, plan: Plan, next: i64, want: usize) -> Vec<(EntryId, ReadOutcome)> {
    let mut out = Vec::new();
    let mut bytes = 0;
    for entry in (next..=plan.last).take(MESSAGE_RESULTS) {
        let Some(outcome) = engine.try_read_cached(plan.ledger, EntryId(entry), plan.mode) else { break };
        // At least one entry goes, however large.
        if !out.is_empty() && bytes + len(&outcome) > want {
            break;
        }
        bytes += len(&outcome);
        let negative = !matches!(outcome, ReadOutcome::Entry(_));
        out.push((EntryId(entry), outcome));
        if negative && !plan.fence {
            break;
        }
    }
    out
}

/// One message's worth of answers from `next` on.
fn fill(engine: &Engine, plan: Plan, next: i64, want: usize) -> Vec<(EntryId, ReadOutcome)> {
    let mut out = Vec::new();
    let mut next = next;
    let mut left = want;
    while next <= plan.last && out.len() < MESSAGE_RESULTS {
        let entries =
            usize::try_from(plan.last - next + 1).unwrap_or(usize::MAX).min(MESSAGE_RESULTS - out.len());
        let got = engine.read_range(plan.ledger, EntryId(next), entries, left.max(1), plan.mode);
        let bytes: usize = got.iter().map(|(_, o)| len(o)).sum();
        let Some(&(last, ref outcome)) = got.last() else { break };
        let negative = !matches!(outcome, ReadOutcome::Entry(_));
        next = last.0 + 1;
        left = left.saturating_sub(bytes);
        out.extend(got);
        if left == 0 || !negative || !plan.fence {
            break;
        }
    }
    out
}

fn len(outcome: &ReadOutcome) -> usize {
    match outcome {
        ReadOutcome::Entry(b) => b.len(),
        _ => 0,
    }
}

fn result((entry, outcome): (EntryId, ReadOutcome)) -> ReadResult {
    let code = codes::read(&outcome).into();
    let bytes = match outcome {
        ReadOutcome::Entry(b) => b,
        _ => bytes::Bytes::new(),
    };
    ReadResult { entry: entry.0, code, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_outside_the_limits_are_refused() {
        let ok = ReadRequest { first: 0, last: 9, ..Default::default() };
        assert_eq!(plan(&ok).unwrap().max_bytes, 4 << 20);
        for (first, last, max_bytes) in
            [(-1, 0, 0), (5, 4, 0), (0, MAX_ENTRIES, 0), (0, i64::MAX, 0), (0, 0, MAX_BYTES + 1)]
        {
            let r = ReadRequest { first, last, max_bytes, ..Default::default() };
            assert!(plan(&r).is_none(), "{first} {last} {max_bytes}");
        }
    }
}
