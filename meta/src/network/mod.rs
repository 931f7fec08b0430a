//! Raft between members, over gRPC (`proto/tidemill/raft/v1/raft.proto`).

mod book;
mod client;
mod codec;
mod server;
mod snapshot;

pub(crate) use self::codec::MAX_MESSAGE;
pub(crate) use self::{book::AddressBook, client::Network, server::RaftService};
