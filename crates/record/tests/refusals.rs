//! Each way in which a batch can be wrong, and the code that says so.

#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_sign_loss, reason = "helpers of tests")]

use bytes::Bytes;
use tidemill_record::control::{self, Marker, MarkerKind, marker_batch};
use tidemill_record::{
    BatchBuilder, BatchError, BatchHeader, BatchOptions, Compression, HEADER_BYTES, HeaderRef, Limits,
    ProducerFields, assign_offset, batches, check, check_stored, records, set_append_time,
};
use tidemill_types::{ErrorCode, Offset};

const LIMITS: Limits = Limits::DEFAULT;
const T: i64 = 1_700_000_000_000;

fn build(n: i64, options: &BatchOptions) -> Vec<u8> {
    let mut b = BatchBuilder::new(LIMITS);
    for i in 0..n {
        b.append(T + i, Some(b"key"), Some(b"a value"), &[]).unwrap();
    }
    b.finish_with(options).unwrap().to_vec()
}

fn three() -> Vec<u8> {
    build(3, &BatchOptions::default())
}

/// Overwrites bytes and makes the CRC right again.
fn with(mut batch: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    batch[at..at + bytes.len()].copy_from_slice(bytes);
    reseal(batch)
}

fn reseal(mut batch: Vec<u8>) -> Vec<u8> {
    let crc = crc_fast::crc32_iscsi(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    batch
}

/// A batch with this payload, everything in the header true to it.
fn around(payload: &[u8], count: i32, compression: u8) -> Vec<u8> {
    let mut batch = build(1, &BatchOptions::default());
    batch.truncate(HEADER_BYTES);
    batch.extend_from_slice(payload);
    let length = i32::try_from(batch.len() - 12).unwrap();
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    batch[22] = compression;
    batch[23..27].copy_from_slice(&(count - 1).to_be_bytes());
    batch[57..61].copy_from_slice(&count.to_be_bytes());
    reseal(batch)
}

fn code(batch: &[u8]) -> &'static str {
    check(batch, &LIMITS).map_or_else(|e| e.code(), |_| "ok")
}

fn read_code(batch: Vec<u8>, limits: &Limits) -> &'static str {
    let read = |b: &Bytes| records(b, limits)?.collect::<Result<Vec<_>, BatchError>>();
    read(&Bytes::from(batch)).map_or_else(|e| e.code(), |_| "ok")
}

#[test]
fn a_whole_batch_is_taken() {
    assert_eq!(code(&three()), "ok");
    assert_eq!(read_code(three(), &LIMITS), "ok");
}

#[test]
fn every_cut_is_noticed() {
    let batch = three();
    for n in 0..batch.len() {
        assert_eq!(code(&batch[..n]), "TRUNCATED_BATCH", "{n}");
        assert_eq!(read_code(batch[..n].to_vec(), &LIMITS), "TRUNCATED_BATCH", "{n}");
    }
}

#[test]
fn every_flipped_bit_under_the_crc_is_noticed() {
    let batch = three();
    for bit in 21 * 8..batch.len() * 8 {
        let mut flipped = batch.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(code(&flipped), "BAD_CRC", "{bit}");
        assert_eq!(check_stored(&flipped, &LIMITS).unwrap_err().code(), "BAD_CRC", "{bit}");
    }
}

#[test]
fn lengths_magic_and_size() {
    let mut longer = three();
    longer.push(0);
    assert_eq!(code(&longer), "TRAILING_BYTES");
    assert_eq!(code(&with(three(), 16, &[1])), "BAD_MAGIC");
    assert_eq!(BatchHeader::parse(&with(three(), 16, &[1])[..17]).unwrap_err().code(), "BAD_MAGIC");
    assert_eq!(code(&with(three(), 8, &48_i32.to_be_bytes())), "BAD_LENGTH");
    assert_eq!(code(&with(three(), 8, &(-1_i32).to_be_bytes())), "BAD_LENGTH");
    let batch = three();
    let tight = |batch_bytes| Limits { batch: batch_bytes, ..LIMITS };
    assert!(check(&batch, &tight(batch.len())).is_ok());
    let error = check(&batch, &tight(batch.len() - 1)).unwrap_err();
    assert_eq!(error.code(), "TOO_LARGE");
    assert_eq!(error.error_code(), ErrorCode::MessageTooLarge);
    assert_eq!(
        error.to_string(),
        format!("batch has {} bytes, allowed are {}", batch.len(), batch.len() - 1)
    );
}

