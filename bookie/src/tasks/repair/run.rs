//! One repair: the core's wishes carried out one after another, in small pieces.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tidemill_ledger::{
    BookieTable,
    core::{
        MetaOutcome,
        repair::{Abort, Input, Output, RepairCore, RepairRules},
    },
    transport::GrpcTransport,
};
use tidemill_meta_client::{MetaClient, MetaError};
use tidemill_types::{
    BookieId, Entry, EntryId, LedgerId, LedgerRecord,
    meta::{Answer, Command, FinishRepair, Query, Rejection, Reply},
};

use super::{local, remote};
use crate::shared::{Core, Serving};
use tidemill_runtime::Pace;

/// Entries under way at once. Bytes are bounded by the reads: one call's worth.
const WINDOW: usize = 1_024;
/// Pause before a quorum that did not answer is asked again.
const PAUSE: Duration = Duration::from_millis(500);
/// The end of a given-up repair is told so many times; the auditor ends it otherwise.
const TELL_TRIES: u32 = 5;

/// What repairs share.
pub(super) struct Worker {
    pub(super) core: Arc<Core>,
    pub(super) client: MetaClient,
    pub(super) serving: Arc<Serving>,
    pub(super) transport: GrpcTransport,
    pub(super) pace: Pace,
}

/// What the core wants and has not got yet.
#[derive(Default)]
struct Wishes {
    record: bool,
    list: bool,
    reads: VecDeque<(BookieId, EntryId)>,
    writes: Vec<Entry>,
    finish: Option<FinishRepair>,
}

impl Worker {
    /// Runs until the repair is over, or dropped. True: it was finished.
    pub(super) async fn repair(&self, ledger: LedgerId) -> bool {
        let mut core = RepairCore::new(self.serving.id, WINDOW, RepairRules::default());
        let mut table = BookieTable::default();
        let mut copies = 1;
        let mut wishes = Wishes::default();
        let mut out = Vec::new();
        core.start(&mut out);
        loop {
            for o in std::mem::take(&mut out) {
                match o {
                    Output::ReadRecord => wishes = Wishes { record: true, ..Wishes::default() },
                    Output::List => wishes.list = true,
                    Output::Read { source, entry } => wishes.reads.push_back((source, entry)),
                    Output::Write(entry) => wishes.writes.push(entry),
                    Output::Finish(end) => wishes.finish = Some(end),
                    Output::Done { .. } | Output::Gone | Output::NotMine | Output::Abort(..) => {
                        let finished = matches!(o, Output::Done { .. });
                        self.over(ledger, o).await;
                        return finished;
                    }
                }
            }
            if wishes.record {
                wishes.record = false;
                let record = self.record(ledger).await;
                (table, copies) = self.surroundings(record.as_ref()).await;
                core.step(Input::Record(record), &table, copies, &mut out);
            } else if wishes.list {
                wishes.list = false;
                let held = local::held(&self.serving.engine, ledger).await;
                core.step(Input::Listed(held), &table, copies, &mut out);
            } else if !wishes.writes.is_empty() {
                let entries = std::mem::take(&mut wishes.writes);
                let bytes = entries.iter().map(|e| e.bytes().len()).sum();
                self.pace.wait(bytes).await;
                let answers = local::add(&self.core, &self.serving, &entries).await;
                self.core.counters.repair_entries.inc_by(entries.len() as u64);
                self.core.counters.repair_bytes.inc_by(bytes as u64);
                for (e, answer) in entries.iter().zip(answers) {
                    let input = Input::Written { entry: e.header().entry, answer };
                    core.step(input, &table, copies, &mut out);
                }
            } else if let Some((source, first, last)) = run_of(&mut wishes.reads) {
                let at = (&table, self.serving.cluster);
                let answers = remote::read(&self.transport, at, source, ledger, (first, last)).await;
                // The byte limit ended the answer early: the rest is asked for next.
                let next = answers.last().map_or(first, |(e, _)| e.next());
                for e in (next.0..=last.0).rev() {
                    wishes.reads.push_front((source, EntryId(e)));
                }
                for (entry, answer) in answers {
                    core.step(Input::Read { source, entry, answer }, &table, copies, &mut out);
                }
            } else if let Some(end) = wishes.finish.take() {
                let outcome = self.finish(end).await;
                core.step(Input::Finished(outcome), &table, copies, &mut out);
            } else {
                tracing::error!(%ledger, "a repair wants nothing and is not over");
                return false;
            }
        }
    }

