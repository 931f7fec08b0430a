//! The plan of partitions to brokers, made when members or topics change. The plan itself is the crate
//! `tidemill-placement`'s; here stands when a broker counts.

use std::{collections::BTreeMap, time::Duration};

use tidemill_metadata::State;
use tidemill_placement::{BrokerView, PartitionView, plan};
use tidemill_types::{
    BookieState, MemberId, MemberRole, SessionId,
    meta::{Assignment, MAX_BATCH},
};

/// Which brokers are live, and since when.
#[derive(Debug)]
pub(crate) struct Planner {
    /// A broker that came (back) gets partitions after it has been live for so long.
    settle: Duration,
    /// Session, and when it was seen first; `None` for those that were live when the term began.
    since: BTreeMap<MemberId, (SessionId, Option<Duration>)>,
    term: Option<u64>,
}

/// A plan to be proposed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Commands of at most 1 000 assignments.
    pub(crate) batches: Vec<Vec<Assignment>>,
    /// When to look again although nothing changed: a broker settles then.
    pub(crate) again_at: Option<Duration>,
}

impl Planner {
    pub(crate) fn new(settle: Duration) -> Self {
        Self { settle, since: BTreeMap::new(), term: None }
    }

    /// The plan for the state as of now.
    pub(crate) fn plan(&mut self, term: u64, state: &State, now: Duration) -> Plan {
        // Brokers that are live when a term begins were live before.
        let first = self.term != Some(term);
        self.term = Some(term);
        let live: Vec<(MemberId, SessionId, bool)> = state
            .members()
            .filter(|m| m.role == MemberRole::Broker)
            .filter_map(|m| m.session.map(|s| (m.id, s, m.state == BookieState::Draining)))
            .collect();
        let old = std::mem::take(&mut self.since);
        for (id, session, _) in &live {
            let since = match old.get(id) {
                Some((s, at)) if s == session => *at,
                _ if first => None,
                _ => Some(now),
            };
            self.since.insert(*id, (*session, since));
        }
        let settled = |id: &MemberId| {
            self.since.get(id).is_some_and(|(_, at)| at.is_none_or(|at| now >= at + self.settle))
        };
        let brokers: Vec<BrokerView> =
            live.iter().map(|(id, _, draining)| BrokerView { id: *id, draining: *draining }).collect();
        let mut counted: Vec<BrokerView> = brokers.iter().copied().filter(|b| settled(&b.id)).collect();
        // Better one that just came than nobody.
        if counted.iter().all(|b| b.draining) {
            counted = brokers;
        }
        let partitions: Vec<PartitionView> = state
            .partitions()
            .map(|p| PartitionView {
                id: p.id,
                owner: p.owner.filter(|o| state.is_live(o.session)).map(|o| o.broker),
                assigned: p.assigned,
            })
            .collect();
        let batches = plan(&counted, &partitions).chunks(MAX_BATCH).map(<[Assignment]>::to_vec).collect();
        let again_at = self
            .since
            .values()
            .filter_map(|(_, at)| at.map(|at| at + self.settle))
            .filter(|at| *at > now)
            .min();
        Plan { batches, again_at }
    }
}

#[cfg(test)]
mod tests {
    use tidemill_types::{
        ClusterId, Endpoint, Incarnation, RequestId, Revision, TopicConfig, TopicName,
        meta::{Command, MemberSpec, Reply, Request},
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

        fn broker(&mut self, n: u128, incarnation: u64) -> SessionId {
            let spec = MemberSpec {
                cluster: None,
                id: MemberId(Uuid::from_u128(n)),
                role: MemberRole::Broker,
                name: format!("broker-{n}"),
                incarnation: Incarnation(incarnation),
                endpoint: Endpoint { host: "h".into(), port: 1 },
                zone: String::new(),
                free_bytes: 0,
                read_only: false,
            };
            match self.apply(SessionId::NONE, Command::OpenSession(spec)) {
                Reply::Session { session, .. } => session,
                other => panic!("{other:?}"),
            }
        }

        fn run(&mut self, plan: Plan) -> BTreeMap<u128, usize> {
            for batch in plan.batches {
                self.apply(SessionId::NONE, Command::Assign(batch));
            }
            let mut counts = BTreeMap::new();
            for p in self.state.partitions() {
                *counts.entry(p.assigned.map_or(0, |b| b.0.as_u128())).or_default() += 1;
            }
            counts
        }
    }

    #[test]
    fn a_broker_that_went_loses_its_partitions_at_once_and_gets_them_back_when_it_settled() {
        let mut c = Cluster { state: State::new(), revision: 0 };
        c.apply(SessionId::NONE, Command::Init { cluster: ClusterId(Uuid::from_u128(9)) });
        let first = c.broker(1, 1);
        let second = c.broker(2, 1);
        let name = TopicName::new("t").unwrap();
        c.apply(first, Command::CreateTopic { name, partitions: 10, config: TopicConfig::default() });
        let ms = Duration::from_millis;
        let mut p = Planner::new(ms(2_000));
        let plan = p.plan(1, &c.state, ms(0));
        assert_eq!(c.run(plan), BTreeMap::from([(1, 5), (2, 5)]), "live when the term began");
        c.apply(second, Command::CloseSession);
        let plan = p.plan(1, &c.state, ms(100));
        assert_eq!(c.run(plan), BTreeMap::from([(1, 10)]));
        c.broker(2, 2);
        let plan = p.plan(1, &c.state, ms(1_000));
        assert_eq!((plan.batches.len(), plan.again_at), (0, Some(ms(3_000))), "not yet");
        let plan = p.plan(1, &c.state, ms(3_000));
        assert_eq!(plan.again_at, None);
        assert_eq!(c.run(plan), BTreeMap::from([(1, 5), (2, 5)]));
        let plan = p.plan(1, &c.state, ms(9_000));
        assert_eq!(plan, Plan::default(), "a balanced plan is left alone");
    }
}
