//! Client library: topics, an idempotent batching producer, consumers of assigned partitions and in groups, and what an operator
//! asks a cluster. `docs/client.md` has the guarantees in words.
//!
//! ```no_run
//! # async fn f() -> Result<(), Box<dyn std::error::Error>> {
//! use tidemill_client::{Client, ClientConfig, ConsumerConfig, Event, ProducerConfig, SendRecord, Start};
//!
//! let client = Client::connect(ClientConfig::new(["127.0.0.1:7450"])).await?;
//! client.admin().create_topic("orders", 8, [], true).await?;
//!
//! let producer = client.producer(ProducerConfig::default()).await?;
//! let orders = producer.topic("orders").await?;
//! let delivery = producer.send(&orders, SendRecord::new(Some(b"key"), Some(b"value"))).await?;
//! println!("written at {:?}", delivery.await?.offset);
//!
//! let mut consumer = client.consumer(ConsumerConfig::default());
//! consumer.assign([("orders", 0, Start::Earliest)])?;
//! for event in consumer.poll(std::time::Duration::from_secs(1)).await? {
//!     if let Event::Batch(batch) = event {
//!         println!("{} records", batch.records.len());
//!     }
//! }
//! # Ok(()) }
//! ```

mod admin;
mod backoff;
mod call;
mod client;
mod config;
mod consumer;
mod control;
mod epoch;
mod error;
mod group;
mod offsets;
mod pool;
mod producer;
pub mod quorum;
#[cfg(test)]
mod testing;
mod topology;

pub use admin::Admin;
pub use client::Client;
pub use config::ClientConfig;
pub use consumer::{
    ConsumedBatch, ConsumedRecord, Consumer, ConsumerConfig, Event, Gap, GapKind, Start, TopicPartition,
};
pub use control::{Control, TopicEvents};
pub use epoch::OPERATOR_EPOCH;
pub use error::{ClientError, OwnerHint};
pub use group::{
    CommitMode, CommittedPosition, GroupConsumer, GroupConsumerConfig, GroupEvent, Groups, ResetTo,
};
pub use offsets::{At, OffsetQuery, OffsetResult};
pub use producer::{
    Counters, Delivery, DeliveryError, NotDelivered, Producer, ProducerConfig, ProducerError, RecordMeta,
    SendRecord, TopicHandle,
};
pub use tidemill_proto::v1;
pub use tidemill_record::{Compression, Header, HeaderRef};
pub use tidemill_types::ErrorCode;
