//! The health task: judges every bookie in use and tells the writers what follows (R28).

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tidemill_types::BookieId;
use tokio_util::sync::CancellationToken;

use super::shared::Shared;
use crate::core::{
    health::{self, Reason, Verdict},
    writer::Input,
};

const TICK: Duration = Duration::from_millis(250);

pub(crate) async fn run(shared: Weak<Shared>, stop: CancellationToken) {
    loop {
        let Some(s) = shared.upgrade() else { return };
        tokio::select! {
            () = tokio::time::sleep(TICK) => {}
            () = s.judge.notified() => {}
            () = stop.cancelled() => return,
        }
        judge(&s);
    }
}

/// One pass.
fn judge(s: &Arc<Shared>) {
    let now = s.now();
    let table = s.table();
    let mut change: Vec<(BookieId, Reason)> = Vec::new();
    for link in s.links() {
        let info = table.get(link.bookie);
        link.hear(
            health::Input::Member {
                state: info.map(|b| b.state),
                restarting: info.is_some_and(|b| b.restarting),
            },
            now,
        );
        if let Verdict::Change(reason) = link.verdict(now) {
            change.push((link.bookie, reason));
        }
        while let Some(sent) = link.overdue(now, s.config.add_timeout) {
            if let Some(w) = s.writer(sent.ledger) {
                w.step(Input::ResendDue { index: sent.index, attempt: sent.attempt, entry: sent.entry });
            }
        }
    }
    if change.is_empty() {
        return;
    }
    let failed: Vec<BookieId> = change.iter().map(|(b, _)| *b).collect();
    for w in s.writers() {
        let members = w.members();
        let mine: Vec<BookieId> = change
            .iter()
            .filter(|(b, r)| members.contains(b) && *r != Reason::Draining)
            .map(|(b, _)| *b)
            .collect();
        if change.iter().any(|(b, r)| *r == Reason::Draining && members.contains(b)) {
            w.want_roll();
        }
        if mine.is_empty() {
            continue;
        }
        let spares: Vec<BookieId> =
            table.spares(&members, &mine).into_iter().map(|b| b.id).filter(|b| !failed.contains(b)).collect();
        w.step(Input::Replace { failed: &mine, spares: &spares });
        if spares.is_empty() {
            for (b, _) in change.iter().filter(|(b, r)| *r == Reason::Backlog && mine.contains(b)) {
                w.step(Input::Shed { bookie: *b });
            }
        }
    }
}
