//! The auditor's loop of one term.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use tidemill_ledger::{BookieTable, LedgerClient, LedgerConfig, transport::GrpcTransport};
use tidemill_metadata::State;
use tidemill_types::meta::Command;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{
    access::Access,
    compare::{Compared, compare},
    findings::Finding,
    look::look,
    pass::{Memory, Pass, Settings},
    recover::recover,
};
use crate::node::Node;

/// Between two passes while something is to be done, and while nothing is.
const SOON: Duration = Duration::from_millis(250);
const LATER: Duration = Duration::from_secs(1);
/// A pass over very many ledgers may take this part of the time, as one in so many.
const SHARE: u32 = 20;
/// Commands proposed at once.
const AT_ONCE: usize = 32;

/// Audits until it is dropped, which ends what is under way: all of it is found again.
pub(in crate::lead) async fn run(node: &Arc<Node>, term: u64) {
    let Some(cluster) = node.machine.with(State::cluster) else { return };
    let (tell, bookies) = watch::channel(Arc::new(BookieTable::default()));
    let access = Arc::new(Access { node: node.clone(), term, bookies });
    let ledgers = LedgerClient::new(access.clone(), LedgerConfig::new(cluster));
    let transport = GrpcTransport::new();
    let mut memory = Memory::new(Settings {
        grace: Duration::from_millis(node.config.repair_grace_ms),
        lost_after: Duration::from_millis(node.config.lost_after_ms),
        per_bookie: node.config.repairs_per_bookie,
        compare_every: Duration::from_millis(node.config.compare_every_ms),
    });
    let begin = Instant::now();
    let mut tasks: JoinSet<Finding> = JoinSet::new();
    loop {
        let started = Instant::now();
        let (state, now) = (node.machine.state(), begin.elapsed());
        let looked = tidemill_runtime::work::blocking(move || {
            let pass = memory.pass(&state, now);
            (memory, pass)
        });
        let Ok((back, pass)) = looked.await else { return };
        memory = back;
        let Pass { commands, looks, compares, recoveries, table, report } = pass;
        *node.duties.audit.lock() = Some(report);
        node.counters.audits.inc();
        tell.send_replace(table.clone());
        let quiet = commands.is_empty() && looks.is_empty() && recoveries.is_empty() && report.ledgers == 0;
        propose(node, term, commands).await;
        for record in looks {
            node.counters.audit_looks.inc();
            let (transport, table) = (transport.clone(), table.clone());
            tasks.spawn(async move {
                let verdict = look(transport, cluster, table, &record).await;
                Finding::Looked { record: Box::new(record), verdict }
            });
        }
        for record in compares {
            let (transport, table) = (transport.clone(), table.clone());
            tasks.spawn(async move {
                let compared = compare(&transport, cluster, table, &record).await;
                Finding::Compared { record: Box::new(record), compared }
            });
        }
        for (ledger, base) in recoveries {
            node.counters.audit_recoveries.inc();
            tracing::warn!(%ledger, "the owner did not roll a ledger in time: it is recovered");
            let (ledgers, access) = (ledgers.clone(), access.clone());
            tasks.spawn(async move {
                let done = recover(&ledgers, &access, ledger, base).await;
                Finding::Recovered { ledger, done }
            });
        }
        let least = if quiet { LATER } else { SOON };
        let next = Instant::now() + least.max(started.elapsed() * SHARE);
        let mut commands = Vec::new();
        loop {
            tokio::select! {
                () = sleep_until(next) => break,
                Some(found) = tasks.join_next() => match found {
                    Ok(found) => {
                        count(node, &found);
                        commands.extend(memory.found(found, &table, begin.elapsed()));
                    }
                    Err(error) => {
                        tracing::error!(%error, "a task of the auditor failed");
                        tasks.shutdown().await;
                        memory.looking.clear();
                        memory.comparing.clear();
                        memory.recovering.clear();
                    }
                },
            }
        }
        propose(node, term, commands).await;
    }
}

async fn propose(node: &Arc<Node>, term: u64, commands: Vec<Command>) {
    for some in commands.chunks(AT_ONCE) {
        // A rejection means that the record moved on: the next pass sees it.
        join_all(some.iter().map(|c| node.propose_own(Some(term), c.clone()))).await;
    }
}

fn count(node: &Node, found: &Finding) {
    if let Finding::Compared { compared, .. } = found {
        match compared {
            Compared::Same { copies } => {
                node.counters.audit_compared.inc();
                node.counters.audit_copies.inc_by(*copies);
            }
            Compared::Differs { .. } => {
                node.counters.audit_divergent.inc();
            }
            Compared::Lacks { .. } | Compared::Unknown => {}
        }
    }
}
