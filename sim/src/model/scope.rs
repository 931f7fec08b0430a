//! How large a model is, and which rules are switched off in it.

use tidemill_ledger::core::Rules;

use super::{bookie::BookieRules, meta::MetaRules};

/// A scope.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Scope {
    /// E = Qw.
    pub copies: u8,
    /// Qa.
    pub ack_quorum: u8,
    /// Bookies in all.
    pub bookies: u8,
    /// Entries that the writer adds.
    pub entries: u8,
    /// Recoverers.
    pub recoverers: u8,
    /// Ensemble changes of the writer.
    pub writer_changes: u8,
    /// Local ensemble changes of each recoverer.
    pub recoverer_changes: u8,
    /// Metadata commands of the writer whose outcome stays unknown to it.
    pub unknown_outcomes: u8,
    /// The writer may close the ledger.
    pub writer_closes: bool,
    /// Adds become durable in a step of their own, and bookies may crash so often before.
    pub async_sync: bool,
    /// Crashes of bookies.
    pub crashes: u8,
    /// Bookies that lose everything and keep their uuid.
    pub wipes: u8,
    /// Only bookies that the ledger does not name any more are wiped.
    pub wipes_replaced_only: bool,
    /// Limbo may end.
    pub limbo_ends: bool,
    /// Bookies collect ledgers that do not name them.
    pub collects: bool,
    /// Fences and recovery reads may time out at the recoverer although they arrive.
    pub timeouts: bool,
    /// Answers to a recoverer arrive in the step in which the bookie gives them. Leaves out that verdicts of two recoverers
    /// cross on the way; the small scopes run without it.
    pub prompt_answers: bool,
    /// Fenced bookies answer adds (else such answers are delayed for ever).
    pub fenced_answers: bool,
    /// Check too that what a closed ledger's members lack is listed (M31).
    pub check_under: bool,
    /// Check invariant D too.
    pub check_lac: bool,
    /// Entries that a recoverer reads ahead.
    pub window: usize,
    /// Rules of the cores.
    pub rules: Rules,
    /// Rules of the bookies.
    pub bookie_rules: BookieRules,
    /// Rules of the metadata.
    pub meta_rules: MetaRules,
}

impl Scope {
    /// One entry, one recoverer, nothing else happens.
    #[must_use]
    pub fn new(copies: u8, ack_quorum: u8) -> Self {
        Self {
            copies,
            ack_quorum,
            bookies: copies,
            entries: 1,
            recoverers: 1,
            writer_changes: 0,
            recoverer_changes: 0,
            unknown_outcomes: 0,
            writer_closes: false,
            async_sync: false,
            crashes: 0,
            wipes: 0,
            wipes_replaced_only: false,
            limbo_ends: false,
            collects: false,
            timeouts: false,
            prompt_answers: false,
            fenced_answers: false,
            check_under: false,
            check_lac: false,
            window: 1,
            rules: Rules::default(),
            bookie_rules: BookieRules::default(),
            meta_rules: MetaRules::default(),
        }
    }

    /// Ensemble changes by the writer and by each recoverer, with one spare bookie.
    #[must_use]
    pub fn changes(mut self, writer: u8, recoverer: u8) -> Self {
        self.writer_changes = writer;
        self.recoverer_changes = recoverer;
        self.bookies = self.copies + 1;
        self
    }

    /// So many recoverers.
    #[must_use]
    pub fn recoverers(mut self, n: u8) -> Self {
        self.recoverers = n;
        self
    }

    /// So many entries.
    #[must_use]
    pub fn entries(mut self, n: u8) -> Self {
        self.entries = n;
        self
    }

    /// With prompt answers to recoverers.
    #[must_use]
    pub fn prompt(mut self) -> Self {
        self.prompt_answers = true;
        self
    }

    /// Changes anything else.
    #[must_use]
    pub fn with(mut self, f: impl FnOnce(&mut Self)) -> Self {
        f(&mut self);
        self
    }
}
