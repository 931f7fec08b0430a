//! The driver: one task per partition, and only while a ledger is open or something about the chain is under way.

use std::sync::{Arc, atomic::Ordering};

use tidemill_ledger::WriterEvent;
use tokio::{sync::mpsc, time::sleep};

use super::{PartitionLog, Stop, core::Core};
use crate::{LogState, ProduceError};

pub(super) type Events = mpsc::UnboundedReceiver<WriterEvent>;

/// What is to be done next.
enum Action {
    TakeOver,
    RecoverOwn,
    Roll,
    Close,
    Open,
    FinishRelease,
    Wait,
    Exit,
}

impl PartitionLog {
    /// Starts the driver when there is something for it to do, or wakes it.
    pub(super) fn drive_if_needed(self: &Arc<Self>, core: &mut Core) {
        if core.driver {
            if matches!(self.next_action(core), Action::Wait | Action::Exit) {
                return;
            }
            self.shared.kick.notify_one();
        } else if !matches!(self.next_action(core), Action::Wait | Action::Exit) {
            core.driver = true;
            let me = self.clone();
            tokio::spawn(async move { me.drive().await });
        }
    }

    fn next_action(&self, core: &Core) -> Action {
        match (core.state, &core.open) {
            (LogState::Closed | LogState::Dropped, _) => Action::Exit,
            (LogState::Recovering, _) => Action::TakeOver,
            (_, Some(o)) if o.fenced => Action::RecoverOwn,
            (LogState::Releasing, Some(_)) if self.shared.in_flight() == 0 && core.parked.is_empty() => {
                Action::Close
            }
            (LogState::Serving, Some(o)) if core.want_roll && !o.closing => Action::Roll,
            (LogState::Serving, Some(o))
                if core.want_close
                    && !o.closing
                    && self.shared.in_flight() == 0
                    && core.parked.is_empty() =>
            {
                Action::Close
            }
            (_, Some(_)) => Action::Wait,
            (LogState::Serving, None) if !core.parked.is_empty() || core.want_open => Action::Open,
            (LogState::Serving, None) => Action::Exit,
            (LogState::Releasing, None) => Action::FinishRelease,
        }
    }

    async fn drive(self: Arc<Self>) {
        let mut events: Option<Events> = None;
        let mut wait = self.ctx.config.retry.0;
        loop {
            let action = {
                let mut core = self.core.lock();
                let limits = self.limits();
                core.flush(&self.shared, limits);
                let action = self.next_action(&core);
                if matches!(action, Action::Exit) {
                    core.driver = false;
                    return;
                }
                action
            };
            let result = match action {
                Action::TakeOver => Box::pin(self.take_over()).await,
                Action::RecoverOwn => Box::pin(self.recover_own()).await,
                Action::Roll => Box::pin(self.roll()).await,
                Action::Close => Box::pin(self.close_open()).await,
                Action::Open => Box::pin(self.open_ledger()).await,
                Action::FinishRelease => {
                    self.finish_release();
                    Ok(None)
                }
                Action::Wait | Action::Exit => {
                    self.wait_for_work(&mut events).await;
                    continue;
                }
            };
            match result {
                Ok(opened) => {
                    wait = self.ctx.config.retry.0;
                    if opened.is_some() {
                        events = opened;
                    }
                    // `ready`, `release` and readers look again.
                    self.shared.progress.notify_waiters();
                }
                Err(Stop::Drop(why)) => self.drop_log(&why),
                Err(Stop::Retry(why)) => {
                    tracing::warn!(partition = %self.id, epoch = self.epoch.0, why, "trying again");
                    tokio::select! {
                        () = sleep(wait) => {}
                        () = self.gone() => {}
                    }
                    wait = (wait * 2).min(self.ctx.config.retry.1);
                }
            }
        }
    }

    async fn wait_for_work(&self, events: &mut Option<Events>) {
        if self.core.lock().state == LogState::Releasing {
            // The last acknowledgement wakes the driver; it may have come already.
            self.shared.flush_wanted.store(true, Ordering::Release);
            if self.shared.in_flight() == 0 && self.core.lock().parked.is_empty() {
                return;
            }
        }
        let event = async {
            match events {
                Some(rx) => rx.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.shared.kick.notified() => {}
            event = event => {
                let mut core = self.core.lock();
                match (event, core.open.as_mut()) {
                    (Some(WriterEvent::Fenced), Some(o)) => o.fenced = true,
                    (Some(WriterEvent::Degraded(_)), Some(o)) => o.degraded = true,
                    (Some(WriterEvent::Restored(_)), Some(o)) => o.degraded = false,
                    (Some(WriterEvent::RollWanted), Some(o)) => {
                        o.roll_wanted = true;
                        core.want_roll |= o.data_entries > 0;
                    }
                    (None, _) => *events = None,
                    (Some(_), None) => {}
                }
            }
        }
    }

    /// Resolves once the log serves no more.
    pub(super) async fn gone(&self) {
        self.until(|s| matches!(s, LogState::Closed | LogState::Dropped)).await;
    }

    /// Waits for a state.
    pub(super) async fn until(&self, is: impl Fn(LogState) -> bool) -> LogState {
        loop {
            let moved = self.shared.progress.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            let state = self.core.lock().state;
            if is(state) {
                return state;
            }
            moved.await;
        }
    }

    /// Another owner, no session any more, or no way to go on (1.3 step 4).
    pub(super) fn drop_log(&self, why: &str) {
        let (open, parked, calls) = {
            let mut core = self.core.lock();
            if matches!(core.state, LogState::Closed | LogState::Dropped) {
                return;
            }
            core.state = LogState::Dropped;
            core.readable = false;
            (core.open.take(), std::mem::take(&mut core.parked), std::mem::take(&mut core.unjudged))
        };
        tracing::info!(partition = %self.id, epoch = self.epoch.0, why, "partition dropped");
        if let Some(o) = &open {
            o.writer.abandon();
        }
        // Handed to a ledger: it may still be recovered.
        for op in self.shared.stop() {
            op.done.into_iter().for_each(|d| d.failed(ProduceError::Unknown));
        }
        // In no ledger, or known not written by a committed close.
        for op in parked {
            op.done.into_iter().for_each(|d| d.failed(ProduceError::NotWritten));
        }
        for call in calls {
            let _ = call.tx.send(Err(ProduceError::NotOwner));
        }
        self.shared.kick.notify_one();
        self.shared.progress.notify_waiters();
    }
}
