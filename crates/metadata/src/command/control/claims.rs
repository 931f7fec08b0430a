//! `ReleaseClaims`.

use tidemill_types::TopicControl;
use tidemill_types::meta::{Change, ClaimRelease, ControlReply};

use crate::State;

impl State {
    /// Touches no data; a claim that is not there, or is another's, is left alone.
    pub(crate) fn release_claims(&mut self, all: &[ClaimRelease], out: &mut Vec<Change>) -> ControlReply {
        ControlReply::Released(all.iter().map(|r| self.release_claim(r, out)).collect())
    }

    fn release_claim(&mut self, r: &ClaimRelease, out: &mut Vec<Change>) -> bool {
        let control = self.names.get(&r.name).and_then(|id| self.topic_control(*id));
        let Some(control) = control.filter(|c| c.claim.as_ref().is_some_and(|c| c.uid == r.uid)) else {
            return false;
        };
        let free = TopicControl { claim: None, ..control.clone() };
        self.put_control(free, out);
        true
    }
}
