//! Compiles the .proto files with a compiler in Rust: no protoc on the machine is needed.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message;

const FILES: [&str; 10] = [
    "tidemill/v1/common.proto",
    "tidemill/v1/producer.proto",
    "tidemill/v1/consumer.proto",
    "tidemill/v1/metadata.proto",
    "tidemill/v1/admin.proto",
    "tidemill/v1/control.proto",
    "tidemill/v1/group.proto",
    "tidemill/bookie/v1/bookie.proto",
    "tidemill/meta/v1/meta.proto",
    "tidemill/raft/v1/raft.proto",
];

/// Fields that stay `Bytes`: no copy between the transport's buffer and the disk or the cache.
const BYTES: [&str; 12] = [
    ".tidemill.bookie.v1.AddEntry.entry",
    ".tidemill.bookie.v1.ReadResult.bytes",
    ".tidemill.bookie.v1.RecoveryAddRequest.entries",
    ".tidemill.v1.ProduceRequest.batches",
    ".tidemill.v1.ProduceFrame.batches",
    ".tidemill.v1.FetchedBatch.batch",
    ".tidemill.v1.Record",
    ".tidemill.v1.Header",
    ".tidemill.meta.v1.ProposeRequest.request",
    ".tidemill.meta.v1.WatchEvent",
    ".tidemill.raft.v1.Envelope.payload",
    ".tidemill.raft.v1.SnapshotPiece.data",
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo:rerun-if-changed={}", root.display());
    println!("cargo:rerun-if-changed=build.rs");
    let fds = protox::compile(FILES, [&root])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptor.bin"), fds.encode_to_vec())?;
    let mut config = tonic_prost_build::configure();
    for path in BYTES {
        config = config.bytes(path);
    }
    config.compile_fds(fds)?;
    Ok(())
}
