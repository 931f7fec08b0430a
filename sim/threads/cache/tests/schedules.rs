//! L1: the tail cache under many schedules of its threads.

#[test]
fn evictions_from_each_other_keep_count() {
    tidemill_sim_cache::schedules::evictions_from_each_other(2_000);
}
