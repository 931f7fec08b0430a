//! Switches for the model checker's negative tests. Production always runs with [`Rules::default`]: everything on.

/// How an answer to an add is matched with what it answers (R10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AttemptCheck {
    /// The attempt must be the one that is valid now.
    #[default]
    Attempt,
    /// The bookie must stand at the index now (M20).
    Name,
    /// The index is enough (M8).
    Index,
}

/// One switch per rule that a mutation of the ledger protocol's section 1.9 takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Rules {
    /// Recovery reads carry the fence flag (R1; off: M1).
    pub fence_reads: bool,
    /// Explicit negatives needed; `None` is QC (R3; 1: M2).
    pub negatives_needed: Option<usize>,
    /// Fence confirmations needed; `None` is EC (R2; fewer: M3, which holds).
    pub confirmations_needed: Option<usize>,
    /// A missing answer is not a negative (R4; off: M9).
    pub unknown_is_not_negative: bool,
    /// Recovery reads follow the frozen fragments (R7; off: M4).
    pub frozen_reads: bool,
    /// Recovery's ensemble changes stay local until the close (R8; off: M5).
    pub local_changes: bool,
    /// Recovered entries are written back (1.6 step 5; off: M13).
    pub write_back: bool,
    /// Recovery starts at or above the last fragment (R6; off: M16).
    pub start_at_last_fragment: bool,
    /// Recovered entries keep their bytes (R12; off: M12).
    pub same_bytes: bool,
    /// The new ensemble is used only after its change committed (R10; off: M7).
    pub change_after_commit: bool,
    /// Replacing an index clears its ack bits (R10; off: M8).
    pub clear_replaced_acks: bool,
    /// How acks are matched (R10).
    pub attempts: AttemptCheck,
    /// During a change only the indexes that stay count (1.4 step 1; off: M21).
    pub only_staying_count: bool,
    /// An unknown outcome is settled before anything is given up (1.8; off: M24, M25).
    pub settle_unknown: bool,
    /// Nothing above the end is acknowledged once a close was begun (1.5).
    pub lac_stands_at_close: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            fence_reads: true,
            negatives_needed: None,
            confirmations_needed: None,
            unknown_is_not_negative: true,
            frozen_reads: true,
            local_changes: true,
            write_back: true,
            start_at_last_fragment: true,
            same_bytes: true,
            change_after_commit: true,
            clear_replaced_acks: true,
            attempts: AttemptCheck::Attempt,
            only_staying_count: true,
            settle_unknown: true,
            lac_stands_at_close: true,
        }
    }
}
