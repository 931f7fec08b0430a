//! Writes batches for another implementation to read, one per line: name, tab, hex. See `testdata/make/make.sh`.

use std::io::Write;

use tidemill_record::control::{Marker, MarkerKind, marker_batch};
use tidemill_record::{BatchBuilder, BatchOptions, Compression, HeaderRef, Limits, ProducerFields};
use tidemill_types::Offset;

const T: i64 = 1_700_000_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    let mut line = |name: String, batch: &[u8]| {
        let hex: String = batch.iter().map(|b| format!("{b:02x}")).collect();
        writeln!(out, "{name}\t{hex}")
    };
    let mut b = BatchBuilder::new(Limits::DEFAULT);
    for compression in Compression::ALL {
        mixed(&mut b)?;
        line(format!("mixed {compression}"), &b.finish(compression, None)?)?;
        mixed(&mut b)?;
        let producer = ProducerFields { id: 1 << 40, epoch: 3, base_sequence: i32::MAX };
        line(format!("producer {compression}"), &b.finish(compression, Some(producer))?)?;
        mixed(&mut b)?;
        let options = BatchOptions {
            compression,
            producer: Some(ProducerFields { id: 0, epoch: 0, base_sequence: 0 }),
            transactional: true,
            base_offset: Offset(1 << 40),
            leader_epoch: 9,
            append_time: Some(T + 99),
            ..BatchOptions::default()
        };
        line(format!("transaction append time {compression}"), &b.finish_with(&options)?)?;
        if compression != Compression::None {
            // More than one block of every codec.
            for i in 0..300_u32 {
                let value: String = (0..60).map(|j| format!("word{:05} ", (i * 7 + j) % 11)).collect();
                b.append(T + i64::from(i), Some(&i.to_be_bytes()), Some(value.as_bytes()), &[])?;
            }
            line(format!("large {compression}"), &b.finish(compression, None)?)?;
        }
    }
    for kind in [MarkerKind::Abort, MarkerKind::Commit] {
        let marker = Marker { kind, coordinator_epoch: 4 };
        line(format!("marker {kind:?}"), &marker_batch(marker, 42, 3, T, Offset(77), 5)?)?;
    }
    Ok(())
}

fn mixed(b: &mut BatchBuilder) -> Result<(), tidemill_record::BatchError> {
    b.append(T, Some(b"key"), Some(b"value"), &[])?;
    b.append(T + 1_000_000_000, None, Some(&[7; 64]), &[])?;
    b.append(T - 1, Some(b"tombstone"), None, &[])?;
    b.append(T, None, None, &[])?;
    let headers = [
        HeaderRef { key: "größe", value: Some(b"\x00\xff") },
        HeaderRef { key: "null", value: None },
        HeaderRef { key: "", value: Some(b"") },
    ];
    b.append(T + 2, Some(b""), Some(b""), &headers)?;
    Ok(())
}
