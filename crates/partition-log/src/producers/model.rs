//! The producers' state against a brute-force model, under random retries, acknowledgements and crashes.

use proptest::prelude::*;

use super::*;

/// A batch in the model's log; its offset is the sum of the counts before it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    batch: Sequenced,
    offset: i64,
}

#[derive(Clone, Debug)]
enum Step {
    /// Next batch of a producer with so many records.
    New { id: i64, count: i32 },
    /// A batch of the client's history again, counted from the newest.
    Retry { id: i64, back: usize },
    /// Leaves sequences out.
    Gap { id: i64, by: i32 },
    /// A new epoch begins.
    Epoch { id: i64 },
    /// A batch of the epoch before.
    Late { id: i64 },
    /// So many of the pushed entries become persisted.
    Ack { n: usize },
    /// The owner dies; of the pushed entries the first `keep` survive. The state is rebuilt from a snapshot that was taken
    /// `back` entries before the end.
    Crash { keep: usize, back: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let id = 0i64..3;
    let step = prop_oneof![
        6 => (id.clone(), 1..4).prop_map(|(id, count)| Step::New { id, count }),
        4 => (id.clone(), 0usize..8).prop_map(|(id, back)| Step::Retry { id, back }),
        1 => (id.clone(), 1..4).prop_map(|(id, by)| Step::Gap { id, by }),
        1 => id.clone().prop_map(|id| Step::Epoch { id }),
        1 => id.prop_map(|id| Step::Late { id }),
        4 => (0usize..4).prop_map(|n| Step::Ack { n }),
        2 => (0usize..4, 0usize..8).prop_map(|(keep, back)| Step::Crash { keep, back }),
    ];
    proptest::collection::vec(step, 1..80)
}

/// What the client of a producer believes: its epoch and every batch that it ever sent in it.
#[derive(Clone, Debug, Default)]
struct Client {
    epoch: i16,
    sent: Vec<Sequenced>,
}

fn sequence_after(s: &Sequenced) -> i32 {
    s.last.wrapping_add(1) & i32::MAX
}

/// Whether every sequence of `b` is one of `a`'s, by counting them all.
fn holds(a: &Sequenced, b: &Sequenced) -> bool {
    let all = |s: &Sequenced| {
        let mut at = s.first;
        let mut out = vec![at];
        while at != s.last {
            at = at.wrapping_add(1) & i32::MAX;
            out.push(at);
        }
        out
    };
    let mine = all(a);
    a.id == b.id && a.epoch == b.epoch && all(b).iter().all(|s| mine.contains(s))
}

struct World {
    log: Vec<Entry>,
    persisted: usize,
    clients: Vec<Client>,
    start: i32,
    real: Producers,
}

impl World {
    fn end(&self) -> i64 {
        self.log.last().map_or(0, |e| e.offset + i64::from(ahead(e.batch.last, e.batch.first)) + 1)
    }

    fn hwm(&self) -> i64 {
        self.log.get(self.persisted).map_or_else(|| self.end(), |e| e.offset)
    }

    /// By scanning the whole log: no window, no levels of its own.
    fn expected(&self, b: &Sequenced) -> Verdict {
        let mine: Vec<(usize, &Entry)> =
            self.log.iter().enumerate().filter(|(_, e)| e.batch.id == b.id).collect();
        let Some((_, last)) = mine.last() else {
            return if b.first == 0 { Verdict::Append } else { Verdict::UnknownProducer };
        };
        if b.epoch < last.batch.epoch {
            return Verdict::Fenced { current: last.batch.epoch };
        }
        if b.epoch > last.batch.epoch {
            return if b.first == 0 { Verdict::Append } else { Verdict::OutOfOrder { expected: 0 } };
        }
        if let Some((at, e)) = mine.iter().rev().find(|(_, e)| holds(&e.batch, b)) {
            let newer = mine.iter().filter(|(i, _)| i > at && *i < self.persisted).count();
            let offset = Offset(e.offset + i64::from(ahead(b.first, e.batch.first)));
            return if *at >= self.persisted {
                Verdict::WaitFor { pushed: Offset(e.offset), offset, append_time_ms: e.offset }
            } else if newer < PRODUCER_BATCHES {
                Verdict::Duplicate { offset, append_time_ms: e.offset, rebuilt: false }
            } else {
                Verdict::OldDuplicate
            };
        }
        if b.first == sequence_after(&last.batch) {
            Verdict::Append
        } else {
            Verdict::OutOfOrder { expected: sequence_after(&last.batch) }
        }
    }

