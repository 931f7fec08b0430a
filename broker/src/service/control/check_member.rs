//! `CheckMember`: whether a member may be restarted or removed now, with everything that speaks against it (rule 11).

use tidemill_meta_client::MetaTable;
use tidemill_proto::v1;
use tidemill_types::{
    BookieState, Member, MemberId, MemberRole,
    meta::{BookieStanding, ControlAnswer, ControlQuery},
};

use super::{Caller, other, quorum::Quorum, restart};
use crate::{convert::topic::live_owner, fault::Fault};

/// A voter that lacks more entries than this is behind.
const BEHIND: u64 = 1_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Restart,
    Remove,
}

/// What speaks against it.
#[derive(Default)]
struct Reasons(Vec<v1::MemberReason>);

impl Reasons {
    fn add(&mut self, code: &str, count: u64, message: impl Into<String>) {
        self.0.push(v1::MemberReason { code: code.to_owned(), message: message.into(), count });
    }

    /// Only when there are any.
    fn count(&mut self, code: &str, count: u64, what: &str) {
        if count > 0 {
            self.add(code, count, format!("{count} {what}"));
        }
    }
}

pub(super) async fn check(
    caller: Caller<'_>,
    r: v1::CheckMemberRequest,
) -> Result<v1::CheckMemberResponse, Fault> {
    let id = restart::member(&r.member)?;
    let action = match v1::MemberAction::try_from(r.action) {
        Ok(v1::MemberAction::Restart) => Action::Restart,
        Ok(v1::MemberAction::Remove) => Action::Remove,
        _ => return Err(Fault::invalid("action", r.action, "RESTART, REMOVE")),
    };
    let what = "check a member";
    let (ControlAnswer::BookieStanding(standing), revision) =
        caller.query(what, ControlQuery::BookieStanding(id)).await?
    else {
        return Err(other(what));
    };
    // The view is at least as new as the records that were counted.
    caller.deadline.bound(caller.core.mirror.at_least(revision)).await.map_err(|_| Fault::deadline())?;
    let quorum = Quorum::ask(caller).await?;
    let mut reasons = Reasons::default();
    let member = caller.core.mirror.table().member(id).cloned();
    match (member, standing) {
        (Some(m), Some(s)) if m.role == MemberRole::Bookie => {
            let table = caller.core.mirror.table();
            bookie(&m, &s, action, &table, &mut reasons);
            if action == Action::Restart {
                caught_up(&quorum, &table, &mut reasons);
            }
        }
        (Some(m), _) if m.role == MemberRole::Broker => {
            broker(&m, action, &caller.core.mirror.table(), &mut reasons);
        }
        _ => meta(id, action, &quorum, &mut reasons),
    }
    Ok(v1::CheckMemberResponse { safe: reasons.0.is_empty(), reasons: reasons.0, revision: revision.0 })
}

fn bookie(m: &Member, s: &BookieStanding, action: Action, table: &MetaTable, reasons: &mut Reasons) {
    if action == Action::Remove {
        if m.state != BookieState::Retired {
            reasons.add("NOT_RETIRED", 0, format!("{} is {:?}, not Retired", m.name, m.state));
            reasons.count("STILL_NAMED", s.named, "fragments and repairs name it");
        }
        return;
    }
    for peer in table.members_of(MemberRole::Bookie).filter(|p| p.id != m.id) {
        match peer.state {
            // Given up: what they held is counted below.
            BookieState::Lost | BookieState::Retired => {}
            _ if peer.session.is_none() => {
                reasons.add("MEMBER_DOWN", 1, format!("{} ({}) has no session", peer.name, peer.id));
            }
            BookieState::Limbo => {
                reasons.add("MEMBER_STATE", 1, format!("{} ({}) is in limbo", peer.name, peer.id));
            }
            _ => {}
        }
    }
    reasons.count("UNDER_REPLICATED", s.under, "ledgers have entries below their copies");
    reasons.count(
        "UNDER_REPLICATED",
        s.with_dead,
        "ledgers name a bookie that is lost, in limbo or not live",
    );
    reasons.count("UNCHECKED", s.unchecked, "ledgers are unchecked after a recovery");
}

/// What writers still send again, as every live broker told the leader lately.
fn caught_up(quorum: &Quorum, table: &MetaTable, reasons: &mut Reasons) {
    let Some(leader) = quorum.leader() else {
        return reasons.add("QUORUM", 0, "no member says that it leads");
    };
    let told = |id: MemberId| leader.degraded.iter().find(|(b, _)| *b == id).map(|(_, n)| u64::from(*n));
    let mut degraded = 0;
    for b in table.members_of(MemberRole::Broker).filter(|b| b.session.is_some()) {
        match told(b.id) {
            Some(n) => degraded += n,
            None => {
                reasons.add("NOT_CAUGHT_UP", 0, format!("{} has not told its degraded ledgers yet", b.name));
            }
        }
    }
    reasons.count("NOT_CAUGHT_UP", degraded, "open ledgers are on fewer bookies than wanted");
}

fn broker(m: &Member, action: Action, table: &MetaTable, reasons: &mut Reasons) {
    let others = || table.members_of(MemberRole::Broker).filter(|b| b.id != m.id);
    let live = others().filter(|b| b.session.is_some()).count();
    if action == Action::Restart {
        // One that was drained and went away is no longer counted on.
        for b in others().filter(|b| b.session.is_none() && b.state == BookieState::Rw) {
            reasons.add("MEMBER_DOWN", 1, format!("{} ({}) has no session", b.name, b.id));
        }
    } else if live == 0 {
        reasons.add("LAST_OF_ROLE", 0, "no other broker is live");
    }
    // Without another broker nobody could take them: a restart of the only one interrupts in any case.
    if live > 0 || action == Action::Remove {
        let owns = table.partitions().filter(|p| live_owner(p, table).is_some_and(|o| o.id == m.id)).count();
        let owns = u64::try_from(owns).unwrap_or(u64::MAX);
        reasons.count("OWNS_PARTITIONS", owns, "partitions are its own: drain it first");
    }
}

fn meta(id: MemberId, action: Action, q: &Quorum, reasons: &mut Reasons) {
    let Some(own) = q.statuses().find(|s| s.member == Some(id)) else {
        return reasons.add("UNKNOWN_MEMBER", 0, format!("{id} is no member, or it does not answer"));
    };
    if !q.voters.contains(&own.node) {
        return;
    }
    if action == Action::Remove {
        return reasons.add(
            "NOT_RETIRED",
            0,
            format!("node {} votes: take it out of the quorum first", own.node),
        );
    }
    // A single voter has nobody to wait for.
    if q.voters.len() == 1 {
        return;
    }
    let stay = q.reachable().into_iter().filter(|n| *n != own.node).count();
    if stay < q.majority() {
        let why = format!("{stay} of the other voters answer, {} are needed", q.majority());
        reasons.add("QUORUM", u64::try_from(stay).unwrap_or(u64::MAX), why);
    }
    let Some(leader) = q.leader() else {
        return reasons.add("QUORUM", 0, "no member says that it leads");
    };
    for s in q.statuses().filter(|s| s.node != own.node && q.voters.contains(&s.node)) {
        let behind = leader.applied.saturating_sub(s.applied);
        if behind > BEHIND {
            reasons.add("NOT_CAUGHT_UP", behind, format!("node {} lacks {behind} entries", s.node));
        }
    }
}
