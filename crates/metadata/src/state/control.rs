//! Reads of claims, tombstones and the operator epoch; dry runs; what stands against stopping a bookie.

use tidemill_types::meta::{
    BookieStanding, ControlAction, ControlAnswer, ControlCommand, ControlQuery, ControlReply, Rejection,
};
use tidemill_types::{
    BookieState, LedgerRecord, LedgerState, Member, MemberId, MemberRole, TopicControl, TopicRecord,
};

use super::State;
use super::query::{after, page};
use crate::limits::MAX_BATCH;
use crate::reject::invalid;

type TopicWithControl = (TopicRecord, Option<TopicControl>);

impl State {
    pub(super) fn control_query(&self, query: &ControlQuery) -> ControlAnswer {
        match query {
            ControlQuery::Operator => ControlAnswer::Operator(self.operator.clone()),
            ControlQuery::Topics { after: from, limit } => ControlAnswer::Topics(
                self.topics
                    .range(after(from))
                    .map(|(_, t)| self.with_control(t))
                    .take(page(*limit))
                    .collect(),
            ),
            ControlQuery::TopicsNamed(names) => ControlAnswer::Topics(
                names
                    .iter()
                    .take(MAX_BATCH)
                    .filter_map(|n| self.names.get(n).and_then(|id| self.topic(*id)))
                    .map(|t| self.with_control(t))
                    .collect(),
            ),
            ControlQuery::Try(command) => ControlAnswer::Tried(self.try_control(command)),
            ControlQuery::BookieStanding(bookie) => {
                ControlAnswer::BookieStanding(self.bookie_standing(*bookie))
            }
        }
    }

    fn with_control(&self, t: &TopicRecord) -> TopicWithControl {
        (t.clone(), self.topic_control(t.id).cloned())
    }

    /// The very code of the command, on a copy that is thrown away: a dry run cannot disagree with what follows.
    fn try_control(&self, command: &ControlCommand) -> Result<ControlReply, Rejection> {
        match command.action {
            ControlAction::ApplyTopics(_) | ControlAction::TombstoneTopics(_) => {
                self.clone().control(command, &mut Vec::new())
            }
            _ => Err(invalid("dry_run", "topics can be applied and deleted by way of trial, nothing else")),
        }
    }

    /// Walks all ledgers.
    fn bookie_standing(&self, bookie: MemberId) -> Option<BookieStanding> {
        self.member(bookie).filter(|m| m.role == MemberRole::Bookie)?;
        let is_dead = |id: &MemberId| {
            *id != bookie
                && self.member(*id).is_none_or(|m| {
                    m.session.is_none() || matches!(m.state, BookieState::Limbo | BookieState::Lost)
                })
        };
        let mut s = BookieStanding {
            named: self.named_count(bookie),
            other_writable: count(
                self.members()
                    .filter(|m: &&Member| m.is_writable_bookie() && m.session.is_some() && m.id != bookie),
            ),
            largest_copies: self
                .topics()
                .map(|t| u64::from(t.config.replication.copies))
                .max()
                .unwrap_or_default(),
            ..BookieStanding::default()
        };
        for l in self.ledgers() {
            let l: &LedgerRecord = l;
            s.under += u64::from(l.fragments.iter().any(|f| !f.under.is_empty()));
            s.unchecked += u64::from(l.unchecked);
            s.repairs += u64::from(l.repair.is_some());
            s.in_recovery += u64::from(l.state == LedgerState::InRecovery);
            s.with_dead += u64::from(l.fragments.iter().flat_map(|f| &f.ensemble).any(is_dead));
        }
        Some(s)
    }
}

fn count(items: impl Iterator) -> u64 {
    u64::try_from(items.count()).unwrap_or(u64::MAX)
}
