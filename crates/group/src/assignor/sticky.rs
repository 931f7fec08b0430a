//! As evenly as can be, and a partition stays where it is unless that is too many.

use std::collections::BTreeMap;

use tidemill_types::TopicId;

use super::{Candidate, Target, spread::Spread, wanted};
use crate::MemberId;

pub(super) fn assign(
    candidates: &BTreeMap<MemberId, Candidate>,
    topics: &BTreeMap<TopicId, u32>,
    target: &mut Target,
) {
    let mut open = wanted(candidates, topics);
    let mut spread = Spread::new(candidates, target);
    for (id, c) in candidates {
        for p in &c.before {
            // Once only, whoever else claims it (2.8 bug 14).
            if c.topics.contains(&p.topic) && open.remove(p) {
                spread.keep(id, *p);
            }
        }
    }
    for p in open {
        spread.give(p);
    }
    spread.even_out();
}
