//! The state of the log from the log: where it ends, and what its producers sent (2.1 rules 3 and 6).

use tidemill_ledger::LedgerReader;
use tidemill_record::batches;
use tidemill_types::{Entry, EntryId, LedgerRecord, Offset};

use super::{PartitionLog, Stop, op::Place};
use crate::{
    envelope::{Compaction, Envelope, Kind},
    producers::{Producers, Sequenced, SnapshotReader},
};

/// Bytes of one read during a rebuild.
const READ_BYTES: usize = 4 << 20;

fn broken(what: &str, e: impl std::fmt::Display) -> Stop {
    Stop::Retry(format!("{what}: {e}"))
}

pub(super) fn decode(entry: &Entry) -> Result<Envelope, Stop> {
    Envelope::decode(&entry.envelope()).map_err(|e| broken("envelope", e))
}

impl PartitionLog {
    /// Ledgers of the chain that have entries, newest first. All are CLOSED.
    fn not_empty<'a>(&'a self, ledgers: &'a [LedgerRecord]) -> impl Iterator<Item = LedgerReader> + 'a {
        ledgers
            .iter()
            .rev()
            .filter(|l| l.last_entry.is_some_and(|e| e >= EntryId::FIRST))
            .map(|l| self.ctx.ledgers.reader(l.clone()))
    }

    /// The last entry of a closed chain: the one that recovery has just read, if it is that of the newest ledger with entries.
    pub(super) async fn last_of_chain(
        &self,
        ledgers: &[LedgerRecord],
        known: Option<Entry>,
    ) -> Result<Option<Entry>, Stop> {
        let Some(reader) = self.not_empty(ledgers).next() else { return Ok(None) };
        let at = (reader.ledger(), reader.last_entry());
        match known.filter(|e| (e.header().ledger, e.header().entry) == at) {
            Some(entry) => Ok(Some(entry)),
            None => last_of(&reader).await.map(Some),
        }
    }

    /// The place behind the last entry of a closed chain.
    pub(super) fn end_of_chain(&self, last: Option<&Entry>) -> Result<Place, Stop> {
        let Some(last) = last else { return Ok(Place::start(self.core.lock().log_start)) };
        let e = decode(last)?;
        Ok(Place {
            next_offset: e.next_offset(),
            append_time_ms: e.append_time_ms,
            max_timestamp_ms: e.max_timestamp_so_far_ms,
        })
    }

    /// The producers: the newest complete snapshot, then every batch behind it. `last`: the last entry of the chain.
    pub(super) async fn rebuild(
        &self,
        ledgers: &[LedgerRecord],
        mut last: Option<Entry>,
    ) -> Result<Producers, Stop> {
        for reader in self.not_empty(ledgers) {
            let last = match last.take() {
                Some(entry) => entry,
                None => last_of(&reader).await?,
            };
            // A ledger without a complete snapshot ended before its first `data` entry: the one before it has the state.
            if let Some(first) = newest_snapshot(&last)? {
                return replay(&reader, first).await;
            }
        }
        Ok(Producers::default())
    }

    /// The producers as of the end of these ledgers, all CLOSED; `None` when that is not known: of the ledgers that one compaction
    /// wrote only the last has a snapshot.
    pub(super) async fn producers_at_end(&self, ledgers: &[LedgerRecord]) -> Result<Option<Producers>, Stop> {
        for (i, l) in ledgers.iter().enumerate().rev() {
            let Some(reader) = self.not_empty(&ledgers[i..=i]).next() else { continue };
            if let Some(first) = newest_snapshot(&last_of(&reader).await?)? {
                return replay(&reader, first).await.map(Some);
            }
            if l.records.is_some_and(|n| n > 0) {
                return Ok(None);
            }
        }
        Ok(Some(Producers::default()))
    }
}

async fn last_of(reader: &LedgerReader) -> Result<Entry, Stop> {
    reader.read(reader.last_entry()).await.map_err(|e| broken("last entry", e))
}

/// First piece of the newest complete snapshot of a ledger with this last entry.
fn newest_snapshot(last: &Entry) -> Result<Option<EntryId>, Stop> {
    let envelope = decode(last)?;
    if envelope.kind == Kind::State {
        let (index, of) = SnapshotReader::place(&last.body()).map_err(|e| broken("state entry", e))?;
        if index + 1 == of {
            return Ok(Some(EntryId(last.header().entry.0 - i64::from(index))));
        }
    }
    Ok((envelope.state_entry != EntryId::NONE).then_some(envelope.state_entry))
}

async fn replay(reader: &LedgerReader, first: EntryId) -> Result<Producers, Stop> {
    let mut snapshot = Some(SnapshotReader::default());
    let mut producers = Producers::default();
    let mut next = first;
    while next <= reader.last_entry() {
        let run = reader
            .read_range(next, reader.last_entry(), READ_BYTES)
            .await
            .map_err(|e| broken("replay", e))?;
        for entry in run {
            next = entry.header().entry.next();
            let envelope = decode(&entry)?;
            match (envelope.kind, snapshot.take()) {
                (Kind::State, Some(mut pieces)) => {
                    if pieces.add(&entry.body()).map_err(|e| broken("state entry", e))? {
                        producers = pieces.finish();
                    } else {
                        snapshot = Some(pieces);
                    }
                }
                (_, Some(_)) => return Err(Stop::Retry("a snapshot is cut off".to_owned())),
                (Kind::Data, None) => replay_entry(&mut producers, &envelope, &entry)?,
                // Pieces of a later snapshot that is not complete, and kinds that say nothing.
                (Kind::State | Kind::Barrier | Kind::Index, None) => {}
            }
        }
    }
    Ok(producers)
}

fn replay_entry(producers: &mut Producers, envelope: &Envelope, entry: &Entry) -> Result<(), Stop> {
    if envelope.compaction != Compaction::None {
        // Its batches stand before the snapshot: whatever wrote it was told by that.
        return Ok(());
    }
    let mut offset = envelope.base_offset.0;
    for batch in batches(entry.body()) {
        let header = batch.map_err(|e| broken("stored batch", e))?.header;
        if let Some(s) = Sequenced::of(&header) {
            producers.replay(&s, Offset(offset), envelope.append_time_ms);
        }
        offset += i64::from(header.last_offset_delta) + 1;
    }
    if offset == envelope.next_offset().0 {
        Ok(())
    } else {
        Err(Stop::Retry(format!("entry {} does not have the records of its envelope", entry.header().entry)))
    }
}
