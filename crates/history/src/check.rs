//! The rules, one function each.

use std::collections::HashMap;

use super::{Body, Fault, History, Id, Outcome, Seen, View, Violation};

/// What a history comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Records that were sent.
    pub sent: u64,
    /// Of these acknowledged.
    pub acked: u64,
    /// Surely not written.
    pub not_written: u64,
    /// Of unknown outcome.
    pub unknown: u64,
    /// Records of unknown outcome that are there.
    pub unknown_present: u64,
    /// Records of the live reads.
    pub read_live: u64,
    /// Records of the last reads.
    pub read_last: u64,
    /// Longest time from sending a record to its acknowledgement, ns: how long producing ever stood still.
    pub slowest_ns: u64,
    /// In order of the rules.
    pub violations: Vec<Violation>,
}

/// Checks everything.
#[must_use]
pub fn check(history: &History) -> Report {
    let mut report = counts(history);
    let out = &mut report.violations;
    for (live, views) in [(true, &history.live), (false, &history.last)] {
        for (partition, view) in views {
            rising(*partition, view, live, out);
            gaps(*partition, view, out);
            if let Some(to) = view.stuck {
                let fault = Fault::Stuck { to, live };
                out.push(Violation { partition: *partition, offset: Some(view.end), fault });
            }
        }
    }
    for (partition, view) in &history.last {
        bodies(history, *partition, view, out);
        order(*partition, view, out);
        real_time(history, *partition, view, out);
    }
    let empty = View::default();
    for (partition, live) in &history.live {
        same(*partition, live, history.last.get(partition).unwrap_or(&empty), out);
    }
    let places = places(history, out);
    report.unknown_present = presence(history, &places, out);
    report
}

fn counts(history: &History) -> Report {
    let mut report = Report::default();
    for (_, sent) in history.all() {
        report.sent += 1;
        match sent.outcome {
            Outcome::Acked { at_ns, .. } => {
                report.acked += 1;
                report.slowest_ns = report.slowest_ns.max(at_ns.saturating_sub(sent.sent_ns));
            }
            Outcome::NotWritten => report.not_written += 1,
            Outcome::Unknown => report.unknown += 1,
        }
    }
    report.read_live = history.live.values().map(|v| v.seen.len() as u64).sum();
    report.read_last = history.last.values().map(|v| v.seen.len() as u64).sum();
    report
}

/// Offsets rise within a read.
fn rising(partition: u32, view: &View, live: bool, out: &mut Vec<Violation>) {
    for pair in view.seen.windows(2) {
        if pair[1].offset <= pair[0].offset {
            let fault = Fault::Unordered { behind: pair[0].offset, live };
            out.push(Violation { partition, offset: Some(pair[1].offset), fault });
        }
    }
}

fn gaps(partition: u32, view: &View, out: &mut Vec<Violation>) {
    for (from, to) in &view.gaps {
        out.push(Violation { partition, offset: Some(*from), fault: Fault::Gap { to: *to } });
    }
}

/// Each record was sent, here, with these bytes.
fn bodies(history: &History, partition: u32, view: &View, out: &mut Vec<Violation>) {
    for seen in &view.seen {
        let mut found = |fault| out.push(Violation { partition, offset: Some(seen.offset), fault });
        let id = match seen.body {
            Body::Foreign => {
                found(Fault::Phantom(None));
                continue;
            }
            Body::Damaged(id) => {
                found(Fault::Damaged(id));
                continue;
            }
            Body::Intact(id) => id,
        };
        match history.get(id) {
            None => found(Fault::Phantom(Some(id))),
            Some(sent) if sent.partition != partition => {
                found(Fault::Elsewhere { id, partition: sent.partition, offset: None });
            }
            Some(_) => {}
        }
    }
}

/// Records of one producer keep their order.
fn order(partition: u32, view: &View, out: &mut Vec<Violation>) {
    let mut latest: HashMap<u32, (Id, i64)> = HashMap::new();
    for (id, offset) in intact(view) {
        match latest.get_mut(&id.producer) {
            // The same once more is a duplicate, which another rule names.
            Some((last, _)) if last.sequence == id.sequence => {}
            Some((last, at)) if last.sequence > id.sequence => {
                let fault = Fault::Reordered { id, behind: *last, behind_offset: *at };
                out.push(Violation { partition, offset: Some(offset), fault });
            }
            Some(last) => *last = (id, offset),
            None => {
                latest.insert(id.producer, (id, offset));
            }
        }
    }
}