    fn produce(&mut self, b: Sequenced) -> Result<(), TestCaseError> {
        let (hwm, end) = (self.hwm(), self.end());
        let found = self.real.judge(&b, Offset(hwm), i64::MIN + 1);
        let expected = self.expected(&b);
        match (found, expected) {
            // Where it is known from, and how many persisted ones the real one still has because it trims only when it
            // appends, are not in the model.
            (
                Verdict::Duplicate { offset, append_time_ms, .. },
                Verdict::Duplicate { offset: o, append_time_ms: t, .. },
            ) => prop_assert_eq!((offset, append_time_ms), (o, t)),
            (Verdict::Duplicate { offset, .. }, Verdict::OldDuplicate) => {
                prop_assert!(self.log.iter().any(|e| holds(&e.batch, &b) && e.offset <= offset.0));
            }
            (f, e) => prop_assert_eq!(f, e),
        }
        if found == Verdict::Append {
            self.real.push(&b, Offset(end), end, Offset(hwm));
            self.log.push(Entry { batch: b, offset: end });
        }
        Ok(())
    }

    fn crash(&mut self, keep: usize, back: usize) {
        // A state entry is part of the log: it was taken when the log had `at` entries, and it survives only with them.
        let at = self.log.len().saturating_sub(back);
        let place = self.log.get(at).map_or_else(|| self.end(), |e| e.offset);
        let pieces = self.real.snapshot(Offset(place));
        let kept = (self.persisted + keep).min(self.log.len());
        self.log.truncate(kept);
        let mut rebuilt = Producers::default();
        let from = if at <= kept {
            let mut r = SnapshotReader::default();
            for p in &pieces {
                r.add(p).unwrap();
            }
            rebuilt = r.finish();
            at
        } else {
            0
        };
        for e in &self.log[from..] {
            rebuilt.replay(&e.batch, Offset(e.offset), e.offset);
        }
        self.real = rebuilt;
        self.persisted = self.log.len();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn verdicts_are_those_of_a_scan_of_the_whole_log(steps in steps(), near_wrap in any::<bool>()) {
        let start = if near_wrap { i32::MAX - 6 } else { 0 };
        let mut w = World {
            log: Vec::new(), persisted: 0, clients: vec![Client::default(); 3], start, real: Producers::default(),
        };
        if near_wrap {
            // A long history, so that the next sequences wrap.
            for id in 0..3 {
                let b = Sequenced { id, epoch: 0, first: start - 1, last: start - 1 };
                w.real.replay(&b, Offset(w.end()), w.end());
                w.log.push(Entry { batch: b, offset: w.end() });
                w.clients[usize::try_from(id).unwrap()].sent.push(b);
            }
            w.persisted = 3;
        }
        for step in steps {
            match step {
                Step::New { id, count } => {
                    let c = &mut w.clients[usize::try_from(id).unwrap()];
                    let first = c.sent.last().map_or(if c.epoch == 0 { w.start } else { 0 }, sequence_after);
                    let b = Sequenced { id, epoch: c.epoch, first, last: first.wrapping_add(count - 1) & i32::MAX };
                    c.sent.push(b);
                    w.produce(b)?;
                }
                Step::Retry { id, back } => {
                    let c = &w.clients[usize::try_from(id).unwrap()];
                    if let Some(b) = c.sent.iter().rev().nth(back).copied() {
                        w.produce(b)?;
                    }
                }
                Step::Gap { id, by } => {
                    let c = &w.clients[usize::try_from(id).unwrap()];
                    let first = c.sent.last().map_or(0, sequence_after).wrapping_add(by) & i32::MAX;
                    w.produce(Sequenced { id, epoch: c.epoch, first, last: first })?;
                }
                Step::Epoch { id } => {
                    let c = &mut w.clients[usize::try_from(id).unwrap()];
                    *c = Client { epoch: c.epoch + 1, sent: Vec::new() };
                }
                Step::Late { id } => {
                    let epoch = w.clients[usize::try_from(id).unwrap()].epoch - 1;
                    if epoch >= 0 {
                        w.produce(Sequenced { id, epoch, first: 0, last: 0 })?;
                    }
                }
                Step::Ack { n } => w.persisted = (w.persisted + n).min(w.log.len()),
                Step::Crash { keep, back } => w.crash(keep, back),
            }
        }
        // Exactly once per sequence, without holes.
        for id in 0..3 {
            let mut last: Option<Sequenced> = None;
            for e in w.log.iter().filter(|e| e.batch.id == id) {
                if let Some(l) = last {
                    let follows = e.batch.epoch == l.epoch && e.batch.first == sequence_after(&l);
                    prop_assert!(follows || (e.batch.epoch > l.epoch && e.batch.first == 0));
                }
                last = Some(e.batch);
            }
        }
    }
}
