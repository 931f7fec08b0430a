//! Who runs the lanes: a thread each, or the caller.

use std::{
    io,
    sync::{Arc, Weak},
    thread::JoinHandle,
};

use parking_lot::Mutex;

use crate::{lane::Next, shared::Shared};

/// Stops the lanes when the last handle of the engine goes.
#[derive(Debug)]
pub(crate) struct Threads {
    shared: Weak<Shared>,
    handles: Mutex<Vec<JoinHandle<()>>>,
}

impl Threads {
    pub(crate) fn none(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::downgrade(shared), handles: Mutex::default() }
    }

    /// One thread per lane.
    ///
    /// # Errors
    /// The system gave no thread.
    pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<Self> {
        let threads = Self::none(shared);
        for (i, _) in shared.lanes.iter().enumerate() {
            let shared = Arc::clone(shared);
            let handle =
                std::thread::Builder::new().name(format!("lane-{i}")).spawn(move || run(&shared, i))?;
            threads.handles.lock().push(handle);
        }
        Ok(threads)
    }

    /// Waits for the threads, which must have been told to stop. Not from one of them.
    pub(crate) fn join(&self) {
        let handles = std::mem::take(&mut *self.handles.lock());
        let me = std::thread::current().id();
        for handle in handles {
            if handle.thread().id() != me && handle.join().is_err() {
                tracing::error!("a lane's thread panicked");
            }
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            for lane in &shared.lanes {
                lane.queue.stop();
            }
        }
    }
}

fn run(shared: &Shared, lane: usize) {
    let queue = &shared.lanes[lane].queue;
    loop {
        let next = shared.cores[lane].lock().step(shared);
        match next {
            Next::Again => {}
            Next::At(None) => queue.wait(None),
            Next::At(Some(at)) => queue.wait(Some(at.saturating_sub(shared.config.clock.boottime()))),
            Next::Stopped => return,
        }
    }
}
