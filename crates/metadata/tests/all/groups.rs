//! `ConfigureGroup`, `RemoveGroup`.

use tidemill_types::meta::{Answer, Command, Query, Rejection, Reply};
use tidemill_types::{Assignor, GroupConfig, StartAt, Version};

use crate::harness::*;

fn configure(version: Option<u64>, config: GroupConfig) -> Command {
    Command::ConfigureGroup { name: group_name("billing"), version: version.map(Version), config }
}

fn remove(version: Option<u64>) -> Command {
    Command::RemoveGroup { name: group_name("billing"), version: version.map(Version) }
}

#[test]
fn a_configuration_is_created_changed_and_removed_by_version() {
    let mut c = Cluster::new();
    let s = c.session(11);
    let version = |r: Reply| match r {
        Reply::Group(g) => g.version.0,
        other => panic!("{other:?}"),
    };
    assert!(matches!(c.no(s, configure(Some(1), group_config())), Rejection::VersionMismatch { .. }));
    assert_eq!(version(c.ok(s, configure(Some(0), group_config()))), 1);
    // The same again changes nothing.
    let again = c.send(s, configure(None, group_config()));
    assert!(again.changes.is_empty() && version(again.result.unwrap()) == 1);
    let other = GroupConfig { session_ms: Some(20_000), ..GroupConfig::default() };
    assert_eq!(version(c.ok(s, configure(Some(1), other.clone()))), 2);
    assert_eq!(
        c.no(s, configure(Some(1), group_config())),
        Rejection::VersionMismatch { current: Version(2) }
    );
    let Answer::Group(Some(g)) = c.state.query(&Query::Group(group_name("billing"))) else { panic!() };
    assert_eq!(g.config, other);
    assert!(matches!(c.no(s, remove(Some(1))), Rejection::VersionMismatch { .. }));
    c.ok(s, remove(Some(2)));
    assert!(matches!(c.no(s, remove(None)), Rejection::NotFound { .. }));
    assert_eq!(c.state.query(&Query::Group(group_name("billing"))), Answer::Group(None));
}

#[test]
fn what_is_refused_is_named() {
    let mut c = Cluster::new();
    let s = c.session(11);
    let d = GroupConfig::default;
    let mut twice = group_config();
    twice.static_assignment[0].partitions = vec![0, 0];
    for (field, config) in [
        ("session_ms", GroupConfig { session_ms: Some(99), ..d() }),
        ("rebalance_ms", GroupConfig { rebalance_ms: Some(3_600_001), ..d() }),
        ("offsets_retention_ms", GroupConfig { offsets_retention_ms: Some(0), ..d() }),
        ("start_at", GroupConfig { start_at: Some(StartAt::Timestamp(-1)), ..d() }),
        ("last_reset", GroupConfig { last_reset: Some(String::new()), ..d() }),
        ("static_assignment", GroupConfig { assignor: Assignor::Static, ..d() }),
        ("static_assignment", GroupConfig { assignor: Assignor::Range, ..group_config() }),
        ("static_assignment", twice),
    ] {
        assert_invalid(&c.no(s, configure(None, config)), field);
    }
}
