//! What every assignor promises, over random groups.

use proptest::prelude::*;
use tidemill_types::{StaticAssignment, TopicName};

use super::*;

fn id(n: usize) -> MemberId {
    format!("m{n:02}").into()
}

fn p(topic: u64, index: u32) -> PartitionId {
    PartitionId { topic: TopicId(topic), index }
}

fn group(n: usize, topics: &[u64]) -> BTreeMap<MemberId, Candidate> {
    let topics: BTreeSet<_> = topics.iter().map(|t| TopicId(*t)).collect();
    (0..n).map(|i| (id(i), Candidate { topics: topics.clone(), ..Candidate::default() })).collect()
}

fn with(assignor: Assignor) -> GroupConfig {
    GroupConfig { assignor, ..GroupConfig::default() }
}

fn run(assignor: Assignor, c: &BTreeMap<MemberId, Candidate>, t: &BTreeMap<TopicId, u32>) -> Target {
    assign(Some(&with(assignor)), c, t, |_| None)
}

fn counts(t: &Target) -> Vec<usize> {
    t.values().map(BTreeSet::len).collect()
}

fn moved(before: &Target, after: &Target) -> usize {
    let gone = |(m, have): (&MemberId, &BTreeSet<PartitionId>)| {
        have.iter().filter(|p| after.get(m).is_none_or(|a| !a.contains(p))).count()
    };
    before.iter().map(gone).sum()
}

fn follow(c: &mut BTreeMap<MemberId, Candidate>, t: &Target) {
    for (id, c) in c.iter_mut() {
        c.before = t.get(id).cloned().unwrap_or_default();
    }
}

#[test]
fn range_keeps_neighbours_together_and_the_same_index_of_two_topics() {
    let topics = BTreeMap::from([(TopicId(1), 7), (TopicId(2), 7)]);
    let t = run(Assignor::Range, &group(3, &[1, 2]), &topics);
    assert_eq!(t[&id(0)], (0..3).flat_map(|i| [p(1, i), p(2, i)]).collect());
    assert_eq!(t[&id(2)], (5..7).flat_map(|i| [p(1, i), p(2, i)]).collect());
}

#[test]
fn static_follows_the_configuration_alone() {
    let name = |s: &str| TopicName::new(s).unwrap();
    let part = |instance: &str, topic: &str, partitions: &[u32]| StaticAssignment {
        instance: instance.into(),
        topic: name(topic),
        partitions: partitions.to_vec(),
    };
    let config = GroupConfig {
        static_assignment: vec![part("a", "t", &[0, 2, 9]), part("b", "t", &[1]), part("a", "unknown", &[0])],
        ..with(Assignor::Static)
    };
    let mut c = group(2, &[1]);
    c.get_mut(&id(1)).unwrap().instance = Some("a".into());
    let named = |n: &TopicName| (n.as_str() == "t").then_some(TopicId(1));
    let t = assign(Some(&config), &c, &BTreeMap::from([(TopicId(1), 4)]), named);
    assert_eq!(t[&id(1)], BTreeSet::from([p(1, 0), p(1, 2)]));
    assert!(t[&id(0)].is_empty());
}

#[test]
fn one_of_ten_leaves_a_hundred_partitions_and_only_its_own_move() {
    let topics = BTreeMap::from([(TopicId(1), 100)]);
    let mut c = group(10, &[1]);
    let first = run(Assignor::CooperativeSticky, &c, &topics);
    assert_eq!(counts(&first), [10; 10]);
    follow(&mut c, &first);
    c.remove(&id(3));
    let second = run(Assignor::CooperativeSticky, &c, &topics);
    assert_eq!(moved(&first, &second), 10, "only what the member had");
    // And one joins: at most a fair share moves.
    follow(&mut c, &second);
    c.insert(id(3), group(1, &[1]).remove(&id(0)).unwrap());
    let third = run(Assignor::CooperativeSticky, &c, &topics);
    assert_eq!((moved(&second, &third), counts(&third)), (10, vec![10; 10]));
}

