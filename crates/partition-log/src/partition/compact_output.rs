//! Output ledgers of a compaction: created, written with the normal writer, closed, in no chain yet.

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tidemill_ledger::{AppendHandle, CommitError, LedgerWriter};
use tidemill_types::{LedgerId, meta::Command};
use tokio::time::timeout;

use super::{
    PartitionLog,
    compact::{Failed, later},
};
use crate::compaction::Packed;

/// Bytes of the output that wait for acknowledgement.
const IN_FLIGHT: usize = 4 << 20;
/// With bookies away or full a pass gives its ledgers up, so that they take no room.
const ACK_WAIT: Duration = Duration::from_secs(60);

/// Takes what a packer gives.
pub(super) struct Output<'a> {
    log: &'a Arc<PartitionLog>,
    closed: Vec<LedgerId>,
    writer: Option<LedgerWriter>,
    waiting: VecDeque<(AppendHandle, usize)>,
    in_flight: usize,
}

impl<'a> Output<'a> {
    pub(super) fn new(log: &'a Arc<PartitionLog>) -> Self {
        Self { log, closed: Vec::new(), writer: None, waiting: VecDeque::new(), in_flight: 0 }
    }

    /// Writes and closes; what was taken is gone from `packed`.
    pub(super) async fn take(&mut self, packed: &mut Vec<Packed>) -> Result<(), Failed> {
        for p in packed.drain(..) {
            match p {
                Packed::Entry { envelope, body } => {
                    let bytes = body.iter().map(bytes::Bytes::len).sum::<usize>();
                    self.log.ctx.compaction_pace.wait(bytes).await;
                    let writer = self.writer().await?;
                    let handle = writer.append(&envelope.encode(), &body).map_err(|e| later("append", e))?;
                    self.log.ctx.compaction.written_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
                    self.waiting.push_back((handle, bytes));
                    self.in_flight += bytes;
                    self.acknowledged(IN_FLIGHT).await?;
                }
                Packed::Close { span } => self.close(span).await?,
            }
        }
        Ok(())
    }

    async fn writer(&mut self) -> Result<LedgerWriter, Failed> {
        if let Some(writer) = &self.writer {
            return Ok(writer.clone());
        }
        self.log.check_serving()?;
        let record = self.log.create_ledger().await?;
        let writer = self.log.ctx.ledgers.open_writer(record);
        self.writer = Some(writer.clone());
        Ok(writer)
    }

    /// Waits until at most so many bytes wait.
    async fn acknowledged(&mut self, at_most: usize) -> Result<(), Failed> {
        while self.in_flight > at_most || (at_most == 0 && !self.waiting.is_empty()) {
            let Some((handle, bytes)) = self.waiting.pop_front() else { return Ok(()) };
            let done =
                timeout(ACK_WAIT, handle).await.map_err(|_| later("append", "not acknowledged in time"))?;
            done.map_err(|e| later("append", e))?;
            self.in_flight -= bytes;
        }
        Ok(())
    }

    async fn close(&mut self, span: u64) -> Result<(), Failed> {
        self.acknowledged(0).await?;
        self.log.check_serving()?;
        let Some(writer) = &self.writer else { return Ok(()) };
        let ticket = writer.begin_close().await.map_err(|e| later("close", e))?;
        let epoch = Some(self.log.epoch);
        match ticket.commit(span, move |close| Command::Close { close, epoch }).await {
            Ok(_) => {}
            Err(CommitError::SessionExpired) => return Err(Failed::Gone),
            Err(e) => return Err(later("close", e)),
        }
        self.closed.push(writer.ledger());
        self.writer = None;
        Ok(())
    }

    /// The closed ledgers, in order.
    pub(super) fn take_closed(&mut self) -> Vec<LedgerId> {
        std::mem::take(&mut self.closed)
    }

    /// Gives everything up; the ledgers that are to be discarded.
    pub(super) fn abandon(&mut self) -> Vec<LedgerId> {
        let mut all = self.take_closed();
        if let Some(writer) = self.writer.take() {
            writer.abandon();
            all.push(writer.ledger());
        }
        all
    }
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        // A pass that is cut off: nothing of it is linked.
        if let Some(writer) = self.writer.take() {
            writer.abandon();
        }
    }
}
