//! Work that blocks: on the runtime's pool of threads, or right here in a simulation, which has one thread.

use std::{
    future::{Ready, ready},
    time::Duration,
};

use futures::future::Either;
use tokio::{
    sync::mpsc::{Sender, error::TrySendError},
    task::{JoinError, JoinHandle},
};

use crate::world;

/// The result of work that was begun.
pub type Blocking<T> = Either<JoinHandle<T>, Ready<Result<T, JoinError>>>;

/// Begins work that may block. It goes on when the answer is dropped.
///
/// # Errors
/// Of the answer: the work panicked, or the runtime ends.
pub fn blocking<T, F>(work: F) -> Blocking<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    if world::simulated() {
        Either::Right(ready(Ok(work())))
    } else {
        Either::Left(tokio::task::spawn_blocking(work))
    }
}

/// Pauses work that blocks, for the sake of others. Answers whether time passed: in a simulation none does while its one thread works.
#[must_use]
pub fn pause(time: Duration) -> bool {
    let real = !world::simulated();
    if real {
        std::thread::sleep(time);
    }
    real
}

/// From work that blocks to a task: waits for room. In a simulation, where the receiver cannot run meanwhile, a full queue is a failure.
///
/// # Errors
/// Nobody receives; in a simulation also: no room.
pub fn send<T>(to: &Sender<T>, value: T) -> Result<(), TrySendError<T>> {
    if world::simulated() {
        to.try_send(value)
    } else {
        to.blocking_send(value).map_err(|e| TrySendError::Closed(e.0))
    }
}
