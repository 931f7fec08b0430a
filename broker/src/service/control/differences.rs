//! What a wish changes, for people.

use tidemill_types::{Claim, TopicControl, TopicRecord};

use crate::{config::BrokerConfig, convert::config};

/// Each difference as `field: old -> new`, in order of field.
pub(super) fn between(
    before: &TopicRecord,
    after: &TopicRecord,
    claim: (Option<&Claim>, Option<&Claim>),
    broker: &BrokerConfig,
) -> Vec<String> {
    let mut all = Vec::new();
    if before.partitions != after.partitions {
        all.push(format!("partitions: {} -> {}", before.partitions, after.partitions));
    }
    let (old, new) = (config::show(&before.config, broker), config::show(&after.config, broker));
    let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        // Follows from the retention while no topic names it: told once, as the retention.
        if key == "roll.bytes" && before.config.roll_bytes.is_none() && after.config.roll_bytes.is_none() {
            continue;
        }
        let (old, new) = (old.get(key), new.get(key));
        if old != new {
            all.push(format!("config.{key}: {} -> {}", text(old), text(new)));
        }
    }
    if claim.0 != claim.1 {
        let owner = |c: Option<&Claim>| c.map_or_else(|| "nobody".to_owned(), |c| c.owner.clone());
        all.push(format!("claim: {} -> {}", owner(claim.0), owner(claim.1)));
    }
    all
}

fn text(value: Option<&String>) -> &str {
    match value.map(String::as_str) {
        None | Some("") => "(none)",
        Some(v) => v,
    }
}

/// The claim that a topic had before a wish: it is not part of the quorum's answer, and it is either the same, or there
/// was none.
pub(super) fn claim_before(unchanged: bool, after: &TopicControl) -> Option<&Claim> {
    if unchanged { after.claim.as_ref() } else { None }
}

#[cfg(test)]
mod tests {
    use tidemill_types::{TopicConfig, TopicId, TopicName, Version};

    use super::*;

    #[test]
    fn every_difference_is_named() {
        let before = TopicRecord {
            id: TopicId(1),
            version: Version(1),
            name: TopicName::new("t").unwrap(),
            partitions: 1,
            config: TopicConfig { retention_bytes: Some(7), ..TopicConfig::default() },
            created_ms: 0,
            deleting: false,
        };
        let config = TopicConfig { max_message_bytes: Some(2_000), ..TopicConfig::default() };
        let after = TopicRecord { partitions: 3, config, ..before.clone() };
        let claim = Claim { uid: "u".into(), owner: "Topic a/b".into() };
        let broker = BrokerConfig::default();
        assert_eq!(
            between(&before, &after, (None, Some(&claim)), &broker),
            [
                "partitions: 1 -> 3",
                "config.max.message.bytes: 1048576 -> 2000",
                "config.retention.bytes: 7 -> (none)",
                "claim: nobody -> Topic a/b",
            ]
        );
        assert!(between(&before, &before, (None, None), &broker).is_empty());
    }
}
