//! One commit group: build, write, sync, index, acknowledge, in this order (R17, R19).

use std::{io, sync::Arc};

use super::{core::Core, queue::Op, reserve::Need, roll::RollError};
use crate::{
    acks::Acks,
    counters::add,
    error::Poison,
    format::{record, states::Deletion},
    outcome::{AddKind, UnknownReason},
    shared::Shared,
};

/// An operation and where its record's bytes lie in the group; `None` when it needs no record.
pub(super) struct Placed {
    pub(super) op: Op,
    pub(super) at: Option<usize>,
    /// Of a collection.
    pub(super) deletion: Option<Deletion>,
}

impl Core {
    /// Writes what was taken from the queue.
    pub(super) fn commit(&mut self, shared: &Shared, mut ops: Vec<Op>) -> Result<(), Poison> {
        if ops.iter().any(Self::is_plain) && !self.find_room(shared, &ops, Need::Plain)? {
            let (plain, urgent) = ops.into_iter().partition(Self::is_plain);
            self.refuse(shared, plain);
            ops = urgent;
        }
        if ops.iter().any(Self::has_record)
            && !ops.iter().any(Self::is_plain)
            && !self.find_room(shared, &ops, Need::Urgent)?
        {
            self.refuse(shared, ops);
            return Ok(());
        }
        let mut placed = self.build(ops);
        if self.builder.is_empty() {
            // Only waiters: everything before them is synced and indexed already.
            self.apply(shared, placed, 0);
            return Ok(());
        }
        match self.write_group(shared, false)? {
            Some(at) => self.apply(shared, placed, at),
            None => {
                for p in &mut placed {
                    p.at = None;
                }
                self.fail(shared, placed.into_iter().map(|p| p.op).collect(), UnknownReason::NotWritten);
            }
        }
        Ok(())
    }

    /// Whether there is a segment for the records of these operations.
    fn find_room(&mut self, shared: &Shared, ops: &[Op], need: Need) -> Result<bool, Poison> {
        let bytes: usize = ops.iter().map(Op::weight).sum();
        match self.make_room(shared, bytes as u64, ops.len() as u64, need) {
            Ok(()) => Ok(true),
            Err(RollError::Stalled) => Ok(false),
            Err(RollError::Fatal(p)) => Err(p),
        }
    }

    /// Plain adds end where the reserve begins.
    fn is_plain(op: &Op) -> bool {
        matches!(op, Op::Add { kind: AddKind::Normal, .. })
    }

    fn has_record(op: &Op) -> bool {
        match op {
            Op::Add { .. } | Op::Lac { .. } | Op::Collect { .. } => true,
            Op::Fence { ledger, .. } => !ledger.state.lock().fence_durable,
            Op::Again { .. } => false,
        }
    }

    fn build(&mut self, ops: Vec<Op>) -> Vec<Placed> {
        self.builder.clear();
        let mut placed = Vec::with_capacity(ops.len());
        for op in ops {
            let mut deletion = None;
            let at = match &op {
                Op::Add { bytes, kind, .. } => {
                    let kind = match kind {
                        AddKind::Normal => record::ADD,
                        AddKind::Recovery => record::RECOVERY_ADD,
                    };
                    Some(self.builder.push_entry(kind, bytes))
                }
                Op::Fence { ledger, .. } if Self::has_record(&op) => {
                    Some(self.builder.push(|b| record::put_fence(b, ledger.id)))
                }
                Op::Lac { ledger, lac, .. } => {
                    Some(self.builder.push(|b| record::put_lac(b, ledger.id, *lac)))
                }
                Op::Collect { ledger, .. } => {
                    let bound = self.lane.control.lock().now.next_number;
                    let home = self.active.as_ref().map_or(0, |a| a.segment.number);
                    deletion = Some(Deletion { bound, home });
                    Some(self.builder.push(|b| record::put_collect(b, ledger.id, bound)))
                }
                Op::Fence { .. } | Op::Again { .. } => None,
            };
            placed.push(Placed { op, at, deletion });
        }
        placed
    }

    /// Writes and syncs the group in the builder. Answers its offset, or `None` when the write failed: then the segment is given up,
    /// nothing of the group counts, though its bytes may come back when the process dies before the segment is sealed.
    ///
    /// # Errors
    /// The sync failed: fatal (R17).
    pub(super) fn write_group(&mut self, shared: &Shared, closing: bool) -> Result<Option<u64>, Poison> {
        let number = self.next_group;
        let Some(active) = &mut self.active else { return Ok(None) };
        let segment = Arc::clone(&active.segment);
        let at = active.data_end;
        let parts = self.builder.finish(segment.uuid, number, closing);
        let len = parts.iter().map(|p| p.len() as u64).sum();
        let written = segment.file.write_blocks_at(&parts, at);
        self.builder.release();
        if let Err(error) = written {
            tracing::error!(%error, path = %segment.path.display(), "a write failed, the segment is given up");
            active.must_seal = true;
            add(&shared.counters.failed_writes, 1);
            if error.kind() == io::ErrorKind::StorageFull {
                self.out_of_space(shared);
            }
            return Ok(None);
        }
        let before = shared.config.clock.boottime();
        if let Err(error) = segment.file.sync_data() {
            return Err(shared.poison("sync", &segment.path, &error));
        }
        let now = shared.config.clock.boottime();
        let took = u64::try_from(now.saturating_sub(before).as_micros()).unwrap_or(u64::MAX);
        shared.counters.sync.lock().record(took);
        active.data_end = at + len;
        active.last_group = number;
        self.next_group = number + 1;
        self.closing_at = (!closing).then(|| now + shared.config.closing_delay);
        {
            let mut position = self.lane.position.lock();
            position.segment = u64::from(segment.number);
            position.group = number;
        }
        Self::count_written(shared, len);
        add(&shared.counters.groups, 1);
        Ok(Some(at))
    }

    /// Writes the empty group that proves the last one (R19).
    pub(super) fn close_group(&mut self, shared: &Shared) -> Result<(), Poison> {
        self.closing_at = None;
        let room = self.active.as_ref().is_some_and(|a| !a.must_seal);
        // Without an open segment the last group stands in a sealed one, whose footer proves it.
        if room {
            self.builder.clear();
            if self.write_group(shared, true)?.is_some() {
                add(&shared.counters.closing_groups, 1);
            }
        }
        Ok(())
    }

    /// Answers operations of which nothing was written for want of room.
    fn refuse(&mut self, shared: &Shared, ops: Vec<Op>) {
        add(&shared.counters.refused_read_only, ops.len() as u64);
        self.give_up(shared, ops, None);
    }

    /// Answers operations whose outcome is not known.
    fn fail(&mut self, shared: &Shared, ops: Vec<Op>, why: UnknownReason) {
        self.give_up(shared, ops, Some(why));
    }

    fn give_up(&mut self, shared: &Shared, ops: Vec<Op>, why: Option<UnknownReason>) {
        let mut acks = Acks::default();
        let mut later: Vec<Box<dyn FnOnce()>> = Vec::new();
        for op in ops {
            Self::give_up_one(shared, op, why, &mut acks, &mut later);
        }
        acks.send();
        for answer in later {
            answer();
        }
    }
}
