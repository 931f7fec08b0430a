//! Batches whose header is true and whose contents are not.

use bytes::Bytes;
use tidemill_proto::{convert::code_of, v1};
use tidemill_record::{BatchBuilder, Compression, HeaderRef, Limits};
use tidemill_types::ErrorCode;

use crate::{
    harness::{Broker, Cluster, batch, values},
    stream::Stream,
};

/// Where the records of a batch begin.
const RECORDS: usize = tidemill_record::HEADER_BYTES;

/// A batch that says `count` records and `compression`, around these bytes, with the CRC right.
fn around(payload: &[u8], count: i32, compression: u8) -> Bytes {
    let mut b = batch(&values("v", 1), None).to_vec();
    b.truncate(RECORDS);
    b.extend_from_slice(payload);
    let length = i32::try_from(b.len() - 12).unwrap();
    b[8..12].copy_from_slice(&length.to_be_bytes());
    b[22] = compression;
    b[23..27].copy_from_slice(&(count - 1).to_be_bytes());
    b[57..61].copy_from_slice(&count.to_be_bytes());
    let crc = crc_fast::crc32_iscsi(&b[21..]);
    b[17..21].copy_from_slice(&crc.to_be_bytes());
    b.into()
}

fn headers(n: usize, compression: Compression) -> Bytes {
    let mut b = BatchBuilder::new(Limits { headers: n, ..Limits::DEFAULT });
    b.append(1_000, None, Some(b"v"), &vec![HeaderRef { key: "h", value: None }; n]).unwrap();
    b.finish(compression, None).unwrap()
}

fn request(batches: Bytes) -> v1::ProduceRequest {
    v1::ProduceRequest { topic: "t".into(), partition: Some(0), batches, ..v1::ProduceRequest::default() }
}

async fn broker() -> (Cluster, Broker) {
    let c = Cluster::start(3).await;
    let b = c.broker("broker-0").await;
    b.create("t", 1, &[]).await;
    (c, b)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uncompressed_records_that_nobody_could_read_are_refused_and_nothing_is_written() {
    let (c, b) = broker().await;
    //              length, attributes, time, offset, key, value, headers
    let smallest = [12, 0, 0, 0, 1, 1, 0];
    for (what, bad, reason) in [
        ("a length without an end", around(&[0xff; 12], 1, 0), "BAD_VARINT"),
        ("a key beyond the record", around(&[12, 0, 0, 0, 8, 1, 0], 1, 0), "TRUNCATED_BATCH"),
        ("a key of length -2", around(&[12, 0, 0, 0, 3, 1, 0], 1, 0), "BAD_LENGTH"),
        ("fewer records than said", around(&[smallest, smallest].concat(), 1, 0), "TRAILING_BYTES"),
        ("one offset twice", around(&[smallest, smallest].concat(), 2, 0), "BAD_OFFSET_DELTA"),
        ("absurdly many headers", around(&[12, 0, 0, 0, 1, 1, 126], 1, 0), "BAD_COUNT"),
        ("10 000 headers", headers(10_000, Compression::None), "TOO_MANY_HEADERS"),
    ] {
        let e = b.producer().produce(request(bad.clone())).await.unwrap_err();
        let (code, details) = code_of(&e).unwrap();
        assert_eq!((code, details["batch_error"].as_str()), (ErrorCode::InvalidBatch, reason), "{what}");
        assert_eq!(
            e.message().matches("allowed").count(),
            usize::from(e.message().contains("allowed")),
            "{e:?}"
        );
        let mut s = Stream::open(&b).await;
        s.send(1, "t", 0, bad).await;
        s.send(2, "t", 0, batch(&values("good", 1), None)).await;
        let r = s.results(2).await;
        assert_eq!(r[0].error.as_ref().unwrap().code, "INVALID_BATCH", "{what}");
        assert!(r[1].error.is_none(), "the stream stays usable: {r:?}");
    }
    assert_eq!(b.read_all("t", 0).await.len(), 7, "one good record for each case, nothing of the bad ones");
    b.stop().await;
    c.stop().await;
}

/// docs/adr/0010: compressed batches are not opened by the broker. Their readers say what is wrong, and can go on behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compressed_records_are_stored_unopened_and_their_readers_say_what_is_wrong() {
    let (c, b) = broker().await;
    b.produce("t", 0, &values("before", 1)).await.unwrap();
    let garbage = around(&[0x55; 40], 1, 4);
    assert_eq!(b.producer().produce(request(garbage)).await.unwrap().into_inner().base_offset, 1);
    let many = headers(10_000, Compression::Zstd);
    assert_eq!(b.producer().produce(request(many)).await.unwrap().into_inner().base_offset, 2);
    b.produce("t", 0, &values("after", 1)).await.unwrap();
    // As batches: the bytes, untouched.
    let p = b.fetch("t", 0, 1, false, 0).await;
    assert_eq!(p.batches.iter().map(|b| b.base_offset).collect::<Vec<_>>(), [1, 2, 3]);
    // As records: what is before it, then a typed error in its place, and the rest behind it.
    let p = b.fetch("t", 0, 0, true, 0).await;
    assert_eq!((p.records.len(), p.next_offset, p.error), (1, 1, None));
    for (offset, reason) in [(1, "batch at offset 1"), (2, "10000 headers")] {
        let e = b.fetch("t", 0, offset, true, 0).await.error.unwrap();
        assert_eq!(e.code, "INVALID_BATCH");
        assert!(e.message.contains(reason), "{e:?}");
    }
    assert_eq!(b.fetch("t", 0, 3, true, 0).await.records.len(), 1);
    b.stop().await;
    c.stop().await;
}
