//! All partitions as evenly as can be, whatever was before.

use std::collections::BTreeMap;

use tidemill_types::TopicId;

use super::{Candidate, Target, spread::Spread, wanted};
use crate::MemberId;

pub(super) fn assign(
    candidates: &BTreeMap<MemberId, Candidate>,
    topics: &BTreeMap<TopicId, u32>,
    target: &mut Target,
) {
    let mut spread = Spread::new(candidates, target);
    for p in wanted(candidates, topics) {
        spread.give(p);
    }
    spread.even_out();
}