    /// Reads until there is an answer.
    async fn record(&self, ledger: LedgerId) -> Option<LedgerRecord> {
        loop {
            match self.client.ledger(ledger).await {
                Ok(record) => return record,
                Err(error) => tracing::debug!(%ledger, %error, "the record could not be read"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The members, and the copies that the topic wants.
    async fn surroundings(&self, record: Option<&LedgerRecord>) -> (BookieTable, usize) {
        let Some(record) = record else { return (BookieTable::default(), 1) };
        loop {
            let members = self.client.read(&Query::Members).await;
            let topic = self.client.read(&Query::Topic(record.partition.topic)).await;
            match (members, topic) {
                (Ok((Answer::Members(members), _)), Ok((Answer::Topic(topic), _))) => {
                    let copies = topic.map_or(1, |t| usize::from(t.config.replication.copies));
                    return (BookieTable::from_members(&members), copies);
                }
                (members, topic) => {
                    let why = members.err().or(topic.err());
                    tracing::debug!(?why, "members and topic could not be read");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn finish(&self, end: FinishRepair) -> MetaOutcome {
        match self.client.propose(Command::FinishRepair(end)).await {
            Ok(Ok(Reply::Ledger(record))) => MetaOutcome::Committed(record),
            Ok(Err(Rejection::SessionExpired)) => {
                tokio::time::sleep(PAUSE).await;
                MetaOutcome::Unknown
            }
            Ok(Err(rejection)) => MetaOutcome::Rejected(rejection),
            Ok(Ok(_)) => MetaOutcome::Unknown,
            // Nothing sent is as good as unknown: the record tells.
            Err(error) => {
                tracing::debug!(%error, "the end of a repair has no answer yet");
                tokio::time::sleep(PAUSE).await;
                MetaOutcome::Unknown
            }
        }
    }

    async fn over(&self, ledger: LedgerId, how: Output) {
        match how {
            Output::Done { copied } => {
                self.core.counters.repairs_done.inc();
                tracing::info!(%ledger, copied, "repaired");
            }
            Output::Abort(why, end) => {
                self.core.counters.repairs_abandoned.inc();
                match why {
                    Abort::Divergent(entry) => tracing::error!(
                        %ledger, %entry, "copies of an entry differ (R24); nothing was changed"
                    ),
                    Abort::Denied(entry) => tracing::error!(
                        %ledger, %entry, "every other member denies an entry that the ledger has: copies are lost"
                    ),
                    why => tracing::warn!(%ledger, ?why, "a repair was given up; another try follows"),
                }
                self.tell(end).await;
            }
            _ => tracing::debug!(%ledger, ?how, "a repair is over"),
        }
    }

    async fn tell(&self, end: FinishRepair) {
        for _ in 0..TELL_TRIES {
            match self.client.propose(Command::FinishRepair(end.clone())).await {
                Ok(Ok(_)) => return,
                Ok(Err(rejection)) => {
                    tracing::debug!(%rejection, "the repair was over already, or is taken up again");
                    return;
                }
                Err(MetaError::OutcomeUnknown { .. }) | Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

/// Takes the longest run of following entries from one source off the front.
fn run_of(reads: &mut VecDeque<(BookieId, EntryId)>) -> Option<(BookieId, EntryId, EntryId)> {
    let (source, first) = reads.pop_front()?;
    let mut last = first;
    while reads.front().is_some_and(|(s, e)| *s == source && *e == last.next()) {
        reads.pop_front();
        last = last.next();
    }
    Some((source, first, last))
}

#[cfg(test)]
mod tests {
    use tidemill_types::MemberId;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn runs_end_at_a_gap_and_at_another_source() {
        let (a, b) = (MemberId(Uuid::from_u128(1)), MemberId(Uuid::from_u128(2)));
        let mut reads: VecDeque<_> =
            [(a, 0), (a, 1), (a, 3), (b, 4)].into_iter().map(|(s, e)| (s, EntryId(e))).collect();
        assert_eq!(run_of(&mut reads), Some((a, EntryId(0), EntryId(1))));
        assert_eq!(run_of(&mut reads), Some((a, EntryId(3), EntryId(3))));
        assert_eq!(run_of(&mut reads), Some((b, EntryId(4), EntryId(4))));
        assert_eq!(run_of(&mut reads), None);
    }
}
