//! Work on bytes that cannot be left out.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use tidemill_record::{BatchBuilder, Compression, Limits};
use tidemill_types::entry::crc32c;

use super::Limit;
use crate::outcome::as_f64;

const TIME: Duration = Duration::from_millis(500);

pub(super) fn measure() -> Vec<Limit> {
    let block = vec![7_u8; 256 << 10];
    let mut all = vec![rate("CRC-32C, 256 KiB", || {
        black_box(crc32c(&[black_box(&block)]));
        block.len()
    })];
    for size in [100, 1_024] {
        let (value, mut batch) = (vec![7_u8; size], BatchBuilder::new(Limits::DEFAULT));
        all.push(rate(&format!("encode {size} B records into 256 KiB batches"), move || {
            let mut bytes = 0;
            while batch.size() + 2 * size < 256 << 10 {
                if batch.append(1, None, Some(black_box(&value)), &[]).is_err() {
                    break;
                }
                bytes += size;
            }
            let _ = black_box(batch.finish(Compression::None, None));
            bytes
        }));
    }
    all
}

/// `work` answers the bytes that it did.
fn rate(name: &str, mut work: impl FnMut() -> usize) -> Limit {
    let (begin, mut bytes) = (Instant::now(), 0);
    while begin.elapsed() < TIME {
        bytes += work() as u64;
    }
    let bytes_per_second = as_f64(bytes) / begin.elapsed().as_secs_f64();
    Limit { name: name.to_owned(), bytes_per_second, p50_us: None, p99_us: None }
}
