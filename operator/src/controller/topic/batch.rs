//! Calls for topics, batched per Cluster (rule 17): looks, wishes and deletions have a queue each, so that none waits for
//! another, and no Cluster waits for another one.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidemill_client::{ClientError, Control, ErrorCode, v1};
use tidemill_runtime::Supervisor;
use tokio::sync::{mpsc, oneshot};

use crate::link::{Link, no_answer};

/// Elements of one call.
const MOST: usize = 500;
/// Wishes that come within this time share a call.
const GATHER: Duration = Duration::from_millis(20);
/// Elements waiting; past it a pass is told to come back.
const QUEUE: usize = 2_000;
/// After a failed call nothing is sent for so long: the answer is the failure, at once.
const COOL: Duration = Duration::from_secs(3);

/// Why there is no result. Nothing is known of the outcome; asking again is safe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoAnswer(pub String);

type Answer<T> = oneshot::Sender<Result<T, NoAnswer>>;

/// What the Cluster has of one topic.
#[derive(Clone, Debug)]
pub struct Look {
    /// The topic; `None`: there is none.
    pub topic: Option<v1::TopicState>,
    /// The rest of the answer: defaults and limits, shared by all who asked together.
    pub page: Arc<v1::ListTopicsResponse>,
}

/// The queues of one Cluster. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Batches {
    looks: mpsc::Sender<(String, Answer<Look>)>,
    wishes: mpsc::Sender<(v1::TopicWish, Answer<v1::TopicResult>)>,
    deletions: mpsc::Sender<(v1::TopicDeletion, Answer<v1::DeletionResult>)>,
}

impl Batches {
    /// Starts the two tasks; they end with `supervisor`, or when the last handle is dropped.
    #[must_use]
    pub fn start(link: Arc<Link>, supervisor: &Supervisor) -> Self {
        let (looks, looked) = mpsc::channel(QUEUE);
        let (wishes, wished) = mpsc::channel(QUEUE);
        let (deletions, deleted) = mpsc::channel(QUEUE);
        let look = Worker::new(link.clone());
        supervisor.spawn_until_stop("topic looks", async move {
            look.run(looked, String::clone, |control, names| async move { list(&control, names).await })
                .await;
        });
        let apply = Worker::new(link.clone());
        supervisor.spawn_until_stop("topic wishes", async move {
            apply
                .run(
                    wished,
                    |w: &v1::TopicWish| w.name.clone(),
                    |control, topics| async move {
                        let r = v1::ApplyTopicsRequest { topics, dry_run: false, wait_ms: 0 };
                        control.apply_topics(r).await.map(|a| a.results)
                    },
                )
                .await;
        });
        let delete = Worker::new(link);
        supervisor.spawn_until_stop("topic deletions", async move {
            delete
                .run(
                    deleted,
                    |d: &v1::TopicDeletion| d.name.clone(),
                    |control, topics| async move {
                        let r = v1::DeleteTopicsRequest { topics, dry_run: false };
                        control.delete_topics(r).await.map(|a| a.results)
                    },
                )
                .await;
        });
        Self { looks, wishes, deletions }
    }

    /// What the Cluster has of a topic.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub async fn look(&self, name: String) -> Result<Look, NoAnswer> {
        ask(&self.looks, name).await
    }

    /// Makes a topic be as wished.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub async fn apply(&self, wish: v1::TopicWish) -> Result<v1::TopicResult, NoAnswer> {
        ask(&self.wishes, wish).await
    }

    /// Turns a topic into a tombstone.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub async fn delete(&self, deletion: v1::TopicDeletion) -> Result<v1::DeletionResult, NoAnswer> {
        ask(&self.deletions, deletion).await
    }
}

/// One look per name, in their order.
async fn list(control: &Control, names: Vec<String>) -> Result<Vec<Look>, ClientError> {
    let request = v1::ListTopicsRequest { names: names.clone(), ..v1::ListTopicsRequest::default() };
    let mut page = control.list_topics(request).await?;
    let mut topics: HashMap<String, v1::TopicState> =
        page.topics.drain(..).map(|t| (t.name.clone(), t)).collect();
    let page = Arc::new(page);
    Ok(names.iter().map(|n| Look { topic: topics.remove(n), page: page.clone() }).collect())
}

async fn ask<Q, A>(queue: &mpsc::Sender<(Q, Answer<A>)>, question: Q) -> Result<A, NoAnswer> {
    let (answer, told) = oneshot::channel();
    queue
        .try_send((question, answer))
        .map_err(|_| NoAnswer("too many topics wait for this Cluster".to_owned()))?;
    told.await.map_err(|_| NoAnswer("the operator is stopping".to_owned()))?
}

struct Worker {
    link: Arc<Link>,
    failed: Mutex<Option<(Instant, NoAnswer)>>,
}

impl Worker {
    fn new(link: Arc<Link>) -> Self {
        Self { link, failed: Mutex::new(None) }
    }

    async fn run<Q, A, F>(
        &self,
        mut queue: mpsc::Receiver<(Q, Answer<A>)>,
        name: impl Fn(&Q) -> String,
        call: impl Fn(Control, Vec<Q>) -> F,
    ) where
        F: Future<Output = Result<Vec<A>, ClientError>>,
    {
        // A name stands once in a call; its next question waits for the next one.
        let mut held: Option<(Q, Answer<A>)> = None;
        loop {
            let first = match held.take() {
                Some(first) => first,
                None => match queue.recv().await {
                    Some(first) => first,
                    None => return,
                },
            };
            let mut names = std::collections::BTreeSet::from([name(&first.0)]);
            let mut batch = vec![first];
            let until = tokio::time::Instant::now() + GATHER;
            while batch.len() < MOST {
                match tokio::time::timeout_at(until, queue.recv()).await {
                    Ok(Some(next)) if names.insert(name(&next.0)) => batch.push(next),
                    Ok(Some(again)) => {
                        held = Some(again);
                        break;
                    }
                    Ok(None) | Err(_) => break,
                }
            }
            let (questions, answers): (Vec<Q>, Vec<Answer<A>>) = batch.into_iter().unzip();
            match self.send(questions, &call).await {
                Ok(results) if results.len() == answers.len() => {
                    for (answer, result) in answers.into_iter().zip(results) {
                        let _gone = answer.send(Ok(result));
                    }
                }
                Ok(_) => tell(answers, &NoAnswer("an answer of another length".to_owned())),
                Err(why) => tell(answers, &why),
            }
        }
    }

    async fn send<Q, A, F>(
        &self,
        questions: Vec<Q>,
        call: impl Fn(Control, Vec<Q>) -> F,
    ) -> Result<Vec<A>, NoAnswer>
    where
        F: Future<Output = Result<Vec<A>, ClientError>>,
    {
        if let Some((at, why)) = self.failed.lock().clone()
            && at.elapsed() < COOL
        {
            return Err(why);
        }
        let result = match self.link.control().await {
            Ok(control) => call(control, questions).await.map_err(|e| {
                if e.code == Some(ErrorCode::StaleOperatorEpoch) {
                    self.link.forget_epoch();
                }
                tracing::debug!(error = %e, "a call for topics failed");
                NoAnswer(no_answer(&e))
            }),
            Err(why) => Err(NoAnswer(why)),
        };
        *self.failed.lock() = result.as_ref().err().map(|why| (Instant::now(), why.clone()));
        result
    }
}

fn tell<A>(answers: Vec<Answer<A>>, why: &NoAnswer) {
    for answer in answers {
        let _gone = answer.send(Err(why.clone()));
    }
}