#[test]
fn counts() {
    let count = |n: i32| with(three(), 57, &n.to_be_bytes());
    for n in [0, 1, 2, 4, -1, i32::MIN, i32::MAX] {
        assert_eq!(code(&count(n)), "BAD_COUNT", "{n}");
    }
    assert_eq!(code(&with(three(), 23, &(-1_i32).to_be_bytes())), "BAD_COUNT");
    // Compaction may take records away, never add some.
    for (n, ok) in [(0, true), (2, true), (3, true), (4, false), (-1, false)] {
        assert_eq!(check_stored(&count(n), &LIMITS).is_ok(), ok, "{n}");
    }
    // One count per offset, but far more than the bytes can hold.
    for compression in Compression::ALL {
        let absurd = around(b"0123456789", 1_000_000, compression.id());
        assert_eq!(code(&absurd), "BAD_COUNT", "{compression}");
        assert_eq!(read_code(absurd, &LIMITS), "BAD_COUNT", "{compression}");
    }
}

#[test]
fn attributes() {
    for id in 5..8 {
        assert_eq!(code(&with(three(), 21, &[0, id])), "UNKNOWN_COMPRESSION");
        assert_eq!(
            check_stored(&with(three(), 21, &[0, id]), &LIMITS).unwrap_err().code(),
            "UNKNOWN_COMPRESSION"
        );
        assert_eq!(read_code(with(three(), 21, &[0, id]), &LIMITS), "UNKNOWN_COMPRESSION");
    }
    for bit in [3, 5, 6, 7, 8, 15] {
        let bits = (1_u16 << bit).to_be_bytes();
        assert_eq!(code(&with(three(), 21, &bits)), "BAD_ATTRIBUTES", "{bit}");
    }
}

#[test]
fn producers() {
    let producer = |id: i64, epoch: i16, sequence: i32, attributes: u8| {
        let b = with(with(three(), 43, &id.to_be_bytes()), 51, &epoch.to_be_bytes());
        code(&with(with(b, 53, &sequence.to_be_bytes()), 22, &[attributes]))
    };
    assert_eq!(producer(0, 0, 0, 0), "ok");
    assert_eq!(producer(i64::MAX, i16::MAX, i32::MAX, 16), "ok");
    assert_eq!(producer(-1, -1, 0, 0), "ok");
    assert_eq!(producer(-1, 0, 0, 0), "ok");
    for (id, epoch, sequence, attributes) in [
        (-2, -1, -1, 0),
        (-1, -1, -1, 16),
        (-1, 1, -1, 0),
        (-1, -1, 1, 0),
        (1, -1, 0, 0),
        (1, 0, -1, 0),
        (1, 0, i32::MIN, 0),
    ] {
        assert_eq!(
            producer(id, epoch, sequence, attributes),
            "BAD_PRODUCER",
            "{id} {epoch} {sequence} {attributes}"
        );
    }
}

#[test]
fn timestamps() {
    assert_eq!(code(&with(three(), 27, &(-2_i64).to_be_bytes())), "BAD_TIMESTAMP");
    assert_eq!(code(&with(three(), 35, &(T - 1).to_be_bytes())), "BAD_TIMESTAMP");
    assert_eq!(read_code(with(three(), 27, &i64::MAX.to_be_bytes()), &LIMITS), "BAD_TIMESTAMP");
}

