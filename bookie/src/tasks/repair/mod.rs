//! Repairs of which this bookie is the target (R23): the quorum's leader records them in the ledgers, this bookie looks for
//! them, copies what it lacks from the other members, and ends them. A restart finds them again: nothing is kept here.

mod local;
mod remote;
mod run;

use std::{collections::HashSet, sync::Arc, time::Duration};

use tidemill_ledger::transport::GrpcTransport;
use tidemill_meta_client::MetaClient;
use tidemill_types::{
    LedgerId,
    meta::{Answer, Query},
};
use tokio::task::JoinSet;

use self::run::Worker;
use crate::{
    records::NoAnswer,
    shared::{Core, Serving},
};
use tidemill_runtime::Pace;

/// Between two looks for work.
const LOOK: Duration = Duration::from_secs(1);
/// Repairs at once; the rate of all of them together is bounded.
const AT_ONCE: usize = 4;
/// Records of one look: the auditor gives a bookie fewer.
const PAGE: u32 = 100;

/// Works until it is dropped, which ends repairs that are under way: they are found again.
pub(crate) async fn run(core: Arc<Core>, client: MetaClient, serving: Arc<Serving>) {
    let pace = Pace::new(core.config.repair_bytes_per_second);
    let worker = Arc::new(Worker { core, client, serving, transport: GrpcTransport::new(), pace });
    let mut jobs: JoinSet<(LedgerId, bool)> = JoinSet::new();
    let mut working: HashSet<LedgerId> = HashSet::new();
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            Some(done) = jobs.join_next() => {
                let Ok((ledger, finished)) = done else {
                    // One that panicked is not known by its ledger: all are dropped and found again.
                    jobs.shutdown().await;
                    working.clear();
                    continue;
                };
                working.remove(&ledger);
                worker.core.counters.repairs_running.set(count(working.len()));
                // The next one at once, unless this one failed: it would be tried again without a pause.
                if !finished {
                    continue;
                }
            }
        }
        if working.len() >= AT_ONCE {
            continue;
        }
        let found = match assigned(&worker).await {
            Ok(found) => found,
            Err(why) => {
                tracing::debug!(%why, "repairs could not be looked for");
                continue;
            }
        };
        for ledger in found {
            if working.len() < AT_ONCE && working.insert(ledger) {
                let worker = worker.clone();
                jobs.spawn(async move {
                    let finished = worker.repair(ledger).await;
                    (ledger, finished)
                });
            }
        }
        worker.core.counters.repairs_running.set(count(working.len()));
    }
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Ledgers whose repair names this bookie as the worker.
async fn assigned(worker: &Worker) -> Result<Vec<LedgerId>, NoAnswer> {
    let query = Query::Repairs { worker: Some(worker.serving.id), after: None, limit: PAGE };
    match worker.client.read(&query).await? {
        (Answer::Ledgers(found), _) => Ok(found.into_iter().map(|r| r.id).collect()),
        (other, _) => Err(NoAnswer(format!("an answer of another kind: {other:?}"))),
    }
}
