//! The topics of the cluster, as subscriptions need them.

use std::collections::{BTreeMap, BTreeSet};

use regex::{Regex, RegexBuilder};
use tidemill_types::{TopicId, TopicName};

use crate::{GroupError, Subscription};

/// Longest pattern, bytes.
const MAX_PATTERN: usize = 1_024;
/// Memory of a compiled pattern, bytes.
const MAX_COMPILED: usize = 1 << 20;

/// A topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicEntry {
    /// Its id.
    pub id: TopicId,
    /// Its partition count.
    pub partitions: u32,
}

/// Live topics by name, as one view of the metadata had them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topics {
    by_name: BTreeMap<TopicName, TopicEntry>,
    names: BTreeMap<TopicId, TopicName>,
    /// Topics that are being deleted: they can come back, so nothing of theirs is forgotten.
    kept: BTreeSet<TopicId>,
    highest: TopicId,
}

impl Topics {
    /// From the live topics, and those that are being deleted.
    #[must_use]
    pub fn new(
        live: impl IntoIterator<Item = (TopicName, TopicEntry)>,
        deleting: impl IntoIterator<Item = TopicId>,
    ) -> Self {
        let mut t = Self { kept: deleting.into_iter().collect(), ..Self::default() };
        for (name, entry) in live {
            t.names.insert(entry.id, name.clone());
            t.by_name.insert(name, entry);
        }
        let all = t.names.keys().chain(&t.kept);
        t.highest = all.max().copied().unwrap_or_default();
        t
    }

    /// A topic by name.
    #[must_use]
    pub fn get(&self, name: &TopicName) -> Option<TopicEntry> {
        self.by_name.get(name).copied()
    }

    /// The name of a live topic.
    #[must_use]
    pub fn name(&self, id: TopicId) -> Option<&TopicName> {
        self.names.get(&id)
    }

    /// Whether a topic is surely gone for good. Ids ascend and are never used again, so a view that knows a later topic
    /// has seen this one come and go; a view that knows no later one may just be old.
    #[must_use]
    pub fn is_gone(&self, id: TopicId) -> bool {
        id < self.highest && !self.names.contains_key(&id) && !self.kept.contains(&id)
    }

    /// The topics of a subscription with their partition counts. Patterns never take internal topics.
    pub(crate) fn resolve(&self, s: &Subscription, patterns: &mut Patterns) -> BTreeMap<TopicId, u32> {
        let mut out = BTreeMap::new();
        for name in &s.topics {
            if let Some(t) = self.by_name.get(name) {
                out.insert(t.id, t.partitions);
            }
        }
        if let Some(pattern) = s.pattern.as_deref().and_then(|p| patterns.get(p)) {
            for (name, t) in self.by_name.iter().filter(|(n, _)| !n.is_internal()) {
                if pattern.is_match(name.as_str()) {
                    out.insert(t.id, t.partitions);
                }
            }
        }
        out
    }
}

/// Compiled patterns of one pass.
#[derive(Debug, Default)]
pub(crate) struct Patterns(BTreeMap<String, Option<Regex>>);

impl Patterns {
    fn get(&mut self, pattern: &str) -> Option<&Regex> {
        // One that does not compile was refused at the join; from a log of another version it takes nothing.
        self.0.entry(pattern.to_owned()).or_insert_with(|| compile(pattern).ok()).as_ref()
    }
}

/// The whole name has to match.
pub(crate) fn compile(pattern: &str) -> Result<Regex, GroupError> {
    if pattern.is_empty() || pattern.len() > MAX_PATTERN {
        return Err(GroupError::invalid(
            "pattern",
            format!("a regular expression of 1 to {MAX_PATTERN} bytes"),
        ));
    }
    RegexBuilder::new(&format!("^(?:{pattern})$"))
        .size_limit(MAX_COMPILED)
        .build()
        .map_err(|e| GroupError::invalid("pattern", e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(name: &str, id: u64, partitions: u32) -> (TopicName, TopicEntry) {
        (TopicName::new(name).unwrap(), TopicEntry { id: TopicId(id), partitions })
    }

    #[test]
    fn a_pattern_takes_whole_names_and_no_internal_topic() {
        let t = Topics::new([topic("orders", 1, 2), topic("orders-eu", 2, 3), topic("__x", 3, 1)], []);
        let s = |p: &str| Subscription { topics: BTreeSet::new(), pattern: Some(p.into()) };
        let ids =
            |p: &str| t.resolve(&s(p), &mut Patterns::default()).into_keys().map(|i| i.0).collect::<Vec<_>>();
        assert_eq!(ids("orders"), [1]);
        assert_eq!(ids("orders.*"), [1, 2]);
        assert_eq!(ids(".*"), [1, 2]);
        for bad in ["", "(", &"x".repeat(1_025), "(a{1000}){1000}"] {
            assert!(compile(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_topic_is_gone_only_when_a_later_one_is_known() {
        let t = Topics::new([topic("a", 1, 1), topic("c", 5, 1)], [TopicId(3)]);
        assert!(t.is_gone(TopicId(2)) && t.is_gone(TopicId(4)));
        assert!(!t.is_gone(TopicId(1)) && !t.is_gone(TopicId(3)) && !t.is_gone(TopicId(6)));
        assert!(!Topics::default().is_gone(TopicId(1)));
    }
}
