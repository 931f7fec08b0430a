//! From the log into the state: who may send, what was executed already, which operation runs.

use std::sync::Arc;

use tidemill_types::meta::{Change, Command, MAX_BATCH, Rejection, Reply, Request};
use tidemill_types::{Revision, SessionId};

use super::session::Known;
use super::{Applied, State};
use crate::reject::invalid;

/// Who may send a command.
#[derive(PartialEq, Eq)]
enum Sender {
    /// Outside any session: a process that has none yet, or the quorum's leader.
    Quorum,
    /// A live session.
    Session,
    /// Either.
    Any,
}

fn sender(command: &Command) -> Sender {
    match command {
        Command::Init { .. }
        | Command::BookieBoot(_)
        | Command::OpenSession(_)
        | Command::ExpireSession { .. }
        | Command::EndSession { .. }
        | Command::Tick { .. }
        | Command::ReportBookies(_)
        | Command::Assign(_) => Sender::Quorum,
        // Of the leader as auditor; each is conditional on a state or version, so that a repeated one is harmless.
        Command::SetMemberState { .. }
        | Command::StartRecovery { .. }
        | Command::Close { .. }
        | Command::RemoveLedger { .. }
        | Command::StartRepair(_)
        | Command::FinishRepair(_)
        | Command::MarkChecked { .. }
        // Of a broker for its caller, or of the leader (purges, feature level); conditional as well.
        | Command::Control(_) => Sender::Any,
        Command::CloseSession
        | Command::CreateTopic { .. }
        | Command::AlterTopic { .. }
        | Command::DeleteTopic { .. }
        | Command::Acquire(_)
        | Command::Release(_)
        | Command::CreateLedger(_)
        | Command::ChangeEnsemble(_)
        | Command::TakeOver(_)
        | Command::StartRecoveries(_)
        | Command::Roll(_)
        | Command::Append(_)
        | Command::AdvanceLogStart { .. }
        | Command::AllocateProducerIds { .. }
        | Command::ConfigureGroup { .. }
        | Command::RemoveGroup { .. }
        | Command::Compact(_) => Sender::Session,
    }
}

fn batch_len(command: &Command) -> usize {
    match command {
        Command::ReportBookies(v) => v.len(),
        Command::Assign(v) => v.len(),
        Command::Acquire(v) => v.len(),
        Command::Release(v) => v.len(),
        Command::TakeOver(v) => v.len(),
        Command::StartRecoveries(v) => v.len(),
        _ => 0,
    }
}

impl State {
    /// Applies the command at `revision` of the log. Revisions ascend; those between two commands belong to log
    /// entries without a command.
    pub fn apply(&mut self, revision: Revision, request: &Request) -> Applied {
        self.advance(revision);
        if request.session == SessionId::NONE {
            return match sender(&request.command) {
                Sender::Session => rejected(Rejection::SessionExpired),
                Sender::Quorum | Sender::Any => self.execute(request),
            };
        }
        let Some(session) = self.sessions.get(&request.session) else {
            return rejected(Rejection::SessionExpired);
        };
        // R9: a retry gets the answer of the first try, and nothing runs twice.
        match session.look_up(request.request) {
            Known::Done(result) => return Applied { result: *result, changes: Vec::new() },
            Known::Forgotten => return rejected(Rejection::OutcomeUnknown),
            Known::New => {}
        }
        let applied = if sender(&request.command) == Sender::Quorum {
            rejected(invalid("session", "this command carries no session"))
        } else {
            self.execute(request)
        };
        // Rejections are kept too: a late duplicate of a request that was told "no" must not run after all.
        // The session may be gone by now: it closed itself, or retired its own member.
        if let Some(session) = self.sessions.get_mut(&request.session) {
            Arc::make_mut(session).remember(request.request, &applied.result);
        }
        applied
    }

    /// Notes a log entry without a command.
    pub fn advance(&mut self, revision: Revision) {
        self.counters.revision = self.counters.revision.max(revision);
    }

    fn execute(&mut self, request: &Request) -> Applied {
        let mut changes = Vec::new();
        let result = self.run(request.session, &request.command, &mut changes);
        if result.is_err() {
            // Every operation checks before it writes; this only makes sure that a watch never sees a rejected one.
            changes.clear();
        }
        Applied { result, changes }
    }

    fn run(
        &mut self,
        session: SessionId,
        command: &Command,
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        if let Command::Init { cluster } = command {
            return self.init(*cluster);
        }
        let cluster = self.counters.cluster.ok_or(Rejection::NotInitialised)?;
        if batch_len(command) > MAX_BATCH {
            return Err(invalid("elements", format_args!("at most {MAX_BATCH} per command")));
        }
        match command {
            Command::Init { cluster } => self.init(*cluster),
            Command::BookieBoot(spec) => self.bookie_boot(cluster, spec, out),
            Command::OpenSession(spec) => self.open_session(cluster, spec, out),
            Command::CloseSession => self.close_session(session, out),
            Command::ExpireSession { session, member } => self.expire_session(*session, *member, out),
            Command::EndSession { session, member, incarnation } => {
                self.end_session_of(*session, *member, *incarnation, out)
            }
            Command::Tick { wall_ms, jump } => self.tick(*wall_ms, *jump, out),
            Command::ReportBookies(reports) => self.report_bookies(reports, out),
            Command::SetMemberState { member, state, restarting } => {
                self.set_member_state(session, *member, *state, *restarting, out)
            }
            Command::CreateTopic { name, partitions, config } => {
                self.create_topic(name, *partitions, config, out)
            }
            Command::AlterTopic { topic, version, partitions, config } => {
                self.alter_topic(*topic, *version, *partitions, config.as_ref(), out)
            }
            Command::DeleteTopic { topic } => self.delete_topic(*topic, out),
            Command::Assign(items) => self.assign(items, out),
            Command::Acquire(items) => self.acquire(session, items, out),
            Command::Release(items) => self.release(session, items, out),
            Command::CreateLedger(c) => self.create_ledger(session, c),
            Command::ChangeEnsemble(c) => self.change_ensemble(c),
            Command::StartRecovery { ledger, version } => self.start_recovery(*ledger, *version),
            Command::TakeOver(items) => self.take_over(session, items, out),
            Command::Roll(roll) => self.roll(session, roll, out),
            Command::Close { close, epoch } => self.close(session, close, *epoch),
            Command::Append(append) => self.append(session, append, out),
            Command::AdvanceLogStart { partition, epoch, to } => {
                self.advance_log_start(session, *partition, *epoch, *to, out)
            }
            Command::AllocateProducerIds { count } => self.allocate_producer_ids(*count),
            Command::RemoveLedger { ledger, version } => self.remove_ledger(*ledger, *version),
            Command::StartRepair(start) => self.start_repair(start),
            Command::FinishRepair(finish) => self.finish_repair(finish),
            Command::MarkChecked { ledger, version } => self.mark_checked(*ledger, *version),
            Command::ConfigureGroup { name, version, config } => {
                self.configure_group(name, *version, config, out)
            }
            Command::RemoveGroup { name, version } => self.remove_group(name, *version, out),
            Command::Control(c) => self.control(c, out).map(Reply::Control),
            Command::StartRecoveries(items) => self.start_recoveries(items),
            Command::Compact(c) => self.compact(session, c, out),
        }
    }
}

fn rejected(why: Rejection) -> Applied {
    Applied { result: Err(why), changes: Vec::new() }
}
