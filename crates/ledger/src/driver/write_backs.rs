//! Recovery adds of many ledgers to one bookie share calls (1.6 step 5): a take-over of many partitions writes one or two entries back
//! for each of them.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tidemill_types::{BookieId, Entry};
use tokio::sync::oneshot;

use super::shared::Shared;
use crate::core::{AddAnswer, Unknown};

/// Most bytes in a call, unless one element alone is larger.
const MAX_BYTES: usize = 1 << 20;
/// Most entries in a call.
const MAX_ENTRIES: usize = 1_000;
/// How long the first one waits for company.
const GATHER: Duration = Duration::from_millis(1);

/// Entries of one ledger, in order, and who waits for an answer to each.
struct Element {
    entries: Vec<Entry>,
    answers: oneshot::Sender<Vec<AddAnswer>>,
}

impl Element {
    fn bytes(&self) -> usize {
        self.entries.iter().map(|e| e.bytes().len()).sum()
    }
}

/// Recovery adds that wait for their call. What one recovery hands in is bounded by its window, and the number of recoveries by their
/// starter.
#[derive(Default)]
pub(crate) struct WriteBacks {
    waiting: Mutex<HashMap<BookieId, Vec<Element>>>,
}

impl WriteBacks {
    /// Sends the entries, the same bytes (R12), in this order; one answer for each.
    pub(crate) async fn write(shared: &Arc<Shared>, bookie: BookieId, entries: Vec<Entry>) -> Vec<AddAnswer> {
        let n = entries.len();
        let (tx, rx) = oneshot::channel();
        let first = {
            let mut w = shared.write_backs.waiting.lock();
            let list = w.entry(bookie).or_default();
            list.push(Element { entries, answers: tx });
            list.len() == 1
        };
        if first {
            let shared = shared.clone();
            tokio::spawn(async move {
                tokio::time::sleep(GATHER).await;
                let list = shared.write_backs.waiting.lock().remove(&bookie).unwrap_or_default();
                send(&shared, bookie, list).await;
            });
        }
        rx.await.unwrap_or_else(|_| vec![AddAnswer::Unknown(Unknown::Closed); n])
    }
}

/// How many of the elements go into the next call, at least one.
fn fit(list: &[Element]) -> usize {
    let (mut bytes, mut entries) = (0, 0);
    let fitting = list.iter().take_while(|e| {
        bytes += e.bytes();
        entries += e.entries.len();
        bytes <= MAX_BYTES && entries <= MAX_ENTRIES
    });
    fitting.count().max(1).min(list.len())
}

/// Who gets no answer hears so by its dropped sender: unknown.
async fn send(shared: &Shared, bookie: BookieId, mut list: Vec<Element>) {
    let Some(target) = shared.target(bookie) else { return };
    while !list.is_empty() {
        let rest = list.split_off(fit(&list));
        let bytes = list.iter().flat_map(|e| e.entries.iter().map(|e| e.bytes().clone())).collect();
        let call = shared.transport.recovery_add(target.clone(), bytes);
        let answers = tokio::time::timeout(shared.config.add_timeout, call).await;
        let mut answers = answers.map(Vec::into_iter);
        for element in list {
            let each = element.entries.iter().map(|_| match &mut answers {
                Ok(a) => a.next().unwrap_or(AddAnswer::Unknown(Unknown::Refused)),
                Err(_) => AddAnswer::Unknown(Unknown::TimedOut),
            });
            let _gone = element.answers.send(each.collect());
        }
        list = rest;
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tidemill_types::{EntryId, LedgerId};

    use super::*;

    fn element(entries: usize, len: usize) -> Element {
        let encode = |e: usize| {
            let id = EntryId(i64::try_from(e).unwrap());
            Entry::encode(LedgerId(1), id, id.prev(), 0, b"e", &[Bytes::from(vec![0; len])]).unwrap()
        };
        Element { entries: (0..entries).map(encode).collect(), answers: oneshot::channel().0 }
    }

    #[test]
    fn a_call_is_bounded_by_bytes_and_entries_and_takes_at_least_one() {
        assert_eq!(fit(&[element(2, 10), element(1, 10)]), 2);
        assert_eq!(fit(&[element(1, 600_000), element(1, 600_000)]), 1);
        assert_eq!(fit(&[element(1, 2 << 20), element(1, 10)]), 1);
        assert_eq!(fit(&[element(600, 1), element(400, 1), element(1, 1)]), 2);
        assert_eq!(fit(&[]), 0);
    }
}
