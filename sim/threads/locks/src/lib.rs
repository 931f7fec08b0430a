//! Stands in for parking_lot where a crate is compiled for shuttle: the same names, and every lock is a point at which the
//! scheduler may choose another thread. What the production crates use is there and nothing else.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    time::Duration,
};

use shuttle::sync as inner;

fn unpoisoned<T>(r: Result<T, std::sync::PoisonError<T>>) -> T {
    r.unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A mutex without poisoning.
#[derive(Default)]
pub struct Mutex<T>(inner::Mutex<T>);

/// The lock of a [`Mutex`].
pub struct MutexGuard<'a, T> {
    // `None` only while a condition variable has it.
    guard: Option<inner::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    /// An unlocked mutex.
    pub fn new(value: T) -> Self {
        Self(inner::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { guard: Some(unpoisoned(self.0.lock())) }
    }

    /// The value; nobody else has the mutex.
    pub fn into_inner(self) -> T {
        unpoisoned(self.0.into_inner())
    }

    /// The value; nobody else has the mutex.
    pub fn get_mut(&mut self) -> &mut T {
        unpoisoned(self.0.get_mut())
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mutex")
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.guard {
            Some(guard) => guard,
            None => unreachable!("a guard that waits is not used"),
        }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.guard {
            Some(guard) => guard,
            None => unreachable!("a guard that waits is not used"),
        }
    }
}

/// A read-write lock without poisoning.
#[derive(Default)]
pub struct RwLock<T>(inner::RwLock<T>);

impl<T> RwLock<T> {
    /// An unlocked lock.
    pub fn new(value: T) -> Self {
        Self(inner::RwLock::new(value))
    }

    /// Waits for a shared lock.
    pub fn read(&self) -> inner::RwLockReadGuard<'_, T> {
        unpoisoned(self.0.read())
    }

    /// Waits for the exclusive lock.
    pub fn write(&self) -> inner::RwLockWriteGuard<'_, T> {
        unpoisoned(self.0.write())
    }

    /// The value; nobody else has the lock.
    pub fn get_mut(&mut self) -> &mut T {
        unpoisoned(self.0.get_mut())
    }
}

impl<T> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RwLock")
    }
}

/// How a wait ended.
#[derive(Debug)]
pub struct Waited(bool);

impl Waited {
    /// Nobody woke it.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

/// A condition variable.
#[derive(Default)]
pub struct Condvar(inner::Condvar);

impl Condvar {
    /// Nobody waits.
    #[must_use]
    pub fn new() -> Self {
        Self(inner::Condvar::new())
    }

    /// Wakes one.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Waits until it is woken.
    pub fn wait<T>(&self, lock: &mut MutexGuard<'_, T>) {
        if let Some(guard) = lock.guard.take() {
            lock.guard = Some(unpoisoned(self.0.wait(guard)));
        }
    }

    /// Waits until it is woken or, whenever the scheduler likes, not.
    pub fn wait_for<T>(&self, lock: &mut MutexGuard<'_, T>, timeout: Duration) -> Waited {
        let mut timed_out = false;
        if let Some(guard) = lock.guard.take() {
            let (guard, result) = unpoisoned(self.0.wait_timeout(guard, timeout));
            timed_out = result.timed_out();
            lock.guard = Some(guard);
        }
        Waited(timed_out)
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condvar")
    }
}
