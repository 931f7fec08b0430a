//! The writer's side: inputs for its core, and what its outputs do.

use tidemill_ledger::core::{MetaOutcome, writer};
use tidemill_types::{BookieId, Incarnation};

use super::{
    Scope,
    ledger::{State, Writer, number},
    net::Msg,
};

/// Tells the writer that a bookie can be sent to.
pub(super) fn bookie_up(core: &mut writer::WriterCore, bookie: BookieId) -> Vec<writer::Output> {
    let mut out = Vec::new();
    core.step(writer::Input::BookieUp { bookie, incarnation: Incarnation(1) }, &mut out);
    out
}

pub(super) fn writer_step(scope: &Scope, s: &mut State, input: writer::Input<'_>) {
    let out = s.writer.edit(|w| {
        let mut out = Vec::new();
        w.core.step(input, &mut out);
        out
    });
    writer_outputs(scope, s, out);
}

pub(super) fn writer_outputs(scope: &Scope, s: &mut State, out: Vec<writer::Output>) {
    for o in out {
        match o {
            writer::Output::Send { index, bookie, attempt, entry } => {
                s.net.send(Msg::Add { bookie: number(bookie), index, attempt, entry });
            }
            writer::Output::Acknowledged { lac } => {
                s.writer.edit(|w: &mut Writer| w.acked = w.acked.max(lac));
            }
            writer::Output::MembersChanged => {
                let members: Vec<BookieId> = s.writer.core.unacknowledged().map(|(b, _)| b).collect();
                for b in members {
                    let out = s.writer.edit(|w| bookie_up(&mut w.core, b));
                    writer_outputs(scope, s, out);
                }
            }
            writer::Output::Propose(change) => s.net.send(Msg::Change { change, detached: false }),
            writer::Output::ReadRecord => {
                let record = s.meta.record.clone();
                writer_step(scope, s, writer::Input::Record(Some(record)));
            }
            writer::Output::CloseReady | writer::Output::CloseSettled(writer::CloseState::SendAgain) => {
                if let Some(close) = s.writer.edit(|w| w.core.close_command()) {
                    s.net.send(Msg::WriterClose { close, detached: false });
                }
            }
            writer::Output::ResendLater { .. }
            | writer::Output::ChangeAborted
            | writer::Output::CloseSettled(_)
            | writer::Output::Fenced
            | writer::Output::Degraded(_)
            | writer::Output::Restored(_)
            | writer::Output::RollWanted
            | writer::Output::VoidAnswer
            | writer::Output::Divergent(..) => {}
        }
    }
}

/// The outcome of a command is not known: it may still come to pass.
pub(super) fn lose_outcome(scope: &Scope, s: &mut State, n: usize) {
    let input = match s.net.take(n) {
        Some(Msg::Change { change, .. }) => {
            s.net.send(Msg::Change { change, detached: true });
            writer::Input::ChangeOutcome(MetaOutcome::Unknown)
        }
        Some(Msg::WriterClose { close, .. }) => {
            s.net.send(Msg::WriterClose { close, detached: true });
            writer::Input::CloseOutcome(MetaOutcome::Unknown)
        }
        _ => return,
    };
    s.writer.edit(|w| w.unknowns_left -= 1);
    writer_step(scope, s, input);
}
