//! A bookie's state for one ledger, reduced: entries accepted and synced, fence, LAC (1.2, R11, R25).

use std::hash::{Hash, Hasher};

use tidemill_types::{Entry, EntryId};

/// Switches for negative tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct BookieRules {
    /// A fence counts for a ledger that the bookie has never heard of (R11; off: M11).
    pub fence_unknown: bool,
    /// A fencing request is answered only after every add accepted earlier is durable (R25; off: M17).
    pub fence_waits: bool,
    /// A boot after a loss fences every ledger that is not CLOSED and names the bookie last (R15; off: M6a, M6c).
    pub boot_fence: bool,
    /// After a loss nothing missing is denied (R15; off: M6a, M6b).
    pub limbo: bool,
    /// A first touch below the mark, and every add in limbo, needs a read that says OPEN (R27; off: M19).
    pub first_touch: bool,
    /// Limbo does not end while a ledger that is not CLOSED names the bookie last (R15; off: M28).
    pub limbo_until_closed: bool,
    /// Only CLOSED ledgers are collected (R20; off: M18).
    pub collect_closed_only: bool,
}

impl Default for BookieRules {
    fn default() -> Self {
        Self {
            fence_unknown: true,
            fence_waits: true,
            boot_fence: true,
            limbo: true,
            first_touch: true,
            limbo_until_closed: true,
            collect_closed_only: true,
        }
    }
}

/// Entries in order of their ids.
#[derive(Clone, Debug, Default)]
pub struct Copies(Vec<Entry>);

impl Copies {
    /// The entry, if there.
    #[must_use]
    pub fn get(&self, id: EntryId) -> Option<&Entry> {
        self.0.binary_search_by_key(&id, |e| e.header().entry).ok().and_then(|i| self.0.get(i))
    }

    fn put(&mut self, e: Entry) {
        let at = self.0.partition_point(|o| o.header().entry < e.header().entry);
        if self.0.get(at).is_none_or(|o| o.header().entry != e.header().entry) {
            self.0.insert(at, e);
        }
    }
}

impl Hash for Copies {
    fn hash<H: Hasher>(&self, h: &mut H) {
        for e in &self.0 {
            (e.header().entry, e.header().head_crc).hash(h);
        }
        0u8.hash(h);
    }
}

/// The bookie. `T` names who waits for an answer.
#[derive(Clone, Debug, Hash)]
pub struct Bookie<T> {
    /// Durable.
    pub synced: Copies,
    /// Accepted, not durable.
    pub accepted: Copies,
    /// Refuses plain adds.
    pub fenced: bool,
    /// Has heard of the ledger.
    pub known: bool,
    /// Highest LAC piggybacked on a durable entry.
    pub lac: EntryId,
    /// Lost something: what is missing is unknown.
    pub limbo: bool,
    /// The ledger lies below the first-touch mark: it was handed out before the boot, or collected here (R27).
    pub below_mark: bool,
    /// Answers held back until the next sync.
    pub waiting: Vec<T>,
}

/// What becomes of an add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// Durable: answer now.
    Durable,
    /// Answer after the sync.
    Waits,
    /// Refused.
    Fenced,
}

impl<T> Default for Bookie<T> {
    fn default() -> Self {
        Self {
            synced: Copies::default(),
            accepted: Copies::default(),
            fenced: false,
            known: false,
            lac: EntryId::NONE,
            limbo: false,
            below_mark: false,
            waiting: Vec::new(),
        }
    }
}

impl<T> Bookie<T> {
    /// A plain or recovery add. Check and add are one step (R13).
    pub fn add(&mut self, e: Entry, recovery: bool, sync_now: bool) -> Added {
        if self.fenced && !recovery {
            return Added::Fenced;
        }
        if recovery && !self.known {
            self.fenced = true; // R27
        }
        self.known = true;
        if self.synced.get(e.header().entry).is_some() {
            return Added::Durable;
        }
        if sync_now {
            self.lac = self.lac.max(e.header().lac);
            self.synced.put(e);
            Added::Durable
        } else {
            self.accepted.put(e);
            Added::Waits
        }
    }

    /// A fence. True: it may be answered now; false: after the next sync (R25).
    pub fn fence(&mut self, rules: BookieRules) -> bool {
        if self.known || rules.fence_unknown {
            self.known = true;
            self.fenced = true;
        }
        self.accepted.0.is_empty() || !rules.fence_waits
    }

    /// Everything accepted becomes durable; gives back who waited.
    pub fn sync(&mut self) -> Vec<T> {
        for e in std::mem::take(&mut self.accepted).0 {
            self.lac = self.lac.max(e.header().lac);
            self.synced.put(e);
        }
        std::mem::take(&mut self.waiting)
    }

    /// Has something to sync.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        !self.accepted.0.is_empty() || !self.waiting.is_empty()
    }

    /// Loses everything, and boots under its old uuid. `named_last`: the ledger is not CLOSED and names it last.
    pub fn wipe(&mut self, rules: BookieRules, named_last: bool) {
        let fenced = rules.boot_fence && named_last;
        *self = Self { limbo: rules.limbo, below_mark: true, fenced, known: fenced, ..Self::default() };
    }

    /// Deletes the ledger (R20).
    pub fn collect(&mut self) {
        *self = Self { below_mark: true, limbo: self.limbo, ..Self::default() };
    }

    /// Whether an add has to wait for a read of the record (R27).
    #[must_use]
    pub fn asks_first(&self) -> bool {
        self.limbo || (self.below_mark && !self.known)
    }

    /// Loses what is not durable. The fence of an acknowledged request is durable; here all fences are.
    pub fn crash(&mut self) {
        self.accepted = Copies::default();
        self.waiting.clear();
    }
}
