//! Why an engine does not start, and why one has stopped.

use std::{io, path::PathBuf};

use tidemill_types::{BookieId, ClusterId};

/// Why an engine does not start. Nothing was written, unless `Io` says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A call to the file system failed.
    #[error("{what} {path}: {source}", path = path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process holds the lane.
    #[error("{path} is in use by another process: stop it first, or give this bookie another folder", path = path.display())]
    Locked {
        /// The lane folder.
        path: PathBuf,
    },
    /// A folder without a cookie that is not empty (R16).
    #[error(
        "{path} has no cookie but is not empty (found: {found}): if a bookie's disk was mounted here, mount the right one; if the data is not \
         needed, empty the folder, and the bookie starts with a new identity there", path = path.display()
    )]
    NoCookie {
        /// The lane folder.
        path: PathBuf,
        /// Names found in it.
        found: String,
    },
    /// A cookie or control file that cannot be read.
    #[error("{path} cannot be understood ({why}): restore the file, or empty the whole lane, which then counts as lost", path = path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The lanes belong to another cluster.
    #[error(
        "the disk belongs to cluster {found}, this is cluster {expected}: mount the right disk, or empty the folder"
    )]
    OtherCluster {
        /// In the cookie.
        found: ClusterId,
        /// Of this process.
        expected: ClusterId,
    },
    /// The lanes belong to different bookies.
    #[error("{path} belongs to bookie {found}, the other lanes to {expected}: mount the disks of one bookie together", path = path.display())]
    MixedBookies {
        /// The lane folder.
        path: PathBuf,
        /// Bookie in its cookie.
        found: BookieId,
        /// Bookie of the lanes before it.
        expected: BookieId,
    },
    /// A configuration that cannot work.
    #[error("{0}")]
    Config(String),
}

impl OpenError {
    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { what, path: path.into(), source }
    }
}

/// Why the engine stopped for good; the first reason is kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the storage engine stopped: {what} of {path} failed: {why}; nothing is acknowledged any more, restart the bookie", path = path.display())]
pub struct Poison {
    /// What failed.
    pub what: &'static str,
    /// On which path.
    pub path: PathBuf,
    /// What the system said.
    pub why: String,
}