#[test]
fn records_are_bounded() {
    // A broker refuses what no reader could read.
    let read = |payload: &[u8], count| {
        let batch = around(payload, count, 0);
        assert_eq!(code(&batch), read_code(batch.clone(), &LIMITS), "{payload:?}");
        read_code(batch, &LIMITS)
    };
    //          length, attributes, time, offset, key, value, headers
    let smallest = [12, 0, 0, 0, 1, 1, 0];
    assert_eq!(read(&smallest, 1), "ok");
    assert_eq!(read(&[smallest, smallest].concat(), 1), "TRAILING_BYTES");
    assert_eq!(read(&[smallest, smallest].concat(), 2), "BAD_OFFSET_DELTA");
    assert_eq!(read(&[12, 0, 0, 1, 1, 1, 0], 1), "BAD_OFFSET_DELTA");
    assert_eq!(read(&[12, 0, 0, 2, 1, 1, 0], 1), "BAD_OFFSET_DELTA");
    assert_eq!(read(&[10, 0, 0, 0, 1, 1, 0], 1), "BAD_LENGTH");
    assert_eq!(read(&[1, 0, 0, 0, 1, 1, 0], 1), "BAD_LENGTH");
    assert_eq!(read(&[14, 0, 0, 0, 1, 1, 0], 1), "TRUNCATED_BATCH");
    assert_eq!(read(&[14, 0, 0, 0, 1, 1, 0, 0], 1), "TRAILING_BYTES");
    assert_eq!(read(&[12, 0, 0, 0, 3, 1, 0], 1), "BAD_LENGTH");
    assert_eq!(read(&[12, 0, 0, 0, 1, 3, 0], 1), "BAD_LENGTH");
    assert_eq!(read(&[12, 0, 0, 0, 1, 8, 0], 1), "TRUNCATED_BATCH");
    assert_eq!(read(&[12, 0, 0, 0, 1, 1, 1], 1), "BAD_COUNT");
    assert_eq!(read(&[12, 0, 0, 0, 1, 1, 2], 1), "BAD_COUNT");
    assert_eq!(read(&[0xff; 12], 1), "BAD_VARINT");
    assert_eq!(read(&[16, 0, 0, 0, 1, 1, 2, 1, 1], 1), "BAD_LENGTH");
    assert_eq!(read(&[18, 0, 0, 0, 1, 1, 2, 0, 8, 0], 1), "TRUNCATED_BATCH");
}

#[test]
fn headers_are_counted_before_they_are_read() {
    let headers = vec![HeaderRef { key: "", value: None }; 1_000];
    let mut b = BatchBuilder::new(Limits { headers: 1_001, ..LIMITS });
    b.append(T, None, None, &headers).unwrap();
    let most = b.finish(Compression::None, None).unwrap();
    assert_eq!(read_code(most.to_vec(), &LIMITS), "ok");
    b.append(T, None, None, &[headers.as_slice(), &headers[..1]].concat()).unwrap();
    let more = b.finish(Compression::None, None).unwrap();
    assert_eq!(read_code(more.to_vec(), &LIMITS), "TOO_MANY_HEADERS");
    let mut b = BatchBuilder::new(LIMITS);
    assert_eq!(
        b.append(T, None, None, &[headers.as_slice(), &headers].concat()).unwrap_err().code(),
        "TOO_MANY_HEADERS"
    );
    assert!(b.is_empty());
}

#[test]
fn bombs_do_not_inflate() {
    let mut b = BatchBuilder::new(LIMITS);
    b.append(T, None, Some(&vec![0; 1 << 20]), &[]).unwrap();
    let size = b.size() - HEADER_BYTES;
    for compression in Compression::ALL {
        let batch = match compression {
            Compression::None => continue,
            _ => b.finish(compression, None).unwrap(),
        };
        assert!(check(&batch, &LIMITS).is_ok(), "the broker does not open it");
        let capped = |inflated| read_code(batch.to_vec(), &Limits { inflated, ..LIMITS });
        assert_eq!(capped(size), "ok", "{compression}");
        assert_eq!(capped(size - 1), "INFLATED_TOO_LARGE", "{compression}");
        b.append(T, None, Some(&vec![0; 1 << 20]), &[]).unwrap();
    }
}

