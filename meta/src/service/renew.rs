//! `Renew`: answered after a check of leadership that began after it came.

use tidemill_metadata::codec;
use tidemill_proto::{
    convert,
    meta::{RenewRequest, RenewResponse, renew_response::Outcome},
};
use tidemill_types::{ErrorCode, MemberId, MemberRole, SessionId, meta::BookieReport};
use tonic::Status;

use super::{MetaService, invalid, refuse_for_now};
use crate::{
    check::NotLeading,
    lead::{Heard, Renewal},
};

/// Retry hint, ms: less than the renewal interval.
const AGAIN_MS: u64 = 100;

pub(super) async fn renew(service: &MetaService, r: RenewRequest) -> Result<RenewResponse, Status> {
    let node = &service.node;
    node.cluster.check(&r.cluster)?;
    let member = convert::uuid("member", &r.member)
        .map(MemberId)
        .map_err(|e| invalid("member", &format!("16 bytes, not {}", e.len)))?;
    let session = SessionId(r.session);
    let lanes = if r.positions.is_empty() {
        Vec::new()
    } else {
        codec::decode_positions(&r.positions).map_err(|e| invalid("positions", &e.to_string()))?
    };
    let term = match node.check.wait().await {
        Ok(term) => term,
        Err(NotLeading::Elsewhere) => {
            let outcome = Some(Outcome::Leader(service.hint()));
            return Ok(RenewResponse { outcome, ..RenewResponse::default() });
        }
        Err(NotLeading::Unproven(why)) => {
            return Err(refuse_for_now(ErrorCode::QuorumUnavailable, &why, AGAIN_MS));
        }
    };
    let role = node.machine.with(|s| s.member(member).map(|m| m.role));
    let report = (role == Some(MemberRole::Bookie)).then_some(BookieReport {
        bookie: member,
        session,
        lanes,
        free_bytes: r.free_bytes,
    });
    let degraded = (role == Some(MemberRole::Broker)).then_some(r.degraded_ledgers);
    let heard = Heard { session, member, wall_ms: r.wall_ms, report, degraded };
    let outcome = match node.duties.renew(node, term, heard) {
        Renewal::Renewed(ttl) => {
            node.counters.renewals.inc();
            Outcome::TtlMs(u32::try_from(ttl.as_millis()).unwrap_or(u32::MAX))
        }
        Renewal::Gone => Outcome::Expired(true),
        Renewal::Expiring => {
            let why = "the expiry of this session was proposed: its end is not known yet";
            return Err(refuse_for_now(ErrorCode::NotReady, why, AGAIN_MS));
        }
        Renewal::OtherTerm => {
            return Err(refuse_for_now(ErrorCode::NotReady, "the leader changed meanwhile", AGAIN_MS));
        }
    };
    let (tick, jumped) = node.machine.with(|s| (s.wall_ms(), s.jumped_ms()));
    Ok(RenewResponse {
        outcome: Some(outcome),
        quorum_wall_ms: node.machine.quorum_time(),
        quorum_tick_ms: tick,
        quorum_jumped_ms: jumped,
    })
}