/// 2.8 bug 14 (apache/kafka#10985): two members that both claim a partition.
#[test]
fn bug_14_a_partition_that_two_claim_goes_to_one() {
    let topics = BTreeMap::from([(TopicId(1), 4)]);
    let mut c = group(2, &[1]);
    for m in c.values_mut() {
        m.before = (0..4).map(|i| p(1, i)).collect();
    }
    let t = run(Assignor::CooperativeSticky, &c, &topics);
    assert_eq!(counts(&t), [2, 2]);
    assert!(t[&id(0)].is_disjoint(&t[&id(1)]));
}

fn some_group() -> impl Strategy<Value = (Vec<Vec<u64>>, Vec<u32>)> {
    let members = proptest::collection::vec(proptest::collection::vec(1..4u64, 0..4), 0..8);
    (members, proptest::collection::vec(0..12u32, 3..4))
}

proptest! {
    #[test]
    fn each_partition_goes_to_one_that_wants_it((members, sizes) in some_group(), leave in 0..8usize) {
        let topics: BTreeMap<_, _> = (1..).map(TopicId).zip(sizes).collect();
        let mut c: BTreeMap<_, _> = members
            .iter()
            .enumerate()
            .map(|(i, t)| {
                let topics = t.iter().map(|t| TopicId(*t)).collect();
                (id(i), Candidate { topics, ..Candidate::default() })
            })
            .collect();
        for assignor in [Assignor::Range, Assignor::Uniform, Assignor::CooperativeSticky] {
            let t = run(assignor, &c, &topics);
            check(&c, &topics, &t);
            prop_assert_eq!(&run(assignor, &c, &topics), &t, "the same input, the same answer");
            if assignor != Assignor::Range {
                check_even(&c, &t);
            }
        }
        // Nothing changed: nothing moves. Somebody left: what the others have moves only to make it more even.
        let first = run(Assignor::CooperativeSticky, &c, &topics);
        follow(&mut c, &first);
        let again = run(Assignor::CooperativeSticky, &c, &topics);
        prop_assert_eq!(&again, &first);
        c.remove(&id(leave));
        let second = run(Assignor::CooperativeSticky, &c, &topics);
        check(&c, &topics, &second);
        check_even(&c, &second);
        let same = c.values().all(|m| m.topics == c.values().next().unwrap().topics);
        if same && !c.is_empty() {
            let stays = first.iter().filter(|(m, _)| **m != id(leave));
            let kept: Target = stays.map(|(m, have)| (m.clone(), have.clone())).collect();
            // With equal subscriptions a leave takes nothing from those who stay.
            let had: BTreeSet<_> = first.get(&id(leave)).map(|s| s.iter().map(|p| p.topic).collect()).unwrap_or_default();
            let covered = c.values().next().is_some_and(|m| had.is_subset(&m.topics));
            if covered && first.keys().len() == c.len() + usize::from(first.contains_key(&id(leave)))
                && first.iter().all(|(m, _)| *m == id(leave) || c.contains_key(m))
                && members.get(leave).is_some_and(|t| {
                    let t: BTreeSet<_> = t.iter().map(|t| TopicId(*t)).collect();
                    c.values().all(|m| m.topics == t)
                })
            {
                prop_assert_eq!(moved(&kept, &second), 0);
            }
        }
    }
}

fn check(c: &BTreeMap<MemberId, Candidate>, topics: &BTreeMap<TopicId, u32>, t: &Target) {
    assert!(t.keys().eq(c.keys()));
    let mut seen = BTreeSet::new();
    for (m, have) in t {
        for p in have {
            assert!(c[m].topics.contains(&p.topic), "{m} does not want {p}");
            assert!(seen.insert(*p), "{p} twice");
        }
    }
    assert_eq!(seen, wanted(c, topics));
}

/// No single move makes it more even.
fn check_even(c: &BTreeMap<MemberId, Candidate>, t: &Target) {
    for (a, have) in t {
        for p in have {
            for (b, other) in t {
                let better = a != b && c[b].topics.contains(&p.topic) && other.len() + 1 < have.len();
                assert!(!better, "{p} should move from {a} ({}) to {b} ({})", have.len(), other.len());
            }
        }
    }
}