#[test]
fn broken_compressed_data_is_refused() {
    for compression in &Compression::ALL[1..] {
        let batch = build(5, &BatchOptions { compression: *compression, ..BatchOptions::default() });
        for n in HEADER_BYTES..batch.len() {
            let cut = around(&batch[HEADER_BYTES..n], 5, compression.id());
            assert_ne!(read_code(cut, &LIMITS), "ok", "{compression} cut at {n}");
        }
        let garbage = around(&[0x55; 100], 5, compression.id());
        assert_eq!(read_code(garbage, &LIMITS), "BAD_COMPRESSED_DATA", "{compression}");
        let followed = around(&[&batch[HEADER_BYTES..], &[0x55; 9]].concat(), 5, compression.id());
        assert_ne!(read_code(followed, &LIMITS), "ok", "{compression}");
    }
    // A snappy block of few bytes that claims 32 MiB.
    let claim = [0x80, 0x80, 0x80, 0x10, 0, 0, 0, 0, 0, 0];
    assert_eq!(read_code(around(&claim, 1, 2), &LIMITS), "BAD_COMPRESSED_DATA");
}

#[test]
fn snappy_is_read_raw_framed_and_in_a_row() {
    let plain = three();
    let payload = &plain[HEADER_BYTES..];
    let raw = snap::raw::Encoder::new().compress_vec(payload).unwrap();
    assert_eq!(read_code(around(&raw, 3, 2), &LIMITS), "ok");
    let head = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
    let (a, b) = payload.split_at(20);
    let mut framed = Vec::new();
    for part in [a, b] {
        let block = snap::raw::Encoder::new().compress_vec(part).unwrap();
        framed.extend_from_slice(head);
        framed.extend_from_slice(&u32::try_from(block.len()).unwrap().to_be_bytes());
        framed.extend_from_slice(&block);
    }
    assert_eq!(read_code(around(&framed, 3, 2), &LIMITS), "ok");
    framed[15] = 2;
    assert_eq!(read_code(around(&framed, 3, 2), &LIMITS), "BAD_COMPRESSED_DATA");
}

#[test]
fn zstd_without_content_size_and_lz4_with_linked_blocks_are_read() {
    use std::io::Write;
    let payload = three()[HEADER_BYTES..].to_vec();
    let mut zstd = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    zstd.write_all(&payload).unwrap();
    let frame = zstd.finish().unwrap();
    assert_eq!(zstd::bulk::Decompressor::upper_bound(&frame), None);
    assert_eq!(read_code(around(&frame, 3, 4), &LIMITS), "ok");
    let info = lz4_flex::frame::FrameInfo::new()
        .block_mode(lz4_flex::frame::BlockMode::Linked)
        .content_checksum(true)
        .block_checksums(true);
    let mut lz4 = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    lz4.write_all(&payload).unwrap();
    assert_eq!(read_code(around(&lz4.finish().unwrap(), 3, 3), &LIMITS), "ok");
}

#[test]
fn a_payload_ends_at_its_first_broken_batch() {
    let payload = [three(), three(), three()[..40].to_vec()].concat();
    let all: Vec<_> = batches(Bytes::from(payload)).collect();
    assert_eq!(all.len(), 3);
    assert!(all[..2].iter().all(|b| b.as_ref().unwrap().check(&LIMITS).is_ok()));
    assert_eq!(all[2].as_ref().unwrap_err().code(), "TRUNCATED_BATCH");
    assert_eq!(batches(Bytes::new()).count(), 0);
}

