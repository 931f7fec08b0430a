//! Equality with the Java client of Kafka. `testdata/make/make.sh` made the vectors.

#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_sign_loss, reason = "helpers of tests")]

mod common;

use std::num::NonZeroU32;

use bytes::Bytes;
use common::{assert_header, assert_records, hex, load, name};
use serde_json::Value;
use tidemill_record::control::{ControlRecord, Marker, MarkerKind, marker_batch, parse};
use tidemill_record::{
    BatchBuilder, BatchOptions, Compression, HeaderRef, Limits, Record, batches, check, check_stored,
    murmur2, partition_for_key, records,
};
use tidemill_types::Offset;

const LIMITS: Limits = Limits::DEFAULT;

fn read(batch: &Bytes) -> Vec<Record> {
    records(batch, &LIMITS).unwrap().map(Result::unwrap).collect()
}

#[test]
fn what_java_writes_is_read_alike() {
    for vector in load("java.json") {
        let batch = hex(&vector["hex"]);
        let header = check_stored(&batch, &LIMITS).unwrap_or_else(|e| panic!("{}: {e}", name(&vector)));
        assert_header(name(&vector), &header, &vector["header"]);
        assert_records(name(&vector), &header, &read(&batch), &vector["records"]);
    }
}

#[test]
fn what_we_write_java_reads_as_we_do() {
    for vector in load("ours.json") {
        let batch = hex(&vector["hex"]);
        let header = check_stored(&batch, &LIMITS).unwrap();
        assert_header(name(&vector), &header, &vector["header"]);
        assert_records(name(&vector), &header, &read(&batch), &vector["records"]);
    }
}

#[test]
fn every_compression_is_among_the_vectors_of_both() {
    for file in ["java.json", "ours.json"] {
        let all = load(file);
        for compression in Compression::ALL {
            let of = all.iter().filter(|v| v["header"]["compression"] == compression.name());
            assert!(of.count() >= 3, "{file}: {compression}");
        }
    }
}

#[test]
fn a_broker_takes_what_java_producers_send() {
    let mut taken = 0;
    for vector in load("java.json") {
        let batch = hex(&vector["hex"]);
        let header = &vector["header"];
        let from_producer = header["append_time"] == false
            && header["control"] == false
            && header["delete_horizon"].is_null()
            && header["count"].as_i64().unwrap()
                == header["next_offset"].as_i64().unwrap() - header["base_offset"].as_i64().unwrap();
        assert_eq!(check(&batch, &LIMITS).is_ok(), from_producer, "{}", name(&vector));
        taken += u32::from(from_producer);
    }
    assert!(taken >= 15);
}

/// The records of a vector through our encoder.
fn rebuild(builder: &mut BatchBuilder, vector: &Value, read: &[Record], compression: Compression) -> Bytes {
    let expected = vector["records"].as_array().unwrap();
    for (record, e) in read.iter().zip(expected) {
        let keys: Vec<_> = record.headers.iter().map(|h| h.key_str().into_owned()).collect();
        let headers: Vec<_> = record
            .headers
            .iter()
            .zip(&keys)
            .map(|(h, key)| HeaderRef { key, value: h.value.as_deref() })
            .collect();
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        let timestamp = e["written_timestamp"].as_i64().unwrap();
        let before = builder.size();
        let size = builder.record_size(timestamp, key, value, &headers);
        builder.append(timestamp, key, value, &headers).unwrap();
        assert_eq!(builder.size(), before + size, "{}", name(vector));
    }
    let h = &vector["header"];
    let header = tidemill_record::BatchHeader::parse(&hex(&vector["hex"])).unwrap();
    let options = BatchOptions {
        compression,
        producer: header.producer(),
        transactional: header.attributes.is_transactional(),
        base_offset: header.base_offset,
        leader_epoch: header.leader_epoch,
        append_time: (h["append_time"] == true).then_some(header.max_timestamp),
        control: false,
    };
    builder.finish_with(&options).unwrap()
}

#[test]
fn the_same_records_give_the_same_bytes_as_java() {
    let mut builder = BatchBuilder::new(LIMITS);
    let mut compared = 0;
    for vector in load("java.json") {
        let h = &vector["header"];
        let special =
            name(&vector) == "offset gaps" || h["control"] == true || !h["delete_horizon"].is_null();
        if h["compression"] != "none" || special || h["count"] == 0 {
            continue;
        }
        let batch = hex(&vector["hex"]);
        assert_eq!(
            rebuild(&mut builder, &vector, &read(&batch), Compression::None),
            batch,
            "{}",
            name(&vector)
        );
        compared += 1;
    }
    assert_eq!(compared, 5);
}

#[test]
fn the_records_of_java_survive_every_compression_of_ours() {
    let mut builder = BatchBuilder::new(LIMITS);
    for vector in
        load("java.json").iter().filter(|v| name(v).starts_with("mixed") || name(v).starts_with("large"))
    {
        let original = read(&hex(&vector["hex"]));
        for compression in Compression::ALL {
            let batch = rebuild(&mut builder, vector, &original, compression);
            let header = check(&batch, &LIMITS).unwrap();
            assert_eq!(header.attributes.compression(), Ok(compression));
            assert_eq!(read(&batch), original, "{} as {compression}", name(vector));
        }
    }
}

#[test]
fn markers_are_those_of_java() {
    let all = load("java.json");
    for (vector_name, kind) in [("marker abort", MarkerKind::Abort), ("marker commit", MarkerKind::Commit)] {
        let vector = all.iter().find(|v| name(v) == vector_name).unwrap();
        let batch = hex(&vector["hex"]);
        let marker = Marker { kind, coordinator_epoch: 19 };
        assert_eq!(parse(&batch, &LIMITS), Ok(ControlRecord::EndOfTransaction(marker)));
        assert_eq!(marker_batch(marker, 42, 3, 1_700_000_000_000, Offset(77), 5), Ok(batch));
    }
}

#[test]
fn a_payload_of_all_java_batches_splits_into_them() {
    let all: Vec<Bytes> = load("java.json").iter().map(|v| hex(&v["hex"])).collect();
    let payload = Bytes::from(all.concat());
    let split: Vec<Bytes> = batches(payload.clone()).map(|b| b.unwrap().bytes).collect();
    assert_eq!(split, all);
    let inside = payload.as_ptr_range();
    assert!(split.iter().all(|b| inside.contains(&b.as_ptr())), "slices, not copies");
}

#[test]
fn keys_land_where_java_puts_them() {
    for vector in load("murmur2.json") {
        let key = hex(&vector["key"]);
        assert_eq!(i64::from(murmur2(&key).cast_signed()), vector["murmur2"].as_i64().unwrap(), "{key:?}");
        for pair in vector["partitions"].as_array().unwrap() {
            let partitions = NonZeroU32::new(u32::try_from(pair[0].as_u64().unwrap()).unwrap()).unwrap();
            assert_eq!(u64::from(partition_for_key(&key, partitions)), pair[1].as_u64().unwrap(), "{key:?}");
        }
    }
}
