//! The boot (R15, R16). Each step accepts a crash before it:
//!
//! | step | durable after it | a crash before the next leaves |
//! | --- | --- | --- |
//! | 1 read the lanes | nothing | nothing |
//! | 2 cookies: pending incarnation | in the cookies | the quorum's current incarnation still fits the cookies |
//! | 3 quorum: pending incarnation, limbo or not | in the quorum | the same; limbo stays with the quorum and is found again |
//! | 4 cookies: incarnation, limbo flag | in the cookies | the cookies have what the quorum has as pending |
//! | 5 fences (limbo, or the uuid was declared lost) | on the lanes | fenced once more at the next boot |
//! | 6 quorum: session, endpoint | in the quorum | an ordinary restart |
//!
//! Only after step 6 is anything served.

pub(crate) mod disks;
pub(crate) mod duties;
mod lanes;
mod quorum;

use std::{net::SocketAddr, sync::Arc};

use tidemill_meta_client::{MetaClient, Session};
use tidemill_storage::{FinishBoot, Scanned};
use tidemill_types::{
    Incarnation, MemberRole,
    meta::{BookieSpec, MemberSpec},
};
use uuid::Uuid;

pub(crate) use disks::scan;
pub(crate) use quorum::{Quorum, open_session};

use crate::{
    lac::LacWaiters,
    records::Records,
    shared::{Core, Serving},
    space,
    touch::{TouchLimits, Touches},
};

/// Why a boot has ended without a bookie that serves.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The bookie was told to stop.
    Stopped,
    /// It may not serve; a retry cannot help.
    Fatal(String),
}

/// A bookie that serves, and what its tasks need.
pub(crate) struct Booted {
    pub(crate) serving: Arc<Serving>,
    pub(crate) session: Session,
    pub(crate) spec: MemberSpec,
}

/// Steps 2 to 6.
pub(crate) async fn run(
    core: &Arc<Core>,
    scanned: Scanned,
    client: &MetaClient,
    addr: SocketAddr,
) -> Result<Booted, Ended> {
    let quorum = Quorum::new(core, client);
    let report = scanned.report().clone();
    let cluster = quorum.cluster(report.cluster).await?;
    let incarnation = draw(report.incarnation);

    let scanned = disks::write_pending(scanned, cluster, incarnation).await?;
    let spec = BookieSpec {
        // A uuid whose first boot never came to its fourth step has served nothing: it is as good as fresh.
        cluster: report.incarnation.and(report.cluster),
        id: report.bookie,
        name: core.config.name.clone(),
        last_incarnation: report.incarnation,
        incarnation,
        lanes: report.positions.clone(),
        found_loss: report.found_loss(),
    };
    let word = quorum.bookie_boot(&spec).await?;
    if word.limbo {
        tracing::error!(
            bookie = %report.bookie, losses = ?report.losses,
            "this bookie may have lost data: it boots into limbo and denies nothing until it is repaired"
        );
    }
    // The flag of the cookies falls only after the duties below: they may have been cut off by a crash.
    let leaves_limbo = report.limbo && !word.limbo;
    let finish = FinishBoot { limbo: word.limbo || leaves_limbo, mark: None };
    let engine = disks::finish(scanned, finish, core).await?;
    core.engine_runs(engine.clone());

    let records: Arc<dyn Records> = Arc::new(client.clone());
    if word.limbo {
        quorum.retry(|| duties::fence_open(records.as_ref(), &engine, report.bookie)).await?;
    }
    if word.was_lost || leaves_limbo {
        quorum.retry(|| duties::fence_not_open(records.as_ref(), &engine, report.bookie)).await?;
    }
    if leaves_limbo {
        disks::set_limbo(&engine, false).await?;
    }

    let info = engine.info();
    let spec = MemberSpec {
        cluster: Some(cluster),
        id: report.bookie,
        role: MemberRole::Bookie,
        name: core.config.name.clone(),
        incarnation,
        endpoint: core.config.endpoint(addr),
        zone: core.config.zone.clone(),
        free_bytes: space::free_bytes(&info),
        read_only: space::is_read_only(&info),
    };
    let session = open_session(&quorum, &engine, &spec).await?;
    // R27: the mark is the next id as read in this boot; until here every unknown ledger was asked for.
    engine.raise_mark(session.next_ledger());
    let touches = Touches::new(
        engine.clone(),
        report.bookie,
        records,
        TouchLimits { reads: core.config.first_touch_reads, bytes: core.config.add_queue_bytes },
        word.was_lost,
        core.counters.clone(),
        core.sup.token().clone(),
    );
    let identity = (cluster, report.bookie, incarnation);
    let serving = Serving::new(engine, identity, touches, Arc::new(LacWaiters::default()), session.state());
    if !core.serve(serving.clone()) {
        return Err(Ended::Stopped);
    }
    tracing::info!(
        bookie = %report.bookie, %cluster, %incarnation, ledgers = report.ledgers, state = ?session.state(),
        "bookie serves"
    );
    Ok(Booted { serving, session, spec })
}

/// Random, not zero (which stands for any), and not the last one.
fn draw(last: Option<Incarnation>) -> Incarnation {
    loop {
        let (a, b) = Uuid::new_v4().as_u64_pair();
        // Mixed, because the first half carries the version's fixed bits.
        let drawn = Incarnation(a ^ b.rotate_left(32));
        if drawn.0 != 0 && Some(drawn) != last {
            return drawn;
        }
    }
}
