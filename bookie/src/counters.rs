//! What the service counts by itself; the engine's own counters are read at each scrape.

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};

/// Counters of one bookie.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    /// Adds received, any answer.
    pub(crate) adds: Counter,
    /// Bytes of them.
    pub(crate) add_bytes: Counter,
    /// Entries answered to reads.
    pub(crate) reads: Counter,
    /// Bytes of them.
    pub(crate) read_bytes: Counter,
    /// Ledgers fenced on demand.
    pub(crate) fences: Counter,
    /// Requests refused because a queue was full.
    pub(crate) overloaded: Counter,
    /// Requests refused because they named somebody else (R26).
    pub(crate) wrong_identity: Counter,
    /// First touches answered `Fenced` (R27).
    pub(crate) first_touches_refused: Counter,
    /// First touches that the quorum did not answer.
    pub(crate) first_touches_unknown: Counter,
    /// Passes of garbage collection that looked at everything.
    pub(crate) gc_passes: Counter,
    /// Passes that ended early: the quorum did not answer, or the listing was empty.
    pub(crate) gc_stopped: Counter,
    /// Ledgers deleted.
    pub(crate) gc_ledgers: Counter,
    /// Whole scrubs.
    pub(crate) scrub_passes: Counter,
    /// Sessions lost and opened again.
    pub(crate) sessions_lost: Counter,
    /// Repairs with this bookie as the target that are under way.
    pub(crate) repairs_running: Gauge,
    /// Repairs finished.
    pub(crate) repairs_done: Counter,
    /// Repairs given up; the auditor starts others.
    pub(crate) repairs_abandoned: Counter,
    /// Entries copied by repairs.
    pub(crate) repair_entries: Counter,
    /// Bytes of them.
    pub(crate) repair_bytes: Counter,
}

impl Counters {
    /// Registers all of them.
    pub(crate) fn register(&self, r: &mut Registry) {
        r.register("adds", "Adds received, with any answer", self.adds.clone());
        r.register("add_bytes", "Bytes of the adds received", self.add_bytes.clone());
        r.register("reads", "Entries sent to readers", self.reads.clone());
        r.register("read_bytes", "Bytes of the entries sent to readers", self.read_bytes.clone());
        r.register("fences", "Ledgers fenced on demand", self.fences.clone());
        r.register("overloaded", "Requests refused because a queue was full", self.overloaded.clone());
        r.register("wrong_identity", "Requests that named somebody else", self.wrong_identity.clone());
        r.register(
            "first_touches_refused",
            "Adds refused because the quorum does not say OPEN with this bookie in the last fragment",
            self.first_touches_refused.clone(),
        );
        r.register(
            "first_touches_unknown",
            "Adds not taken because the quorum did not answer",
            self.first_touches_unknown.clone(),
        );
        r.register("gc_passes", "Whole passes of garbage collection", self.gc_passes.clone());
        r.register("gc_stopped", "Passes of garbage collection that ended early", self.gc_stopped.clone());
        r.register("gc_ledgers", "Ledgers deleted by garbage collection", self.gc_ledgers.clone());
        r.register("scrub_passes", "Whole scrubs of everything at rest", self.scrub_passes.clone());
        r.register(
            "repairs_running",
            "Repairs with this bookie as the target under way",
            self.repairs_running.clone(),
        );
        r.register("repairs_done", "Repairs finished", self.repairs_done.clone());
        r.register("repairs_abandoned", "Repairs given up", self.repairs_abandoned.clone());
        r.register("repair_entries", "Entries copied by repairs", self.repair_entries.clone());
        r.register("repair_bytes", "Bytes copied by repairs", self.repair_bytes.clone());
        r.register("sessions_lost", "Sessions with the quorum lost", self.sessions_lost.clone());
    }
}
