//! Many small commands as few large ones: what comes while one command is under way goes into the next.

use std::future::Future;

use futures::future::join_all;
use tidemill_ledger::MetaError;
use tidemill_meta_client::{MetaClient, MetaError as ClientError};
use tidemill_runtime::Supervisor;
use tidemill_types::{
    LedgerRecord,
    meta::{Command, MAX_BATCH, RecoveryStart, Rejection, Reply, TakeOver},
};
use tokio::sync::{mpsc, oneshot};

use super::of_command;

/// Verdict of one element, or why there is none.
type Outcome<V> = Result<Result<V, Rejection>, MetaError>;
type Asked<M> = (<M as Many>::Item, oneshot::Sender<Outcome<<M as Many>::Verdict>>);

/// A command whose elements are judged one by one.
pub(super) trait Many: 'static {
    /// An element.
    type Item: Clone + Send;
    /// What is said of one that was taken.
    type Verdict: Clone + Send;
    /// Of the task that sends.
    const TASK: &'static str;

    /// All in one.
    fn command(items: Vec<Self::Item>) -> Command;

    /// The verdicts in a reply to [`Self::command`]; `None` when it is not such a reply.
    fn verdicts(reply: Reply) -> Option<Vec<Result<Self::Verdict, Rejection>>>;

    /// The same for one element alone, if a quorum may not know the command for many.
    fn single(_item: &Self::Item) -> Option<Command> {
        None
    }

    /// The verdict in a reply to [`Self::single`].
    fn verdict(_reply: Reply) -> Option<Self::Verdict> {
        None
    }
}

/// `TakeOver`.
#[derive(Debug)]
pub(super) struct TakeOvers;

impl Many for TakeOvers {
    type Item = TakeOver;
    type Verdict = ();
    const TASK: &'static str = "take-overs";

    fn command(items: Vec<TakeOver>) -> Command {
        Command::TakeOver(items)
    }

    fn verdicts(reply: Reply) -> Option<Vec<Result<(), Rejection>>> {
        if let Reply::Each(each) = reply { Some(each) } else { None }
    }
}

/// `StartRecoveries`; below its feature level `StartRecovery`.
#[derive(Debug)]
pub(super) struct Recoveries;

impl Many for Recoveries {
    type Item = RecoveryStart;
    type Verdict = LedgerRecord;
    const TASK: &'static str = "recovery starts";

    fn command(items: Vec<RecoveryStart>) -> Command {
        Command::StartRecoveries(items)
    }

    fn verdicts(reply: Reply) -> Option<Vec<Result<LedgerRecord, Rejection>>> {
        if let Reply::Ledgers(each) = reply { Some(each) } else { None }
    }

    fn single(item: &RecoveryStart) -> Option<Command> {
        Some(Command::StartRecovery { ledger: item.ledger, version: item.version })
    }

    fn verdict(reply: Reply) -> Option<LedgerRecord> {
        if let Reply::Ledger(record) = reply { Some(record) } else { None }
    }
}

/// Hands elements to the task that sends them.
#[derive(Debug)]
pub(super) struct Batches<M: Many> {
    queue: mpsc::Sender<Asked<M>>,
}

impl<M: Many> Batches<M> {
    pub(super) fn start(client: MetaClient, sup: &Supervisor) -> Self {
        let (queue, rx) = mpsc::channel(MAX_BATCH);
        sup.spawn_until_stop(M::TASK, run::<M>(client, rx));
        Self { queue }
    }

    /// Sends one element and waits for its verdict.
    pub(super) fn send(&self, item: M::Item) -> impl Future<Output = Outcome<M::Verdict>> + Send + use<M> {
        let queue = self.queue.clone();
        async move {
            let (tx, rx) = oneshot::channel();
            if queue.send((item, tx)).await.is_err() {
                return Err(MetaError::Unavailable("the broker is stopping".to_owned()));
            }
            // The task may have ended with the command under way.
            rx.await.unwrap_or(Err(MetaError::OutcomeUnknown))
        }
    }
}

async fn run<M: Many>(client: MetaClient, mut rx: mpsc::Receiver<Asked<M>>) {
    let mut batch = Vec::new();
    while rx.recv_many(&mut batch, MAX_BATCH).await > 0 {
        let (items, waiting): (Vec<_>, Vec<_>) = batch.drain(..).unzip();
        let outcome = client.propose(M::command(items.clone())).await;
        if is_not_known(&outcome) && items.first().is_some_and(|i| M::single(i).is_some()) {
            one_by_one::<M>(&client, items, waiting).await;
        } else {
            answer::<M>(outcome.map_err(of_command), waiting);
        }
    }
}

