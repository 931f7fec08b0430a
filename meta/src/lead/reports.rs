//! Bookies' synced positions and free space, gathered from renewals and replicated in one command a second (R16). Pure.

use std::collections::BTreeMap;

use tidemill_metadata::State;
use tidemill_types::{
    BookieId,
    meta::{BookieReport, MAX_BATCH},
};

/// Free space is told in steps, so that it alone makes few commands.
const FREE_STEP: u64 = 64 << 20;

/// The last report of each bookie.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    latest: BTreeMap<BookieId, BookieReport>,
}

impl Reports {
    /// A renewal's report.
    pub(crate) fn heard(&mut self, mut report: BookieReport) {
        report.free_bytes -= report.free_bytes % FREE_STEP;
        self.latest.insert(report.bookie, report);
    }

    /// Forgets all: another term.
    pub(crate) fn clear(&mut self) {
        self.latest.clear();
    }

    /// What the state does not have yet, in commands of at most 1 000.
    pub(crate) fn changed(&mut self, state: &State) -> Vec<Vec<BookieReport>> {
        self.latest.retain(|id, r| state.member(*id).is_some_and(|m| m.session == Some(r.session)));
        let news: Vec<BookieReport> = self
            .latest
            .values()
            .filter(|r| {
                state.member(r.bookie).is_some_and(|m| {
                    m.free_bytes != r.free_bytes
                        || m.lanes.iter().any(|known| {
                            r.lanes.iter().any(|told| {
                                told.lane == known.lane
                                    && (told.segment, told.group) > (known.segment, known.group)
                            })
                        })
                })
            })
            .cloned()
            .collect();
        news.chunks(MAX_BATCH).map(<[BookieReport]>::to_vec).collect()
    }
}
