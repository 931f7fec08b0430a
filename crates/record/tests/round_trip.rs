//! Whatever goes in comes out, for records that nobody thought of.

#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_sign_loss, reason = "helpers of tests")]

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tidemill_record::{
    BatchBuilder, BatchOptions, Compression, HeaderRef, Limits, ProducerFields, Record, assign_offset,
    batches, check, check_stored, records,
};
use tidemill_types::Offset;

const LIMITS: Limits = Limits::DEFAULT;

#[derive(Clone, Debug)]
struct Given {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Given {
    fn headers(&self) -> Vec<HeaderRef<'_>> {
        self.headers.iter().map(|(key, value)| HeaderRef { key, value: value.as_deref() }).collect()
    }

    fn append(&self, b: &mut BatchBuilder) {
        let headers = self.headers();
        let (key, value) = (self.key.as_deref(), self.value.as_deref());
        let expected = b.size() + b.record_size(self.timestamp, key, value, &headers);
        let delta = b.count();
        assert_eq!(b.append(self.timestamp, key, value, &headers), Ok(delta));
        assert_eq!(b.size(), expected);
    }

    fn is(&self, r: &Record) -> bool {
        self.timestamp == r.timestamp
            && self.key.as_deref() == r.key.as_deref()
            && self.value.as_deref() == r.value.as_deref()
            && self.headers.len() == r.headers.len()
            && self
                .headers
                .iter()
                .zip(&r.headers)
                .all(|((key, value), h)| key.as_bytes() == h.key && value.as_deref() == h.value.as_deref())
    }
}

fn timestamp() -> impl Strategy<Value = i64> {
    prop_oneof![Just(-1), 0..2_000_000_000_000_i64, Just(i64::MAX - 1), Just(0)]
}

fn given() -> impl Strategy<Value = Given> {
    let bytes = || vec(any::<u8>(), 0..200);
    let header = ("\\PC{0,12}", option::of(vec(any::<u8>(), 0..20)));
    (timestamp(), option::of(bytes()), option::of(bytes()), vec(header, 0..4))
        .prop_map(|(timestamp, key, value, headers)| Given { timestamp, key, value, headers })
}

fn compression() -> impl Strategy<Value = Compression> {
    proptest::sample::select(Compression::ALL.to_vec())
}

fn producer() -> impl Strategy<Value = Option<ProducerFields>> {
    let fields = (0..i64::MAX, 0..i16::MAX, 0..=i32::MAX);
    option::of(fields.prop_map(|(id, epoch, base_sequence)| ProducerFields { id, epoch, base_sequence }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn records_come_back(
        given in vec(given(), 1..60),
        compression in compression(),
        producer in producer(),
    ) {
        let mut b = BatchBuilder::new(LIMITS);
        given.iter().for_each(|g| g.append(&mut b));
        let size = b.size();
        let batch = b.finish(compression, producer).unwrap();
        let header = check(&batch, &LIMITS).unwrap();
        prop_assert_eq!(header.producer(), producer);
        prop_assert_eq!(header.count as usize, given.len());
        prop_assert_eq!(header.max_timestamp, given.iter().map(|g| g.timestamp).max().unwrap());
        if compression == Compression::None {
            prop_assert_eq!(batch.len(), size);
        }
        let read: Vec<Record> = records(&batch, &LIMITS).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(read.len(), given.len());
        for (i, (g, r)) in given.iter().zip(&read).enumerate() {
            prop_assert_eq!(i, r.offset_delta as usize);
            prop_assert!(g.is(r), "{:?} became {:?}", g, r);
        }
        if compression == Compression::None {
            let inside = batch.as_ptr_range();
            let values = read.iter().filter_map(|r| r.value.as_ref()).filter(|v| !v.is_empty());
            prop_assert!(values.into_iter().all(|v| inside.contains(&v.as_ptr())), "slices, not copies");
        }
    }

    #[test]
    fn payloads_split_where_they_were_joined(
        groups in vec((vec(given(), 1..8), compression()), 1..6),
        base in 0..1_000_000_i64,
    ) {
        let mut b = BatchBuilder::new(LIMITS);
        let mut payload = Vec::new();
        let mut next = base;
        for (group, compression) in &groups {
            group.iter().for_each(|g| g.append(&mut b));
            let mut batch = b.finish(*compression, None).unwrap().to_vec();
            assign_offset(&mut batch, Offset(next), 1).unwrap();
            next += group.len() as i64;
            payload.extend_from_slice(&batch);
        }
        let split: Vec<_> = batches(Bytes::from(payload)).collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(split.len(), groups.len());
        let mut expected = base;
        for (batch, (group, _)) in split.iter().zip(&groups) {
            prop_assert!(check_stored(&batch.bytes, &LIMITS).is_ok());
            prop_assert_eq!(batch.header.base_offset, Offset(expected));
            expected = batch.header.next_offset().0;
            let read: Vec<Record> = batch.records(&LIMITS).unwrap().map(Result::unwrap).collect();
            prop_assert!(group.len() == read.len() && group.iter().zip(&read).all(|(g, r)| g.is(r)));
        }
    }

    #[test]
    fn a_damaged_batch_never_passes_and_never_panics(
        given in vec(given(), 1..10),
        compression in compression(),
        damage in vec((any::<prop::sample::Index>(), 1..=255_u8), 1..4),
    ) {
        let mut b = BatchBuilder::new(LIMITS);
        given.iter().for_each(|g| g.append(&mut b));
        let batch = b.finish_with(&BatchOptions { compression, ..BatchOptions::default() }).unwrap();
        let mut damaged = batch.to_vec();
        for (at, mask) in &damage {
            let at = at.index(damaged.len());
            damaged[at] ^= mask;
        }
        let covered = damaged[21..] != batch[21..] || damaged[16..21] != batch[16..21] || damaged[8..12] != batch[8..12];
        prop_assert_eq!(check(&damaged, &LIMITS).is_err(), covered);
        // Without the CRC in front, the reader stands on its own.
        if let Ok(read) = records(&Bytes::from(damaged), &LIMITS) {
            prop_assert!(read.count() <= given.len().max(1 << 20));
        }
    }
}
