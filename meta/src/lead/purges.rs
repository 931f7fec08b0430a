//! When a tombstone's time has come (metadata, Time): two ticks past its deadline, far enough apart on one leader's monotonic
//! clock, with no jump between. Pure.

use std::{collections::BTreeMap, time::Duration};

use tidemill_metadata::State;
use tidemill_types::{
    TopicId, Version,
    meta::{MAX_BATCH, TombstoneRef},
};

/// What was seen of each tombstone that is past its deadline.
#[derive(Debug, Default)]
pub(crate) struct Purges {
    /// Version of its control record, and when a tick was past its deadline first.
    seen: BTreeMap<TopicId, (Version, Duration)>,
}

impl Purges {
    /// Another term: what another leader saw, on another clock, does not count.
    pub(crate) fn clear(&mut self) {
        self.seen.clear();
    }

    /// A tick was applied. Returns the tombstones to purge now, in commands of at most 1 000. `wait`: how far the two ticks must
    /// be apart.
    pub(crate) fn ticked(
        &mut self,
        state: &State,
        jump: bool,
        wait: Duration,
        now: Duration,
    ) -> Vec<Vec<TombstoneRef>> {
        let old = std::mem::take(&mut self.seen);
        // The tick after a jump is the first that counts.
        if jump {
            return Vec::new();
        }
        let mut due = Vec::new();
        for c in state.topic_controls() {
            if c.tombstone.as_ref().is_none_or(|t| state.wall_ms() < t.purge_at_ms) {
                continue;
            }
            let first = match old.get(&c.topic) {
                Some((version, at)) if *version == c.version => *at,
                _ => now,
            };
            self.seen.insert(c.topic, (c.version, first));
            if now.saturating_sub(first) >= wait && first != now {
                due.push(TombstoneRef { topic: c.topic, version: c.version, due: true });
            }
        }
        due.chunks(MAX_BATCH).map(<[TombstoneRef]>::to_vec).collect()
    }
}

#[cfg(test)]
mod tests {
    use tidemill_types::{
        BookieState, ClusterId, Endpoint, Incarnation, MemberId, MemberRole, RequestId, Revision, SessionId,
        TopicConfig, TopicName,
        meta::{
            Adoption, Command, ControlAction, ControlCommand, MemberSpec, Reply, Request, TopicDeletion,
            TopicWish,
        },
    };
    use uuid::Uuid;

    use super::*;

    struct Cluster {
        state: State,
        revision: u64,
    }

    impl Cluster {
        fn apply(&mut self, session: SessionId, command: Command) -> Reply {
            self.revision += 1;
            let request = Request { session, request: RequestId(self.revision), command };
            self.state.apply(Revision(self.revision), &request).result.unwrap()
        }

        fn control(&mut self, action: ControlAction) -> Reply {
            self.apply(SessionId::NONE, Command::Control(ControlCommand { epoch: None, action }))
        }

        fn tick(&mut self, wall_ms: i64, jump: bool) {
            self.apply(SessionId::NONE, Command::Tick { wall_ms, jump });
        }

        fn delete(&mut self) {
            let name = TopicName::new("t").unwrap();
            let deletion = TopicDeletion { name, uid: None, purge_after_ms: 1_000 };
            self.control(ControlAction::TombstoneTopics(vec![deletion]));
        }

        fn wish(&mut self) {
            let wish = TopicWish {
                name: TopicName::new("t").unwrap(),
                partitions: 1,
                config: TopicConfig::default(),
                claim: None,
                adoption: Adoption::Fail,
            };
            self.control(ControlAction::ApplyTopics(vec![wish]));
        }
    }

    fn cluster() -> Cluster {
        let mut c = Cluster { state: State::new(), revision: 0 };
        c.apply(SessionId::NONE, Command::Init { cluster: ClusterId(Uuid::from_u128(9)) });
        let spec = MemberSpec {
            cluster: None,
            id: MemberId(Uuid::from_u128(1)),
            role: MemberRole::Broker,
            name: "b".into(),
            incarnation: Incarnation(1),
            endpoint: Endpoint { host: "h".into(), port: 1 },
            zone: String::new(),
            free_bytes: 0,
            read_only: false,
        };
        c.apply(SessionId::NONE, Command::OpenSession(spec));
        assert_eq!(c.state.member(MemberId(Uuid::from_u128(1))).unwrap().state, BookieState::Rw);
        c.control(ControlAction::RaiseFeatureLevel { level: tidemill_metadata::FEATURE_LEVEL });
        c.tick(1_000_000, true);
        c.wish();
        c
    }

    const WAIT: Duration = Duration::from_secs(600);

    fn s(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn two_ticks_far_enough_apart() {
        let mut c = cluster();
        c.delete();
        let mut p = Purges::default();
        c.tick(1_000_500, false);
        assert!(p.ticked(&c.state, false, WAIT, s(0)).is_empty(), "before its time");
        c.tick(1_001_000, false);
        assert!(p.ticked(&c.state, false, WAIT, s(10)).is_empty(), "the first one");
        assert!(p.ticked(&c.state, false, WAIT, s(609)).is_empty(), "too near");
        let due = p.ticked(&c.state, false, WAIT, s(610));
        assert_eq!(due.iter().map(Vec::len).collect::<Vec<_>>(), [1]);
        c.control(ControlAction::PurgeTopics(due[0].clone()));
        assert_eq!(c.state.topics().count(), 0);
        assert!(p.ticked(&c.state, false, WAIT, s(2_000)).is_empty());
    }

    #[test]
    fn a_jump_a_new_term_and_a_new_tombstone_begin_anew() {
        let mut c = cluster();
        c.delete();
        let mut p = Purges::default();
        c.tick(2_000_000, true);
        assert!(p.ticked(&c.state, true, WAIT, s(0)).is_empty(), "a jump");
        assert!(p.ticked(&c.state, false, WAIT, s(600)).is_empty(), "the first after a jump");
        p.clear();
        assert!(p.ticked(&c.state, false, WAIT, s(1_200)).is_empty(), "the first of a term");
        // Undeleted and deleted again: another deadline, another tombstone.
        c.wish();
        c.delete();
        c.tick(3_000_000, false);
        assert!(p.ticked(&c.state, false, WAIT, s(1_800)).is_empty(), "the first of this tombstone");
        assert_eq!(p.ticked(&c.state, false, WAIT, s(2_400)).len(), 1);
    }
}
