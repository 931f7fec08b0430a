//! The record batch: one format from the producer to the object store.
//!
//! The layout is RecordBatch v2 of the Kafka protocol; `docs/formats/record-batch.md` has it byte by byte.
//!
//! | who | uses | opens the batch |
//! | --- | --- | --- |
//! | a broker that takes a produce payload | [`batches()`], [`check()`] | no |
//! | a broker that stores it | [`assign_offset`], [`set_append_time`] | no |
//! | a reader of stored bytes | [`check_stored`], [`records()`] | yes, up to [`Limits::inflated`] |
//! | a producer | [`BatchBuilder`], [`partition_for_key`] | |
//! | the end of a transaction | [`control`] | yes |
//!
//! Every length and count that comes from outside is bounded before it is used, and each refusal is a [`BatchError`]
//! with the field and what is allowed.

pub mod attributes;
pub mod batches;
pub mod builder;
pub mod check;
pub mod compact;
pub mod compression;
pub mod control;
mod cursor;
pub mod error;
pub mod header;
pub mod limits;
pub mod murmur2;
pub mod producer;
pub mod reader;
pub mod record;
pub mod stamp;
mod varint;

pub use attributes::{Attributes, TimestampType};
pub use batches::{Batch, Batches, batches};
pub use builder::{BatchBuilder, BatchOptions, HeaderRef};
pub use check::{check, check_stored};
pub use compact::{Compacted, Compactor};
pub use compression::Compression;
pub use error::BatchError;
pub use header::{BatchHeader, HEADER_BYTES};
pub use limits::Limits;
pub use murmur2::{murmur2, partition_for_key};
pub use producer::ProducerFields;
pub use reader::{Records, records};
pub use record::{Header, Record};
pub use stamp::{assign_offset, set_append_time};