#[test]
fn a_broker_stamps_in_place() {
    let mut batch = three();
    let before = check(&batch, &LIMITS).unwrap();
    assign_offset(&mut batch, Offset(500), 7).unwrap();
    let after = check(&batch, &LIMITS).unwrap();
    assert_eq!(after, BatchHeader { base_offset: Offset(500), leader_epoch: 7, ..before });
    set_append_time(&mut batch, T + 1_000).unwrap();
    check_stored(&batch, &LIMITS).unwrap();
    let times: Vec<i64> =
        records(&Bytes::from(batch.clone()), &LIMITS).unwrap().map(|r| r.unwrap().timestamp).collect();
    assert_eq!(times, [T + 1_000; 3]);
    assert_eq!(set_append_time(&mut batch[..100], T).unwrap_err().code(), "TRUNCATED_BATCH");
}

#[test]
fn the_builder_refuses_and_keeps_what_it_has() {
    let mut b = BatchBuilder::new(Limits { batch: 200, inflated: 300, headers: 2 });
    assert_eq!(b.finish(Compression::None, None).unwrap_err().code(), "BAD_COUNT");
    assert_eq!(b.append(-2, None, None, &[]).unwrap_err().code(), "BAD_TIMESTAMP");
    assert_eq!(b.append(T, None, Some(&[0; 301]), &[]).unwrap_err().code(), "TOO_LARGE");
    assert_eq!(b.append(T, None, Some(&[0; 250]), &[]), Ok(0));
    assert_eq!(b.append(T, None, Some(&[0; 50]), &[]).unwrap_err().code(), "TOO_LARGE");
    let mut far = BatchBuilder::new(LIMITS);
    assert_eq!(far.append(-1, None, None, &[]), Ok(0));
    assert_eq!(far.append(i64::MAX, None, None, &[]).unwrap_err().code(), "BAD_TIMESTAMP");
    assert_eq!(far.append(i64::MAX - 1, None, None, &[]), Ok(1));
    assert_eq!(b.finish(Compression::None, None).unwrap_err().code(), "TOO_LARGE");
    let bad = ProducerFields { id: 1, epoch: -1, base_sequence: 0 };
    assert_eq!(b.finish(Compression::Zstd, Some(bad)).unwrap_err().code(), "BAD_PRODUCER");
    let transactional = BatchOptions { transactional: true, ..BatchOptions::default() };
    assert_eq!(b.finish_with(&transactional).unwrap_err().code(), "BAD_PRODUCER");
    assert_eq!(b.count(), 1);
    let batch = b.finish(Compression::Zstd, None).unwrap();
    assert_eq!(check(&batch, &LIMITS).unwrap().count, 1);
    assert!(b.is_empty());
    assert_eq!(b.size(), HEADER_BYTES);
}

#[test]
fn control_batches() {
    let marker = Marker { kind: MarkerKind::Commit, coordinator_epoch: 1 };
    let batch = marker_batch(marker, 5, 0, T, Offset(1), 1).unwrap();
    assert_eq!(check(&batch, &LIMITS).unwrap_err().code(), "BAD_ATTRIBUTES");
    assert!(check_stored(&batch, &LIMITS).is_ok());
    assert_eq!(marker_batch(marker, -1, 0, T, Offset(1), 1).unwrap_err().code(), "BAD_PRODUCER");
    let negative = Marker { coordinator_epoch: -1, ..marker };
    assert_eq!(marker_batch(negative, 5, 0, T, Offset(1), 1).unwrap_err().code(), "BAD_CONTROL");
    let parse = |batch: Vec<u8>| control::parse(&Bytes::from(batch), &LIMITS);
    assert_eq!(parse(three()).unwrap_err().code(), "BAD_CONTROL");
    // The key starts after length, attributes, two deltas and its own length.
    let key = HEADER_BYTES + 5;
    let edit = |at, bytes: &[u8]| with(batch.to_vec(), at, bytes);
    assert_eq!(parse(edit(key, &[0xff, 0xff])).unwrap_err().code(), "BAD_CONTROL");
    assert_eq!(
        parse(edit(key, &[0, 9])),
        control::parse(&batch, &LIMITS),
        "a later version adds fields only"
    );
    assert_eq!(parse(edit(key + 2, &[0, 9])), Ok(control::ControlRecord::Unknown { kind: 9 }));
}
