//! The storage engine of a bookie: every payload byte is written to the disk once before it is acknowledged.
//!
//! A disk is a *lane*: a folder with segments, a cookie and a control file. A segment is journal and long-term log at once: entries of all
//! ledgers in the order of their arrival, in *commit groups*. A group is written, synced, indexed and only then acknowledged; no byte of the
//! next group is written before (R17, R19). The formats stand in `docs/formats/segment.md` and `docs/formats/bookie-directory.md`.
//!
//! # Start
//!
//! [`Engine::open_scan`] locks and reads the lanes and reports what it found; the caller compares it with the quorum (R16),
//! calls [`Scanned::write_pending`], tells the quorum, and calls [`Scanned::finish`].
//!
//! # Calls
//!
//! [`Engine::add`], [`Engine::fence`] and [`Engine::write_lac`] queue and answer through a completion, from the lane's thread or from
//! [`Engine::step`]. Reads answer at once and may wait for the disk: call them from a thread that may block, or try
//! [`Engine::try_read_cached`] first.
//!
//! After a failed sync the engine is poisoned: it answers nothing any more, no completion is called, and [`EngineConfig::on_fatal`] is told so
//! that the process exits (R17).

mod accept;
mod acks;
mod boot;
mod collect;
pub mod config;
mod counters;
mod driver;
pub mod engine;
pub mod error;
mod fence;
mod format;
pub mod inspect;
mod lane;
mod ledger;
mod ledgers;
mod lookup;
pub mod outcome;
mod range;
pub mod recode;
pub mod report;
mod rewrite;
mod scrub;
mod segment;
mod shared;
pub mod stats;
mod wave;

pub use config::{Driver, EngineConfig, SpaceLimits};
pub use engine::{CollectGuard, Engine, Scanned};
pub use error::{OpenError, Poison};
pub use inspect::{Inspection, SegmentReport, check, inspect};
pub use outcome::{
    AckSink, AddKind, AddOutcome, AddRequest, Admission, Completion, FenceOutcome, FirstTouch, LacOutcome,
    LastEntryOutcome, RangesOutcome, ReadMode, ReadOutcome, TouchTicket, UnknownReason, WriteOutcome,
};
pub use report::{BootReport, EngineInfo, FinishBoot, LaneInfo, LedgerSummary, Loss, SpaceState};
pub use scrub::{ScrubPosition, Scrubbed};
pub use stats::{Histogram, Stats};
