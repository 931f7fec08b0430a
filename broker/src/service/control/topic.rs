//! Topics, claims and tombstones between the wire and the quorum's types.

use tidemill_meta_client::MetaTable;
use tidemill_proto::v1;
use tidemill_types::{Claim, TopicControl, TopicRecord, meta::Rejection};

use crate::{
    config::BrokerConfig,
    convert::{config, topic::live_owner},
    fault::Fault,
};

pub(super) fn claim(c: &Claim) -> v1::TopicClaim {
    v1::TopicClaim { uid: c.uid.clone(), owner: c.owner.clone() }
}

pub(super) fn read_claim(c: v1::TopicClaim) -> Claim {
    Claim { uid: c.uid, owner: c.owner }
}

/// A topic with its claim and tombstone; without a table nothing is said of owners.
pub(super) fn state(
    t: &TopicRecord,
    control: Option<&TopicControl>,
    table: Option<&MetaTable>,
    broker: &BrokerConfig,
) -> v1::TopicState {
    let tombstone = control.and_then(|c| c.tombstone.as_ref()).map(|t| v1::TopicTombstone {
        deleted_ms: t.deleted_ms,
        purge_at_ms: t.purge_at_ms,
        former: t.former.as_ref().map(claim),
    });
    v1::TopicState {
        name: t.name.to_string(),
        id: t.id.0,
        partitions: t.partitions,
        config: config::show(&t.config, broker),
        claim: control.and_then(|c| c.claim.as_ref()).map(claim),
        tombstone,
        created_ms: t.created_ms,
        // Both go up only.
        version: t.version.0 + control.map_or(0, |c| c.version.0),
        partitions_without_owner: table.map_or(0, |table| without_owner(t, table)),
    }
}

/// Partitions that no live broker owns, those included that the table does not have yet.
pub(super) fn without_owner(t: &TopicRecord, table: &MetaTable) -> u32 {
    let owned = table.partitions_of(t.id).filter(|p| live_owner(p, table).is_some()).count();
    t.partitions.saturating_sub(u32::try_from(owned).unwrap_or(u32::MAX))
}

/// A wish that the quorum refused.
pub(super) fn refused(what: &str, r: &Rejection) -> v1::TopicResult {
    let held_by = match r {
        Rejection::Claimed { holder, .. } => Some(holder.as_ref().map(claim).unwrap_or_default()),
        _ => None,
    };
    v1::TopicResult { held_by, ..fault(&crate::fault::rejected(what, r)) }
}

/// A wish that this broker refused.
pub(super) fn fault(f: &Fault) -> v1::TopicResult {
    let (field, allowed) = f.wrong_field().unwrap_or_default();
    v1::TopicResult {
        outcome: Some(v1::topic_result::Outcome::Refused(f.to_proto())),
        field: field.to_owned(),
        allowed: allowed.to_owned(),
        ..v1::TopicResult::default()
    }
}
