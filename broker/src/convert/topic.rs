//! Topics and partitions for clients.

use tidemill_meta_client::MetaTable;
use tidemill_proto::v1;
use tidemill_types::{Member, PartitionRecord, TopicRecord};

use super::config;
use crate::{config::BrokerConfig, fault::address};

/// A topic with its partitions as the table knows them.
pub(crate) fn to_proto(t: &TopicRecord, table: &MetaTable, broker: &BrokerConfig) -> v1::Topic {
    v1::Topic {
        name: t.name.to_string(),
        id: t.id.0,
        partitions: table.partitions_of(t.id).map(|p| partition(p, table)).collect(),
        config: config::show(&t.config, broker),
        created_ms: t.created_ms,
        version: t.version.0,
        deleted: table.is_tombstone(t.id),
    }
}

/// A partition with its owner, if that is alive.
pub(crate) fn partition(p: &PartitionRecord, table: &MetaTable) -> v1::Partition {
    let owner = live_owner(p, table);
    v1::Partition {
        index: p.id.index,
        owner: owner.map(|m| address(&m.endpoint)).unwrap_or_default(),
        epoch: p.epoch.0,
        owner_name: owner.map(|m| m.name.clone()).unwrap_or_default(),
    }
}

/// The owner, as long as the session that acquired the partition is live.
pub(crate) fn live_owner<'a>(p: &PartitionRecord, table: &'a MetaTable) -> Option<&'a Member> {
    let owner = p.owner?;
    table.member(owner.broker).map(AsRef::as_ref).filter(|m| m.session == Some(owner.session))
}
