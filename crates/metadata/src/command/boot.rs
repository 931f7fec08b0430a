//! `BookieBoot`: the second of four steps of a boot (R16), and the verdict on limbo (R15).
//!
//! 1. the bookie writes the drawn incarnation into its cookies as pending;
//! 2. **this command**: the quorum learns it as pending;
//! 3. the bookie writes it into its cookies as the current one;
//! 4. `OpenSession`: it is the quorum's current one.
//!
//! A crash between any two steps leaves the cookies with the quorum's current incarnation (before 3) or with its
//! pending one (after 3). Anything else in a cookie is a disk from another time.

use tidemill_types::meta::{BookieSpec, Change, Rejection, Reply};
use tidemill_types::{BookieState, ClusterId, Endpoint, Incarnation, LanePosition, Member, MemberRole};

use crate::State;
use crate::limits::{MAX_LANES, MAX_MEMBERS, MAX_NAME_LEN};
use crate::reject::{conflict, invalid};

/// Incarnation of a member that never finished a boot.
pub(crate) const NEVER: Incarnation = Incarnation(0);

fn check_spec(spec: &BookieSpec) -> Result<(), Rejection> {
    if spec.incarnation == NEVER || spec.last_incarnation == Some(NEVER) {
        return Err(invalid("incarnation", "zero stands for none"));
    }
    if spec.last_incarnation == Some(spec.incarnation) {
        return Err(invalid("incarnation", "drawn anew for every boot"));
    }
    if spec.name.len() > MAX_NAME_LEN {
        return Err(invalid("name", format_args!("at most {MAX_NAME_LEN} bytes")));
    }
    if spec.lanes.is_empty() || spec.lanes.len() > MAX_LANES {
        return Err(invalid("lanes", format_args!("1 to {MAX_LANES}")));
    }
    let mut lanes: Vec<_> = spec.lanes.iter().map(|l| l.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    if lanes.len() != spec.lanes.len() {
        return Err(invalid("lanes", "each once"));
    }
    Ok(())
}

/// Position of a synced commit group within a lane.
fn position(p: &LanePosition) -> (u64, u64) {
    (p.segment, p.group)
}

/// What shows that the disks hold less than the quorum was told.
fn lost_something(member: &Member, spec: &BookieSpec) -> bool {
    let cookies_fit = match spec.last_incarnation {
        Some(last) => last == member.incarnation || Some(last) == member.pending_incarnation,
        None => member.incarnation == NEVER,
    };
    let lanes_fit = member.lanes.iter().all(|known| {
        spec.lanes.iter().any(|found| found.lane == known.lane && position(found) >= position(known))
    });
    spec.found_loss || !cookies_fit || !lanes_fit
}

impl State {
    pub(crate) fn bookie_boot(
        &mut self,
        cluster: ClusterId,
        spec: &BookieSpec,
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        check_spec(spec)?;
        if let Some(named) = spec.cluster
            && named != cluster
        {
            return Err(Rejection::WrongCluster { have: cluster, named });
        }
        let Some(member) = self.member(spec.id) else {
            return self.first_boot(cluster, spec, out);
        };
        if member.role != MemberRole::Bookie {
            return Err(conflict(format_args!("{} is a {:?}", spec.id, member.role)));
        }
        if member.state == BookieState::Retired {
            return Err(Rejection::BookieNotEligible { bookie: spec.id, why: "retired".into() });
        }
        let answer = |m: &Member, was_lost| Reply::BookieBoot {
            cluster,
            limbo: m.state == BookieState::Limbo,
            was_lost,
        };
        let again = member.pending_incarnation == Some(spec.incarnation)
            || (member.pending_incarnation.is_none()
                && member.incarnation == spec.incarnation
                && member.state != BookieState::Lost);
        if again {
            return Ok(answer(member, member.state == BookieState::Lost));
        }
        if member.session.is_some() {
            return Err(conflict("another process of this uuid has a live session"));
        }
        if spec.cluster.is_none() && member.incarnation != NEVER {
            return Err(conflict("empty disks under a uuid that has been in use: draw a new one (R15)"));
        }
        let mut m = member.clone();
        let was_lost = m.state == BookieState::Lost;
        if lost_something(&m, spec) {
            m.state = BookieState::Limbo;
            // From here on the recovered positions are what the uuid has.
            m.lanes.clear();
        }
        if m.state == BookieState::Limbo {
            m.limbo_count = m.limbo_count.saturating_add(1);
        }
        // The cookies prove that the pending boot came as far as its third step.
        if spec.last_incarnation.is_some() && spec.last_incarnation == m.pending_incarnation {
            m.incarnation = spec.last_incarnation.unwrap_or(m.incarnation);
        }
        m.pending_incarnation = Some(spec.incarnation);
        m.lanes.clone_from(&spec.lanes);
        m.name.clone_from(&spec.name);
        let reply = answer(&m, was_lost);
        self.put_member(m, out);
        Ok(reply)
    }

    fn first_boot(
        &mut self,
        cluster: ClusterId,
        spec: &BookieSpec,
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        if spec.cluster.is_some() || spec.last_incarnation.is_some() {
            return Err(conflict("the cookies are of this cluster, which does not know the uuid"));
        }
        if self.members.len() >= MAX_MEMBERS {
            return Err(conflict(format_args!("there are {MAX_MEMBERS} members")));
        }
        // A fresh uuid that found a loss on its own empty disks would be a contradiction; limbo is the safe reading.
        let limbo = spec.found_loss;
        let member = Member {
            id: spec.id,
            role: MemberRole::Bookie,
            name: spec.name.clone(),
            incarnation: NEVER,
            pending_incarnation: Some(spec.incarnation),
            endpoint: Endpoint { host: String::new(), port: 0 },
            zone: String::new(),
            // Nothing names it before its first session is open, which makes it `rw`.
            state: if limbo { BookieState::Limbo } else { BookieState::Ro },
            limbo_count: u32::from(limbo),
            session: None,
            lanes: spec.lanes.clone(),
            free_bytes: 0,
            restarting: false,
        };
        self.put_member(member, out);
        Ok(Reply::BookieBoot { cluster, limbo, was_lost: false })
    }
}