/// What was acknowledged before something else was sent lies before it.
fn real_time(history: &History, partition: u32, view: &View, out: &mut Vec<Violation>) {
    let mut youngest: Option<(u64, Id, i64)> = None;
    for (id, offset) in intact(view) {
        let Some(sent) = history.get(id) else { continue };
        if let Outcome::Acked { at_ns, .. } = sent.outcome
            && let Some((sent_ns, behind, behind_offset)) = youngest
            && at_ns < sent_ns
            // Of one producer the rule of order says it already.
            && behind.producer != id.producer
        {
            let fault = Fault::Inverted { id, behind, behind_offset };
            out.push(Violation { partition, offset: Some(offset), fault });
        }
        if youngest.is_none_or(|(ns, ..)| ns < sent.sent_ns) {
            youngest = Some((sent.sent_ns, id, offset));
        }
    }
}

/// Both reads agree on every offset that both covered.
fn same(partition: u32, live: &View, last: &View, out: &mut Vec<Violation>) {
    let sorted = |view: &View| {
        let mut seen = view.seen.clone();
        seen.sort_by_key(|s| s.offset);
        seen
    };
    let (a, b) = (sorted(live), sorted(last));
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    loop {
        let (offset, fault) = match (a.peek(), b.peek()) {
            (None, None) => return,
            (Some(x), Some(y)) if x.offset == y.offset => {
                let (offset, equal) = (x.offset, x.digest == y.digest);
                skip(&mut a, offset);
                skip(&mut b, offset);
                if equal {
                    continue;
                }
                (offset, Fault::Differs)
            }
            (Some(x), y) if y.is_none_or(|y| x.offset < y.offset) => {
                let offset = x.offset;
                skip(&mut a, offset);
                if last.stuck.is_some() && offset >= last.end {
                    continue;
                }
                (offset, Fault::Skipped { by_live: false })
            }
            (_, Some(y)) => {
                let offset = y.offset;
                skip(&mut b, offset);
                // Not reached is not passed over.
                if offset >= live.end {
                    continue;
                }
                (offset, Fault::Skipped { by_live: true })
            }
            (Some(_), None) => return,
        };
        out.push(Violation { partition, offset: Some(offset), fault });
    }
}

/// Passes everything at `offset`; repeated offsets are named by another rule.
fn skip<'a>(seen: &mut std::iter::Peekable<impl Iterator<Item = &'a Seen>>, offset: i64) {
    while seen.next_if(|s| s.offset == offset).is_some() {}
}

/// Where each record is; a second place is a violation.
fn places(history: &History, out: &mut Vec<Violation>) -> HashMap<Id, (u32, i64)> {
    let mut places = HashMap::new();
    for (partition, view) in &history.last {
        for (id, offset) in intact(view) {
            let first = *places.entry(id).or_insert((*partition, offset));
            if first != (*partition, offset) {
                let (first_partition, first_offset) = first;
                let fault = Fault::Duplicate { id, first_partition, first_offset };
                out.push(Violation { partition: *partition, offset: Some(offset), fault });
            }
        }
    }
    places
}

/// What must be there is there, where it was acknowledged; what must not is not. Gives the records of unknown outcome
/// that are there.
fn presence(history: &History, places: &HashMap<Id, (u32, i64)>, out: &mut Vec<Violation>) -> u64 {
    let mut unknown_present = 0;
    for (id, sent) in history.all() {
        let place = places.get(&id).copied();
        match (sent.outcome, place) {
            (Outcome::Acked { partition, offset, .. }, None) => {
                // Where the last read did not come nothing is known.
                let view = history.last.get(&partition);
                if view.is_some_and(|v| v.stuck.is_some() && offset.is_none_or(|o| o >= v.end)) {
                    continue;
                }
                out.push(Violation { partition, offset, fault: Fault::Lost(id) });
            }
            (Outcome::Acked { partition, offset, .. }, Some((at, found))) => {
                if partition != at || offset.is_some_and(|o| o != found) {
                    let fault = Fault::Elsewhere { id, partition, offset };
                    out.push(Violation { partition: at, offset: Some(found), fault });
                }
            }
            (Outcome::NotWritten, Some((partition, offset))) => {
                out.push(Violation { partition, offset: Some(offset), fault: Fault::Unwritten(id) });
            }
            (Outcome::Unknown, Some(_)) => unknown_present += 1,
            (Outcome::NotWritten | Outcome::Unknown, None) => {}
        }
    }
    unknown_present
}

fn intact(view: &View) -> impl Iterator<Item = (Id, i64)> {
    view.seen.iter().filter_map(|s| match s.body {
        Body::Intact(id) => Some((id, s.offset)),
        Body::Damaged(_) | Body::Foreign => None,
    })
}
