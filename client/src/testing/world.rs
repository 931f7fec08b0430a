//! The log behind the brokers, with the idempotence rules of a real one (2.1), and the faults.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use bytes::Bytes;
use tidemill_proto::v1;
use tidemill_record::{BatchHeader, batches, records};
use tidemill_types::ErrorCode;

/// Small, seeded, the same on every machine.
#[derive(Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// What goes wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// The stream ends, with or without the batch in the log.
    Drop {
        written: bool,
    },
    /// The answer says "perhaps".
    Unknown {
        written: bool,
    },
    /// The partition moves; the answer names the owner or not.
    Moved {
        hint: bool,
    },
    NotWritten,
    NoOwner,
    /// Never answered, never written.
    Silent,
}

#[derive(Debug, Default)]
pub(crate) struct PartitionLog {
    pub(crate) owner: Option<usize>,
    pub(crate) epoch: u64,
    pub(crate) log_start: i64,
    pub(crate) end: i64,
    pub(crate) entries: Vec<(i64, Bytes)>,
    pub(crate) gap: Option<v1::Gap>,
    /// Producer id: the last five batches as first and last sequence and base offset.
    pub(crate) producers: HashMap<i64, VecDeque<(i32, i32, i64)>>,
    /// Producer ids from which nothing new is taken.
    pub(crate) closed: HashSet<i64>,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) addresses: Vec<String>,
    pub(crate) topics: BTreeMap<String, Vec<PartitionLog>>,
    pub(crate) dice: Dice,
    /// One in so many frames is hit; 0 = none.
    pub(crate) fault_every: u64,
    /// Instead of the dice.
    pub(crate) always: Fault,
    pub(crate) next_producer: i64,
    pub(crate) describes: u64,
    /// Questions after outcomes are not answered.
    pub(crate) outcomes_fail: bool,
}

impl World {
    pub(crate) fn fault(&mut self) -> Fault {
        if self.always != Fault::None || self.fault_every == 0 {
            return self.always;
        }
        if self.dice.below(self.fault_every) != 0 {
            return Fault::None;
        }
        let coin = self.dice.below(2) == 0;
        match self.dice.below(5) {
            0 => Fault::Drop { written: coin },
            1 => Fault::Unknown { written: coin },
            2 => Fault::Moved { hint: coin },
            3 => Fault::NotWritten,
            _ => Fault::NoOwner,
        }
    }

    pub(crate) fn partition(&mut self, topic: &str, index: u32) -> Option<&mut PartitionLog> {
        self.topics.get_mut(topic)?.get_mut(index as usize)
    }

    pub(crate) fn move_away(&mut self, topic: &str, index: u32) -> (String, u64) {
        let brokers = self.addresses.len();
        let p = self.partition(topic, index).unwrap();
        let owner = (p.owner.unwrap_or(0) + 1) % brokers;
        p.owner = Some(owner);
        p.epoch += 1;
        let epoch = p.epoch;
        (self.addresses[owner].clone(), epoch)
    }

    /// Values of a partition in order of their offsets, checked against the offsets of the batches.
    pub(crate) fn values(&self, topic: &str, index: usize) -> Vec<Bytes> {
        let mut out = Vec::new();
        for (base, batch) in &self.topics[topic][index].entries {
            assert_eq!(*base, out.len() as i64);
            out.extend(records(batch, &Default::default()).unwrap().map(|r| r.unwrap().value.unwrap()));
        }
        out
    }
}

impl PartitionLog {
    /// Appends or recognises; the base offset and whether it was there.
    pub(crate) fn append(&mut self, payload: &Bytes) -> Result<(i64, bool), (ErrorCode, i32)> {
        let batch = batches(payload.clone()).next().unwrap().unwrap();
        let h: BatchHeader = tidemill_record::check(&batch.bytes, &Default::default())
            .map_err(|_| (ErrorCode::InvalidBatch, 0))?;
        if let Some(p) = h.producer() {
            let known = self.producers.entry(p.id).or_default();
            let (first, last) = (p.base_sequence, p.last_sequence(h.last_offset_delta));
            if let Some(hit) = known.iter().find(|(f, l, _)| (*f, *l) == (first, last)) {
                return Ok((hit.2, true));
            }
            if self.closed.contains(&p.id) {
                return Err((ErrorCode::UnknownProducer, 0));
            }
            let expected = known.back().map_or(0, |(_, l, _)| l + 1);
            if known.is_empty() && first != 0 {
                return Err((ErrorCode::UnknownProducer, 0));
            }
            if first != expected {
                return Err((ErrorCode::OutOfOrderSequence, expected));
            }
            known.push_back((first, last, self.end));
            if known.len() > 5 {
                known.pop_front();
            }
        }
        let base = self.end;
        self.entries.push((base, batch.bytes));
        self.end += i64::from(h.count);
        Ok((base, false))
    }
}
