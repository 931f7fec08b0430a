//! The configuration of a topic as keys and values.

use std::collections::HashMap;

use tidemill_runtime::defaults;
use tidemill_types::{CleanupPolicy, ErrorCode, Replication, TopicConfig};

use crate::{
    config::BrokerConfig,
    fault::{Fault, shown},
    limits,
};

/// The keys, in the order of the documentation.
const KEYS: [&str; 10] = [
    "copies",
    "ackQuorum",
    "retention.ms",
    "retention.bytes",
    "max.message.bytes",
    "roll.bytes",
    "roll.ms",
    "cleanup.policy",
    "min.cleanable.dirty.ratio",
    "delete.retention.ms",
];

/// Applies `changes` to `config`; an empty value resets a key. Replication is clamped to what the cluster can hold.
///
/// # Errors
/// `UNKNOWN_CONFIG_KEY` with the known ones; `INVALID_ARGUMENT` with key and allowed values.
pub(crate) fn apply(
    mut config: TopicConfig,
    changes: &HashMap<String, String>,
    broker: &BrokerConfig,
) -> Result<TopicConfig, Fault> {
    if changes.len() > limits::MAX_CONFIG_KEYS {
        return Err(Fault::invalid(
            "config",
            changes.len(),
            &format!("at most {} keys", limits::MAX_CONFIG_KEYS),
        ));
    }
    // In order of key, so that of several wrong ones always the same is named.
    let mut sorted: Vec<_> = changes.iter().collect();
    sorted.sort();
    let mut copies_given = false;
    let mut quorum_given = false;
    for (key, value) in sorted {
        let value = (!value.is_empty()).then_some(value.as_str());
        let n = |min: u64, max: u64| value.map(|v| number(key, v, min, max)).transpose();
        match key.as_str() {
            "copies" => {
                copies_given = value.is_some();
                config.replication.copies =
                    byte(n(1, Replication::MAX_COPIES.into())?, Replication::default().copies);
            }
            "ackQuorum" => {
                quorum_given = value.is_some();
                config.replication.ack_quorum =
                    byte(n(1, Replication::MAX_COPIES.into())?, Replication::default().ack_quorum);
            }
            // Without a bound, said in so many words.
            "retention.ms" if value == Some("-1") => config.retention_ms = Some(i64::MAX),
            "retention.bytes" if value == Some("-1") => config.retention_bytes = None,
            "retention.ms" => config.retention_ms = n(1, limits::MAX_MS)?.map(signed),
            "retention.bytes" => config.retention_bytes = n(1, u64::MAX >> 1)?,
            "max.message.bytes" => {
                config.max_message_bytes =
                    n(1_024, limits::MAX_MESSAGE_CEILING.into())?.and_then(|v| u32::try_from(v).ok());
            }
            "roll.bytes" => config.roll_bytes = n(limits::MIN_ROLL_BYTES, limits::MAX_ROLL_BYTES)?,
            "roll.ms" => config.roll_ms = n(limits::MIN_ROLL_MS, limits::MAX_MS)?.map(signed),
            "cleanup.policy" => config.cleanup.policy = value.map(policy).transpose()?.unwrap_or_default(),
            "min.cleanable.dirty.ratio" => {
                config.cleanup.min_dirty_permille = value.map(permille).transpose()?;
            }
            "delete.retention.ms" => config.cleanup.delete_horizon_ms = n(0, limits::MAX_MS)?,
            _ => {
                let known = KEYS.join(", ");
                let field = format!("config.{}", key.chars().take(64).collect::<String>());
                let why = format!("{} is not known", shown(key));
                return Err(Fault::field(ErrorCode::UnknownConfigKey, &field, &why, &known));
            }
        }
    }
    // A single copy asked for without a word on the quorum means what it can mean.
    let r = &mut config.replication;
    if copies_given && !quorum_given {
        r.ack_quorum = r.ack_quorum.min(r.copies);
    }
    if !r.is_valid() {
        let allowed = format!("1 to copies ({})", r.copies);
        return Err(Fault::invalid("config.ackQuorum", r.ack_quorum, &allowed));
    }
    config.replication = broker.clamp(config.replication);
    Ok(config)
}

