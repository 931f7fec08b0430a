//! Who is there and how it is.

use tidemill_proto::bookie::GetInfoResponse;
use tidemill_types::BookieState;

use crate::{shared::Core, space};

/// Answers in every phase.
pub(super) fn get(core: &Core) -> GetInfoResponse {
    let mut info = GetInfoResponse {
        identity: Some(core.identity()),
        name: core.config.name.clone(),
        state: "starting".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..GetInfoResponse::default()
    };
    let Some(serving) = core.any_serving() else { return info };
    let (engine, stats) = (serving.engine.info(), serving.engine.stats());
    info.state = state(serving.state(), engine.limbo, space::is_read_only(&engine)).to_owned();
    info.total_bytes = space::total_bytes(&engine);
    info.free_bytes = space::free_bytes(&engine);
    info.ledgers = engine.ledgers as u64;
    info.segments = engine.lanes.iter().map(|l| l.segments as u64).sum();
    info.payload_bytes = stats.payload_bytes;
    info.written_bytes = stats.bytes_written + stats.rewritten_bytes;
    info.entries = stats.entries;
    info.groups = stats.groups;
    info
}

/// The durable flag on the disks goes before the quorum's word: it is what reads are answered by.
fn state(quorum: BookieState, limbo: bool, read_only: bool) -> &'static str {
    match quorum {
        BookieState::Lost => "lost",
        BookieState::Retired => "retired",
        _ if limbo => "limbo",
        BookieState::Draining => "draining",
        BookieState::Rw if !read_only => "rw",
        BookieState::Rw | BookieState::Ro | BookieState::Limbo => "ro",
    }
}
