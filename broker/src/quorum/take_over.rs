//! Take-overs of many partitions in few commands: what comes while one command is under way goes into the next.

use std::future::Future;

use tidemill_ledger::MetaError;
use tidemill_meta_client::MetaClient;
use tidemill_runtime::Supervisor;
use tidemill_types::meta::{Command, MAX_BATCH, Rejection, Reply, TakeOver};
use tokio::sync::{mpsc, oneshot};

use super::of_command;

type Outcome = Result<Result<(), Rejection>, MetaError>;
type Asked = (TakeOver, oneshot::Sender<Outcome>);

/// Hands take-overs to the task that sends them.
#[derive(Debug)]
pub(crate) struct TakeOvers {
    queue: mpsc::Sender<Asked>,
}

impl TakeOvers {
    pub(super) fn start(client: MetaClient, sup: &Supervisor) -> Self {
        let (queue, rx) = mpsc::channel(MAX_BATCH);
        sup.spawn_until_stop("take-overs", run(client, rx));
        Self { queue }
    }

    /// Sends one element and waits for its verdict.
    pub(super) fn send(&self, item: TakeOver) -> impl Future<Output = Outcome> + Send + use<> {
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

async fn run(client: MetaClient, mut rx: mpsc::Receiver<Asked>) {
    let mut batch = Vec::new();
    while rx.recv_many(&mut batch, MAX_BATCH).await > 0 {
        let (items, waiting): (Vec<_>, Vec<_>) = batch.drain(..).unzip();
        let outcome = client.propose(Command::TakeOver(items)).await;
        answer(outcome.map_err(of_command), waiting);
    }
}

/// Gives every element its verdict. A receiver that is gone had its partition dropped.
fn answer(outcome: Result<Result<Reply, Rejection>, MetaError>, waiting: Vec<oneshot::Sender<Outcome>>) {
    match outcome {
        Ok(Ok(Reply::Each(each))) if each.len() == waiting.len() => {
            for (verdict, tx) in each.into_iter().zip(waiting) {
                let _gone = tx.send(Ok(verdict));
            }
        }
        // Applied, and nothing can be said of the elements.
        Ok(Ok(_)) => all(waiting, &Err(MetaError::OutcomeUnknown)),
        Ok(Err(r)) => all(waiting, &Ok(Err(r))),
        Err(e) => all(waiting, &Err(e)),
    }
}

fn all(waiting: Vec<oneshot::Sender<Outcome>>, outcome: &Outcome) {
    for tx in waiting {
        let _gone = tx.send(outcome.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(n: usize) -> (Vec<oneshot::Sender<Outcome>>, Vec<oneshot::Receiver<Outcome>>) {
        (0..n).map(|_| oneshot::channel()).unzip()
    }

    #[test]
    fn each_element_gets_its_own_verdict() {
        let (tx, mut rx) = asked(2);
        let no = Rejection::Conflict { why: "x".into() };
        answer(Ok(Ok(Reply::Each(vec![Ok(()), Err(no.clone())]))), tx);
        assert_eq!(rx[0].try_recv().unwrap(), Ok(Ok(())));
        assert_eq!(rx[1].try_recv().unwrap(), Ok(Err(no)));
    }

    #[test]
    fn a_reply_of_another_length_settles_nothing() {
        let (tx, mut rx) = asked(2);
        answer(Ok(Ok(Reply::Each(vec![Ok(())]))), tx);
        for r in &mut rx {
            assert_eq!(r.try_recv().unwrap(), Err(MetaError::OutcomeUnknown));
        }
    }
}