/// All keys with their effective values. No limit is told as an empty value.
pub(crate) fn show(config: &TopicConfig, broker: &BrokerConfig) -> HashMap<String, String> {
    let or = |v: Option<u64>, default: u64| v.unwrap_or(default).to_string();
    let positive = |v: Option<i64>| v.and_then(|v| u64::try_from(v).ok());
    [
        ("copies", config.replication.copies.to_string()),
        ("ackQuorum", config.replication.ack_quorum.to_string()),
        (
            "retention.ms",
            match config.retention_ms {
                Some(i64::MAX) => "-1".to_owned(),
                bound => or(positive(bound), broker.retention_ms),
            },
        ),
        ("retention.bytes", config.retention_bytes.map(|v| v.to_string()).unwrap_or_default()),
        ("max.message.bytes", or(config.max_message_bytes.map(u64::from), broker.max_message_bytes.into())),
        ("roll.bytes", tidemill_partition_log::roll_bytes(config, broker.roll_bytes).to_string()),
        ("cleanup.policy", policy_name(config.cleanup.policy).to_owned()),
        (
            "min.cleanable.dirty.ratio",
            ratio(config.cleanup.min_dirty_permille.unwrap_or(defaults::MIN_DIRTY_PERMILLE)),
        ),
        (
            "delete.retention.ms",
            or(
                config.cleanup.delete_horizon_ms,
                u64::try_from(defaults::DELETE_HORIZON.as_millis()).unwrap_or(0),
            ),
        ),
        ("roll.ms", tidemill_partition_log::roll_ms(config, broker.roll_ms, broker.retention_ms).to_string()),
    ]
    .into_iter()
    .map(|(k, v)| (k.to_owned(), v))
    .collect()
}

/// Kafka's names; in either order.
fn policy(value: &str) -> Result<CleanupPolicy, Fault> {
    let mut parts: Vec<&str> = value.split(',').map(str::trim).collect();
    parts.sort_unstable();
    match parts.as_slice() {
        ["delete"] => Ok(CleanupPolicy::Delete),
        ["compact"] => Ok(CleanupPolicy::Compact),
        ["compact", "delete"] => Ok(CleanupPolicy::CompactAndDelete),
        _ => {
            let allowed = "delete, compact, or compact,delete; empty for delete";
            Err(Fault::invalid("config.cleanup.policy", shown(value), allowed))
        }
    }
}

fn policy_name(policy: CleanupPolicy) -> &'static str {
    match policy {
        CleanupPolicy::Delete => "delete",
        CleanupPolicy::Compact => "compact",
        CleanupPolicy::CompactAndDelete => "compact,delete",
    }
}

/// A share with at most three decimals, as thousandths.
fn permille(value: &str) -> Result<u16, Fault> {
    let bad = || {
        let allowed = "a number from 0 to 1 with at most three decimals, or empty for the default";
        Fault::invalid("config.min.cleanable.dirty.ratio", shown(value), allowed)
    };
    let (whole, decimals) = value.split_once('.').unwrap_or((value, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if decimals.len() > 3 || !digits(decimals) || !digits(whole) || (whole.is_empty() && decimals.is_empty())
    {
        return Err(bad());
    }
    let whole: u32 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| bad())? };
    let decimals: u32 = format!("{decimals:0<3}").parse().map_err(|_| bad())?;
    let all = whole.saturating_mul(1_000).saturating_add(decimals);
    u16::try_from(all).ok().filter(|v| *v <= 1_000).ok_or_else(bad)
}

