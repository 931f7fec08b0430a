//! `FenceMany`: fences of many ledgers to one bookie share calls.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tidemill_types::{BookieId, LedgerId};
use tokio::sync::oneshot;

use super::shared::Shared;
use crate::core::{FenceAnswer, Unknown};

/// Most ledgers in a call.
const MAX_CALL: usize = 1_000;
/// How long the first one waits for company.
const GATHER: Duration = Duration::from_millis(1);

type Waiting = Vec<(LedgerId, oneshot::Sender<FenceAnswer>)>;

/// Fences that wait for their call.
#[derive(Default)]
pub(crate) struct Fences {
    waiting: Mutex<HashMap<BookieId, Waiting>>,
}

impl Fences {
    /// Fences one ledger at one bookie.
    pub(crate) async fn fence(shared: &Arc<Shared>, bookie: BookieId, ledger: LedgerId) -> FenceAnswer {
        let (tx, rx) = oneshot::channel();
        let first = {
            let mut w = shared.fences.waiting.lock();
            let list = w.entry(bookie).or_default();
            list.push((ledger, tx));
            list.len() == 1
        };
        if first {
            let shared = shared.clone();
            tokio::spawn(async move {
                tokio::time::sleep(GATHER).await;
                let list = shared.fences.waiting.lock().remove(&bookie).unwrap_or_default();
                send(&shared, bookie, list).await;
            });
        }
        rx.await.unwrap_or(FenceAnswer::Unknown(Unknown::Closed))
    }
}

async fn send(shared: &Arc<Shared>, bookie: BookieId, mut list: Waiting) {
    let Some(target) = shared.target(bookie) else { return };
    while !list.is_empty() {
        let rest = list.split_off(list.len().min(MAX_CALL));
        let ledgers = list.iter().map(|(l, _)| *l).collect();
        let call = shared.transport.fence(target.clone(), ledgers);
        let answers = tokio::time::timeout(shared.config.add_timeout, call).await;
        for (n, (_, tx)) in list.into_iter().enumerate() {
            let answer = match &answers {
                Ok(a) => a.get(n).copied().unwrap_or(FenceAnswer::Unknown(Unknown::Refused)),
                Err(_) => FenceAnswer::Unknown(Unknown::TimedOut),
            };
            let _ = tx.send(answer);
        }
        list = rest;
    }
}