/// Nothing was applied, because some member of the quorum has an older binary.
fn is_not_known(outcome: &Result<Result<Reply, Rejection>, ClientError>) -> bool {
    matches!(outcome, Ok(Err(Rejection::FeatureLevel { .. })) | Err(ClientError::Refused { .. }))
}

async fn one_by_one<M: Many>(
    client: &MetaClient,
    items: Vec<M::Item>,
    waiting: Vec<oneshot::Sender<Outcome<M::Verdict>>>,
) {
    let each = items.iter().filter_map(M::single).zip(waiting).map(|(command, tx)| async move {
        let outcome = match client.propose(command).await.map_err(of_command) {
            Ok(Ok(reply)) => M::verdict(reply).map(Ok).ok_or(MetaError::OutcomeUnknown),
            Ok(Err(r)) => Ok(Err(r)),
            Err(e) => Err(e),
        };
        // A receiver that is gone had its partition dropped.
        let _gone = tx.send(outcome);
    });
    join_all(each).await;
}

/// Gives every element its verdict. A receiver that is gone had its partition dropped.
fn answer<M: Many>(
    outcome: Result<Result<Reply, Rejection>, MetaError>,
    waiting: Vec<oneshot::Sender<Outcome<M::Verdict>>>,
) {
    let all: Outcome<M::Verdict> = match outcome {
        Ok(Ok(reply)) => match M::verdicts(reply) {
            Some(each) if each.len() == waiting.len() => {
                for (verdict, tx) in each.into_iter().zip(waiting) {
                    let _gone = tx.send(Ok(verdict));
                }
                return;
            }
            // Applied, and nothing can be said of the elements.
            _ => Err(MetaError::OutcomeUnknown),
        },
        Ok(Err(r)) => Ok(Err(r)),
        Err(e) => Err(e),
    };
    for tx in waiting {
        let _gone = tx.send(all.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Both<V> = (Vec<oneshot::Sender<Outcome<V>>>, Vec<oneshot::Receiver<Outcome<V>>>);

    fn asked<V>(n: usize) -> Both<V> {
        (0..n).map(|_| oneshot::channel()).unzip()
    }

    #[test]
    fn each_element_gets_its_own_verdict() {
        let (tx, mut rx) = asked(2);
        let no = Rejection::Conflict { why: "x".into() };
        answer::<TakeOvers>(Ok(Ok(Reply::Each(vec![Ok(()), Err(no.clone())]))), tx);
        assert_eq!(rx[0].try_recv().unwrap(), Ok(Ok(())));
        assert_eq!(rx[1].try_recv().unwrap(), Ok(Err(no)));
    }

    #[test]
    fn a_reply_of_another_length_or_kind_settles_nothing() {
        for reply in [Reply::Each(vec![Ok(())]), Reply::Done] {
            let (tx, mut rx) = asked(2);
            answer::<TakeOvers>(Ok(Ok(reply)), tx);
            for r in &mut rx {
                assert_eq!(r.try_recv().unwrap(), Err(MetaError::OutcomeUnknown));
            }
        }
        let (tx, mut rx) = asked(1);
        answer::<Recoveries>(Ok(Ok(Reply::Each(vec![Ok(())]))), tx);
        assert_eq!(rx[0].try_recv().unwrap(), Err(MetaError::OutcomeUnknown));
    }

    #[test]
    fn only_a_definite_refusal_is_sent_again_one_by_one() {
        assert!(is_not_known(&Ok(Err(Rejection::FeatureLevel { needed: 4, level: 3 }))));
        let code = tidemill_types::ErrorCode::InvalidArgument;
        assert!(is_not_known(&Err(ClientError::Refused { code, why: "x".into() })));
        assert!(!is_not_known(&Err(ClientError::OutcomeUnknown { why: "x".into() })));
        assert!(!is_not_known(&Err(ClientError::Malformed { why: "x".into() })));
        assert!(!is_not_known(&Ok(Err(Rejection::SessionExpired))));
        assert!(!is_not_known(&Ok(Ok(Reply::Done))));
    }
}
