//! The tail cache of a broker, production's source with the locks of shuttle.

#[path = "../../../../crates/partition-log/src/cache/mod.rs"]
#[allow(dead_code, unreachable_pub, reason = "the broker uses the rest")]
mod cache;

pub mod schedules {
    //! What is run under many schedules.
    #![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test, called by one")]

    use std::{
        collections::VecDeque,
        sync::{Arc, Weak},
    };

    use parking_lot::Mutex;
    use shuttle::{check_random, thread};

    use super::cache::{Tail, TailCache};

    /// A partition's tail: sizes of its entries.
    struct Entries(Mutex<VecDeque<u64>>);

    impl Tail for Entries {
        fn evict_oldest(&self) {
            self.0.lock().pop_front();
        }
    }

    /// Partitions put entries in and evict from each other at once. What is counted is what is there, and it is within the budget.
    pub fn evictions_from_each_other(schedules: usize) {
        check_random(
            || {
                let cache = TailCache::new(100);
                let tails: Vec<Arc<Entries>> = (0..3).map(|_| Arc::new(Entries(Mutex::default()))).collect();
                let threads: Vec<_> = tails
                    .iter()
                    .map(|tail| {
                        let (cache, tail) = (cache.clone(), tail.clone());
                        thread::spawn(move || {
                            let weak = Arc::downgrade(&tail) as Weak<dyn Tail>;
                            for sizes in [[30, 20], [10, 40], [25, 25]] {
                                tail.0.lock().extend(sizes);
                                cache.admit(&weak, &sizes);
                            }
                        })
                    })
                    .collect();
                threads.into_iter().for_each(|t| t.join().unwrap());
                let there: u64 = tails.iter().map(|t| t.0.lock().iter().sum::<u64>()).sum();
                assert_eq!(cache.used(), there, "what is counted is what is there");
                assert!(there <= 100, "{there} bytes are there");
            },
            schedules,
        );
    }
}
