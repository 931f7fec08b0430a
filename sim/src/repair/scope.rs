//! How large a repair model is, and which rules are off in it.

use tidemill_ledger::core::repair::{LookRules, RepairRules};

use super::meta::WorldRules;

/// A scope. The ledger is CLOSED with all its entries on all members of its one fragment, but for `lacking`.
#[derive(Clone, Debug)]
pub struct RepairScope {
    /// Members of the ledger at the start.
    pub members: u8,
    /// Copies that the topic wants.
    pub copies: u8,
    /// Bookies in all.
    pub bookies: u8,
    /// Entries.
    pub entries: u8,
    /// Entry 0 is lacking on so many of the members, the first ones, and the ledger is `unchecked`.
    pub lacking: u8,
    /// Bookies that lose everything and are given up.
    pub losses: u8,
    /// Bookies that lose everything of the ledger and keep their uuid: limbo.
    pub limbos: u8,
    /// Bookies that are drained.
    pub drains: u8,
    /// Repairs that the auditor takes away although somebody works at them.
    pub abandons: u8,
    /// Crashes of workers.
    pub crashes: u8,
    /// Ends of repairs whose outcome the worker does not learn.
    pub unknowns: u8,
    /// Reads without an answer.
    pub time_outs: u8,
    /// Members that do not answer when they are asked what they hold.
    pub silences: u8,
    /// Bookies collect what does not name them.
    pub collects: bool,
    /// Rules of the repairer.
    pub rules: RepairRules,
    /// Rules of the auditor.
    pub look_rules: LookRules,
    /// Rules of the metadata and the bookies.
    pub world_rules: WorldRules,
}

impl RepairScope {
    /// Two members and a spare, one entry; nothing happens.
    #[must_use]
    pub fn new() -> Self {
        Self {
            members: 2,
            copies: 2,
            bookies: 3,
            entries: 1,
            lacking: 0,
            losses: 0,
            limbos: 0,
            drains: 0,
            abandons: 0,
            crashes: 0,
            unknowns: 0,
            time_outs: 0,
            silences: 0,
            collects: false,
            rules: RepairRules::default(),
            look_rules: LookRules::default(),
            world_rules: WorldRules::default(),
        }
    }

    /// Changes anything.
    #[must_use]
    pub fn with(mut self, f: impl FnOnce(&mut Self)) -> Self {
        f(&mut self);
        self
    }
}

impl Default for RepairScope {
    fn default() -> Self {
        Self::new()
    }
}
