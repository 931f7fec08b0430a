//! `ReportBookies`: synced positions and free space, taken from renewals (R16).

use tidemill_types::Member;
use tidemill_types::meta::{BookieReport, Change, Rejection, Reply};

use crate::State;

impl State {
    /// A report of another session than the live one is skipped, as are lanes that the boot did not name; a position
    /// never goes back.
    pub(crate) fn report_bookies(
        &mut self,
        reports: &[BookieReport],
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        for r in reports {
            let Some(m) = self.member(r.bookie).filter(|m| m.session == Some(r.session)) else { continue };
            let mut new = Member { free_bytes: r.free_bytes, ..m.clone() };
            for lane in &mut new.lanes {
                for told in &r.lanes {
                    if told.lane == lane.lane && (told.segment, told.group) > (lane.segment, lane.group) {
                        *lane = *told;
                    }
                }
            }
            if new != *m {
                self.put_member(new, out);
            }
        }
        Ok(Reply::Done)
    }
}