/// The shortest text of thousandths.
fn ratio(permille: u16) -> String {
    if permille >= 1_000 {
        return "1".to_owned();
    }
    let text = format!("0.{permille:03}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short.is_empty() { "0".to_owned() } else { short.to_owned() }
}

fn number(key: &str, value: &str, min: u64, max: u64) -> Result<u64, Fault> {
    value.parse().ok().filter(|v| (min..=max).contains(v)).ok_or_else(|| {
        Fault::invalid(
            &format!("config.{key}"),
            shown(value),
            &format!("a number from {min} to {max}, or empty for the default"),
        )
    })
}

fn byte(v: Option<u64>, default: u8) -> u8 {
    v.and_then(|v| u8::try_from(v).ok()).unwrap_or(default)
}

fn signed(v: u64) -> i64 {
    i64::try_from(v).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use tonic::Status;
    use tonic_types::StatusExt;

    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Result<TopicConfig, Fault> {
        let map = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        apply(TopicConfig::default(), &map, &BrokerConfig::default())
    }

    #[test]
    fn every_key_is_read_and_shown() {
        let pairs = [
            ("copies", "5"),
            ("ackQuorum", "3"),
            ("retention.ms", "1000"),
            ("retention.bytes", "77"),
            ("max.message.bytes", "2048"),
            ("roll.bytes", "1048576"),
            ("roll.ms", "60000"),
            ("cleanup.policy", "compact,delete"),
            ("min.cleanable.dirty.ratio", "0.25"),
            ("delete.retention.ms", "0"),
        ];
        assert_eq!(pairs.map(|p| p.0), KEYS);
        let c = with(&pairs).unwrap();
        let shown = show(&c, &BrokerConfig::default());
        for (k, v) in pairs {
            assert_eq!(shown[k], v, "{k}");
        }
        let reset: HashMap<_, _> = KEYS.iter().map(|k| ((*k).to_owned(), String::new())).collect();
        assert_eq!(apply(c, &reset, &BrokerConfig::default()).unwrap(), TopicConfig::default());
    }

    #[test]
    fn wrong_values_name_the_key_and_what_is_allowed() {
        for (key, value) in [
            ("copies", "0"),
            ("copies", "8"),
            ("ackQuorum", "4"),
            ("retention.ms", "-2"),
            ("retention.bytes", "-2"),
            ("max.message.bytes", "99999999999"),
            ("roll.bytes", "5"),
            ("roll.ms", "x"),
            ("min.cleanable.dirty.ratio", "1.001"),
            ("min.cleanable.dirty.ratio", "0.0001"),
            ("min.cleanable.dirty.ratio", "-0.1"),
            ("min.cleanable.dirty.ratio", "half"),
            ("delete.retention.ms", "-1"),
        ] {
            let e = with(&[(key, value)]).unwrap_err();
            assert_eq!(e.code(), ErrorCode::InvalidArgument, "{key}={value}");
            let v = Status::from(e).get_details_bad_request().unwrap().field_violations;
            assert_eq!(v[0].field, format!("config.{key}"));
            assert!(v[0].description.contains("1"), "{}", v[0].description);
        }
        let e = with(&[("retention", "1")]).unwrap_err();
        assert_eq!(e.code(), ErrorCode::UnknownConfigKey);
        assert!(e.to_proto().message.contains("retention.ms"));
    }

    #[test]
    fn policies_and_ratios_are_read_as_kafka_writes_them() {
        for (given, shown_as) in [
            ("compact", "compact"),
            ("delete,compact", "compact,delete"),
            ("delete", "delete"),
            ("", "delete"),
        ] {
            let c = with(&[("cleanup.policy", given)]).unwrap();
            assert_eq!(show(&c, &BrokerConfig::default())["cleanup.policy"], shown_as);
        }
        for bad in ["Compact", "compact,compact", "burn", "compact,"] {
            let e = with(&[("cleanup.policy", bad)]).unwrap_err();
            assert_eq!(e.wrong_field().unwrap().0, "config.cleanup.policy", "{bad}");
        }
        for (given, permille, text) in [
            ("0", 0, "0"),
            ("1", 1_000, "1"),
            ("1.0", 1_000, "1"),
            (".5", 500, "0.5"),
            ("0.125", 125, "0.125"),
        ] {
            let c = with(&[("min.cleanable.dirty.ratio", given)]).unwrap();
            assert_eq!(c.cleanup.min_dirty_permille, Some(permille));
            assert_eq!(show(&c, &BrokerConfig::default())["min.cleanable.dirty.ratio"], text);
        }
    }

    #[test]
    fn no_bound_is_said_with_minus_one() {
        let c = with(&[("retention.ms", "-1"), ("retention.bytes", "-1")]).unwrap();
        let shown = show(&c, &BrokerConfig::default());
        assert_eq!((shown["retention.ms"].as_str(), shown["retention.bytes"].as_str()), ("-1", ""));
    }

    #[test]
    fn one_copy_takes_its_quorum_along_and_the_clamp_is_stored() {
        assert_eq!(with(&[("copies", "1")]).unwrap().replication, Replication { copies: 1, ack_quorum: 1 });
        let broker = BrokerConfig { max_copies: Some(1), ..BrokerConfig::default() };
        let c = apply(TopicConfig::default(), &HashMap::new(), &broker).unwrap();
        assert_eq!(c.replication, Replication { copies: 1, ack_quorum: 1 });
        assert_eq!(show(&c, &broker)["copies"], "1");
    }
}
