//! What still needs a bookie.

use tidemill_proto::v1;
use tidemill_types::{
    BookieId, LedgerId, LedgerRecord, LedgerState, Member,
    meta::{Answer, Query},
};

use super::super::read;
use crate::{convert, core::Core, deadline::Deadline, fault::Fault};

/// Ledgers that are told one by one.
const TOLD: usize = 100;
/// Records of one read.
const PAGE: u32 = 1_000;

/// The bookie with everything that names it, page by page: a moment's picture. Only the quorum's own count, at the
/// retirement, decides.
pub(super) async fn of(core: &Core, bookie: &Member, deadline: Deadline) -> Result<v1::BookieNeeds, Fault> {
    let mut found = v1::BookieNeeds::default();
    let mut after: Option<LedgerId> = None;
    loop {
        let query = Query::LedgersOf { bookie: bookie.id, after, limit: PAGE };
        let Answer::Ledgers(page) = read(core, query, deadline).await? else {
            return Err(Fault::internal("read the ledgers of a bookie", "an answer of another kind"));
        };
        for r in &page {
            found.ledgers += 1;
            found.named += times_named(r, bookie.id);
            found.bytes += r.length.unwrap_or(0);
            if found.needs.len() < TOLD {
                found.needs.push(need(core, r));
            }
        }
        let whole = page.len() < PAGE as usize;
        after = page.last().map(|r| r.id).or(after);
        if whole {
            break;
        }
    }
    found.member = Some(convert::member::to_proto(bookie, found.ledgers));
    Ok(found)
}

fn times_named(r: &LedgerRecord, bookie: BookieId) -> u64 {
    let fragments = r.fragments.iter().filter(|f| f.ensemble.contains(&bookie)).count() as u64;
    fragments + u64::from(r.repair.as_ref().is_some_and(|p| p.target == bookie))
}

fn need(core: &Core, r: &LedgerRecord) -> v1::BookieNeed {
    let topic = core.mirror.table().topic(r.partition.topic).map_or_else(String::new, |t| t.name.to_string());
    let why = match (&r.repair, r.state) {
        (Some(_), _) => "repairing",
        (None, LedgerState::Open) => "open",
        (None, LedgerState::InRecovery) => "in_recovery",
        (None, LedgerState::Closed) => "closed",
    };
    v1::BookieNeed { ledger: r.id.0, topic, partition: r.partition.index, why: why.to_owned() }
}
