//! Calls for groups of one Cluster: a bounded number at once, and none for a while after one that nobody answered, so that a
//! Cluster that is down does not slow down the others (rule 17).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidemill_client::{ClientError, ErrorCode, Groups};
use tidemill_crd::plan::Refusal;
use tokio::sync::Semaphore;

use crate::link::{Link, no_answer};

/// Groups of one Cluster that are worked on at once.
const AT_ONCE: usize = 16;
/// Longest wait for that.
const PATIENCE: Duration = Duration::from_secs(2);
/// After a call without an answer nothing is sent for so long.
const COOL: Duration = Duration::from_secs(3);

/// The calls of one Cluster. Cheap to clone.
#[derive(Clone, Debug)]
pub struct GroupCalls {
    link: Arc<Link>,
    places: Arc<Semaphore>,
    failed: Arc<Mutex<Option<(Instant, String)>>>,
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// Nobody answered, or too many wait: nothing is known.
    NoAnswer(String),
    /// The cluster said no.
    Refused(Box<Refusal>),
}

impl GroupCalls {
    /// Through this connection.
    #[must_use]
    pub fn new(link: Arc<Link>) -> Self {
        Self { link, places: Arc::new(Semaphore::new(AT_ONCE)), failed: Arc::default() }
    }

    /// Runs calls for one group.
    pub(super) async fn run<T, F>(&self, calls: impl FnOnce(Groups) -> F) -> Result<T, Failed>
    where
        F: Future<Output = Result<T, ClientError>>,
    {
        self.warm()?;
        let Ok(Ok(_place)) = tokio::time::timeout(PATIENCE, self.places.acquire()).await else {
            return Err(Failed::NoAnswer("too many groups wait for this Cluster".to_owned()));
        };
        self.warm()?;
        let groups = match self.link.groups().await {
            Ok(groups) => groups,
            Err(why) => return Err(self.cool(why)),
        };
        match calls(groups).await {
            Ok(done) => {
                *self.failed.lock() = None;
                Ok(done)
            }
            Err(e) => {
                if e.code == Some(ErrorCode::StaleOperatorEpoch) {
                    self.link.forget_epoch();
                }
                Err(match e.code {
                    Some(code) if !code.retryable() && code != ErrorCode::OutcomeUnknown => {
                        Failed::Refused(Box::new(Refusal {
                            code: code.wire().to_owned(),
                            message: e.message.clone(),
                            ..Refusal::default()
                        }))
                    }
                    _ => self.cool(no_answer(&e)),
                })
            }
        }
    }

    fn warm(&self) -> Result<(), Failed> {
        match &*self.failed.lock() {
            Some((at, why)) if at.elapsed() < COOL => Err(Failed::NoAnswer(why.clone())),
            _ => Ok(()),
        }
    }

    fn cool(&self, why: String) -> Failed {
        *self.failed.lock() = Some((Instant::now(), why.clone()));
        Failed::NoAnswer(why)
    }
}
