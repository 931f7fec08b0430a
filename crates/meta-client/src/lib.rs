//! Client of the metadata quorum: proposals that keep one request id over all retries, linearizable reads, a session with
//! its validity, and a mirror of what the watch delivers.
//!
//! ```text
//! MetaClient ── propose / read ──> leader (found by hints, back-off with jitter)
//!     ├── open_session ──> Session: renews by itself, is_valid_now(), lost()
//!     └── view ──────────> MetaMirror: table kept by the watch, events, resumes by revision
//! ```
//!
//! A [`MetaClient`] is cheap to clone; clones share connections, the current session and the mirror.

mod boot;
mod client;
mod codec;
mod commands;
mod config;
mod control;
mod error;
mod operate;
mod propose;
mod quorum;
mod read;
mod retry;
mod session;
mod view;

pub use boot::BookieBoot;
pub use client::MetaClient;
pub use commands::Applied;
pub use config::MetaClientConfig;
pub use control::FeatureLevel;
pub use error::{MetaError, OpenError};
pub use operate::{MemberChange, MetaStatus, RepairStatus, VoterInfo};
pub use session::{ConfirmedTime, Lost, QuorumTime, RenewalReport, ReportSource, Session};
pub use view::{MetaEvents, MetaMirror, MetaTable, TopicsEvent, TopicsWatch, ViewEvent};
