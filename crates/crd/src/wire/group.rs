//! Consumer groups.

use std::collections::{BTreeMap, BTreeSet};

use tidemill_proto::v1::{self, start_at::At};
use tidemill_types::{Assignor, StartAt};

use crate::plan::{Claim, GroupSeen, GroupWish, shown_assignor};

/// Partitions of declared topics that a description lists at most: past it nobody knows which topics are missing, nor the lag.
const MAX_LISTED: usize = 10_000;

/// A group from its description and its configuration.
#[must_use]
pub fn seen(d: &v1::DescribeGroupResponse, config: Option<&v1::GroupConfig>) -> GroupSeen {
    let declared = d.declaration.clone().unwrap_or_default();
    let summary = d.summary.clone().unwrap_or_default();
    let listed: BTreeSet<&str> = d.offsets.iter().map(|o| o.topic.as_str()).collect();
    let whole = d.offsets.len() < MAX_LISTED;
    let missing = declared.topics.iter().filter(|t| whole && !listed.contains(t.as_str()));
    let lags: Option<Vec<u64>> =
        d.offsets.iter().map(|o| u64::try_from(o.lag).ok().filter(|_| whole)).collect();
    GroupSeen {
        config: d.declaration.as_ref().and(config).and_then(|c| wish_of(&summary.name, &declared.topics, c)),
        claim: declared.claim.as_ref().map(claim_of),
        holder_gone: false,
        resets: declared.resets.iter().map(|r| (r.id.clone(), r.to.clone())).collect(),
        state: summary.state,
        members: summary.members,
        assignments: d
            .members
            .iter()
            .map(|m| {
                let parts = m.assigned.iter().map(|p| (p.topic.clone(), p.partition));
                (m.id.clone(), parts.collect())
            })
            .collect(),
        lag: lags.map(|all| all.iter().sum()),
        missing: missing.cloned().collect(),
    }
}

/// A claim.
#[must_use]
pub fn claim_of(c: &v1::GroupClaim) -> Claim {
    Claim { uid: c.uid.clone(), owner: c.owner.clone() }
}

/// The configuration as a wish; `None` when no wish could have made it.
fn wish_of(name: &str, topics: &[String], c: &v1::GroupConfig) -> Option<GroupWish> {
    if !matches!(c.mode.as_str(), "" | "stream") {
        return None;
    }
    let all = [Assignor::CooperativeSticky, Assignor::Range, Assignor::Uniform, Assignor::Static];
    let assignor = match c.assignor.as_str() {
        "" => Assignor::CooperativeSticky,
        text => all.into_iter().find(|a| shown_assignor(*a) == text)?,
    };
    let mut fixed: BTreeMap<String, BTreeSet<(String, u32)>> = BTreeMap::new();
    for s in &c.static_assignment {
        let parts = s.partitions.iter().map(|p| (s.topic.clone(), *p));
        fixed.entry(s.instance.clone()).or_default().extend(parts);
    }
    Some(GroupWish {
        name: name.to_owned(),
        topics: topics.iter().cloned().collect(),
        assignor,
        fixed,
        start_at: c.start_at.as_ref().and_then(|s| s.at.as_ref()).map(|at| match at {
            At::Earliest(_) => StartAt::Earliest,
            At::Latest(_) => StartAt::Latest,
            At::TimestampMs(ms) => StartAt::Timestamp(*ms),
        }),
    })
}

/// The request that declares a group.
#[must_use]
pub fn declare(wish: &GroupWish, claim: &Claim, from_uid: Option<String>) -> v1::DeclareGroupRequest {
    let mut fixed: BTreeMap<(&str, &str), Vec<u32>> = BTreeMap::new();
    for (instance, parts) in &wish.fixed {
        for (topic, index) in parts {
            fixed.entry((instance, topic)).or_default().push(*index);
        }
    }
    let config = v1::GroupConfig {
        mode: "stream".to_owned(),
        assignor: shown_assignor(wish.assignor),
        static_assignment: fixed
            .into_iter()
            .map(|((instance, topic), partitions)| v1::StaticAssignment {
                instance: instance.to_owned(),
                topic: topic.to_owned(),
                partitions,
            })
            .collect(),
        start_at: wish.start_at.map(|at| v1::StartAt {
            at: Some(match at {
                StartAt::Earliest => At::Earliest(true),
                StartAt::Latest => At::Latest(true),
                StartAt::Timestamp(ms) => At::TimestampMs(ms),
            }),
        }),
        ..v1::GroupConfig::default()
    };
    v1::DeclareGroupRequest {
        group: wish.name.clone(),
        claim: Some(v1::GroupClaim { uid: claim.uid.clone(), owner: claim.owner.clone() }),
        topics: wish.topics.iter().cloned().collect(),
        config: Some(config),
        from_uid: from_uid.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_declared_is_seen_as_it_was_wished() {
        let parts = |all: &[(&str, u32)]| all.iter().map(|(t, p)| ((*t).to_owned(), *p)).collect();
        let wish = GroupWish {
            name: "g".into(),
            topics: ["a", "b"].map(str::to_owned).into(),
            assignor: Assignor::Static,
            fixed: [
                ("m-0".to_owned(), parts(&[("a", 0), ("a", 2), ("b", 0)])),
                ("m-1".to_owned(), parts(&[("a", 1)])),
            ]
            .into(),
            start_at: Some(StartAt::Timestamp(5)),
        };
        let claim = Claim { uid: "u".into(), owner: "o".into() };
        let request = declare(&wish, &claim, None);
        let described = v1::DescribeGroupResponse {
            summary: Some(v1::GroupSummary { name: "g".into(), ..v1::GroupSummary::default() }),
            declaration: Some(v1::GroupDeclaration {
                claim: request.claim.clone(),
                topics: request.topics.clone(),
                resets: vec![v1::GroupReset { id: "r".into(), to: "latest".into(), at_ms: 1 }],
            }),
            offsets: vec![v1::GroupOffset { topic: "a".into(), lag: 7, ..v1::GroupOffset::default() }],
            ..v1::DescribeGroupResponse::default()
        };
        let s = seen(&described, request.config.as_ref());
        assert_eq!((s.config.as_ref(), s.claim.as_ref()), (Some(&wish), Some(&claim)));
        assert_eq!((s.lag, s.missing.into_iter().collect::<Vec<_>>()), (Some(7), vec!["b".to_owned()]));
        assert_eq!(s.resets, [("r".to_owned(), "latest".to_owned())]);
        // One owner that did not tell: the sum is not known.
        let mut unknown = described;
        unknown.offsets.push(v1::GroupOffset { topic: "b".into(), lag: -1, ..v1::GroupOffset::default() });
        assert_eq!(seen(&unknown, None).lag, None);
        // A configuration that no object made is another one.
        let by_hand = v1::GroupConfig { mode: "queue".into(), ..v1::GroupConfig::default() };
        assert_eq!(seen(&unknown, Some(&by_hand)).config, None);
    }
}
