//! `Watch`: every change after a revision, in order; any member serves it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tidemill_metadata::{State, codec};
use tidemill_proto::meta::{WatchEvent, WatchRequest, watch_event::Event};
use tidemill_runtime::{defaults::SNAPSHOT_PIECE, work};
use tidemill_types::{ErrorCode, Revision, TopicControl, meta::MetaView};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::{Events, MetaService, refuse, refuse_for_now};
use crate::{
    machine::Resume,
    node::{Node, WATCHES},
};

/// A quiet stream says so often how far it is.
const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// A member that applied nothing for so many ticks is cut off: its watchers had better ask another one.
const SILENT_TICKS: u32 = 3;
/// Watchers that are ahead of this member wait so long for it.
const CATCH_UP: Duration = Duration::from_secs(4);
/// Messages under way to one watcher; a slow one waits here, not in the ring.
const IN_FLIGHT: usize = 16;
/// Events taken out of the ring at once.
const BATCH: usize = 256;
/// Records between two looks at the size of a piece.
const STEP: usize = 256;

type Sender = mpsc::Sender<Result<WatchEvent, Status>>;

/// The watcher is gone, or has to go.
struct Over;

pub(super) fn watch(service: &MetaService, r: &WatchRequest) -> Result<Events, Status> {
    service.node.cluster.check(&r.cluster)?;
    let Ok(permit) = service.node.watches.clone().try_acquire_owned() else {
        service.node.counters.overloaded.inc();
        return Err(refuse_for_now(ErrorCode::Overloaded, &format!("{WATCHES} watches are served"), 1_000));
    };
    let (tx, rx) = mpsc::channel(IN_FLIGHT);
    let node = service.node.clone();
    let (from, topics_only) = (Revision(r.from_revision), r.topics_only);
    let task = async move {
        let _over = run(&node, &tx, from, topics_only).await;
        drop(permit);
    };
    service.node.sup.spawn_until_stop("watch", task);
    Ok(Box::pin(ReceiverStream::new(rx)))
}

async fn send(tx: &Sender, event: Event, more: bool) -> Result<(), Over> {
    tx.send(Ok(WatchEvent { event: Some(event), more })).await.map_err(|_| Over)
}

async fn run(node: &Arc<Node>, tx: &Sender, from: Revision, topics_only: bool) -> Result<(), Over> {
    let mut at = from;
    let mut applied = node.machine.subscribe();
    // Versions never regress: whoever saw a later revision is not served an earlier one. A member without a cluster, perhaps because its
    // disk is new, knows nothing: an empty view would say that nothing exists.
    let served = async {
        loop {
            let now = *applied.borrow_and_update();
            if now >= at && node.machine.with(State::cluster).is_some() {
                return Ok(());
            }
            applied.changed().await?;
        }
    };
    let served: Result<Result<(), watch::error::RecvError>, _> = timeout(CATCH_UP, served).await;
    if !matches!(served, Ok(Ok(()))) {
        let why = match node.cluster.get() {
            Some(_) => format!("this member is behind revision {at}"),
            None => "this member has heard of no cluster yet".to_owned(),
        };
        let _gone = tx.send(Err(refuse_for_now(ErrorCode::QuorumUnavailable, &why, 100))).await;
        return Err(Over);
    }
    if at == Revision(0) {
        at = view(node, tx, topics_only).await?;
    }
    let mut moved = (Revision(0), Instant::now());
    loop {
        applied.borrow_and_update();
        let (resume, upto) = node.machine.events_after(at, BATCH);
        if upto != moved.0 {
            moved = (upto, Instant::now());
        }
        match resume {
            Resume::Reload => at = view(node, tx, topics_only).await?,
            Resume::Events(events) if events.is_empty() => {
                if upto > at {
                    // Nothing of these entries concerns a watcher; it may resume after them.
                    at = upto;
                }
                match timeout(KEEP_ALIVE, applied.changed()).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return Err(Over),
                    // The leader's ticks move every member that hears of it.
                    Err(_)
                        if moved.1.elapsed() > Duration::from_millis(node.config.tick_ms) * SILENT_TICKS =>
                    {
                        let why = "this member has heard nothing of the quorum for a while";
                        let _gone =
                            tx.send(Err(refuse_for_now(ErrorCode::QuorumUnavailable, why, 100))).await;
                        return Err(Over);
                    }
                    Err(_) => send(tx, Event::AtRevision(at.0), false).await?,
                }
            }
            Resume::Events(events) => {
                for e in events {
                    at = e.revision;
                    let bytes = if topics_only { e.topics.clone() } else { Some(e.bytes.clone()) };
                    if let Some(bytes) = bytes {
                        send(tx, Event::Changes(bytes), false).await?;
                    }
                }
            }
        }
    }
}

/// Sends a view in pieces; returns its revision.
async fn view(node: &Arc<Node>, tx: &Sender, topics_only: bool) -> Result<Revision, Over> {
    let state = node.machine.state();
    let revision = state.revision();
    let tx_pieces = tx.clone();
    let sent = work::blocking(move || {
        let send = |event: Event, more: bool| {
            work::send(&tx_pieces, Ok(WatchEvent { event: Some(event), more })).map_err(|_| Over)
        };
        match controls(&state, |bytes| send(Event::Controls(bytes), true))? {
            Ok(()) => pieces(&state, topics_only, |bytes, more| send(Event::View(bytes), more)),
            over => Ok(over),
        }
    });
    match sent.await {
        Ok(Ok(Ok(()))) => Ok(revision),
        Ok(Ok(Err(Over))) => Err(Over),
        Ok(Err(why)) => {
            let _gone = tx.send(Err(refuse(ErrorCode::Internal, &why))).await;
            Err(Over)
        }
        Err(_) => Err(Over),
    }
}

/// Claims and tombstones in pieces of about 1 MiB; they go before the view that they belong to.
fn controls(
    state: &State,
    mut out: impl FnMut(Bytes) -> Result<(), Over>,
) -> Result<Result<(), Over>, String> {
    let mut piece = Vec::new();
    let mut bytes = 0;
    let encode =
        |piece: &Vec<TopicControl>| codec::encode_controls(piece).map(Bytes::from).map_err(|e| e.to_string());
    for c in state.topic_controls() {
        let claims = c.claim.iter().chain(c.tombstone.iter().filter_map(|t| t.former.as_ref()));
        bytes += 32 + claims.map(|c| c.uid.len() + c.owner.len()).sum::<usize>();
        piece.push(c.clone());
        if bytes >= SNAPSHOT_PIECE {
            if out(encode(&piece)?).is_err() {
                return Ok(Err(Over));
            }
            piece.clear();
            bytes = 0;
        }
    }
    if piece.is_empty() { Ok(Ok(())) } else { Ok(out(encode(&piece)?)) }
}

/// Cuts the view into pieces of about 1 MiB and hands them out; the last one has `more` false.
fn pieces(
    state: &State,
    topics_only: bool,
    mut out: impl FnMut(Bytes, bool) -> Result<(), Over>,
) -> Result<Result<(), Over>, String> {
    let empty = || MetaView {
        revision: state.revision(),
        cluster: state.cluster(),
        wall_ms: state.wall_ms(),
        ..MetaView::default()
    };
    let encode = |v: &MetaView| codec::encode_view(v).map(Bytes::from).map_err(|e| e.to_string());
    let mut piece = empty();
    let mut records = 0;
    let mut bytes = 0;
    let mut full = |piece: &mut MetaView, size: usize| -> Result<Result<(), Over>, String> {
        records += 1;
        bytes += size;
        if bytes < SNAPSHOT_PIECE && records < STEP * STEP {
            return Ok(Ok(()));
        }
        (records, bytes) = (0, 0);
        let done = std::mem::replace(piece, empty());
        Ok(out(encode(&done)?, true))
    };
    macro_rules! add {
        ($field:ident, $records:expr, $size:expr) => {
            for r in $records {
                let size = $size(r);
                piece.$field.push(r.clone());
                if full(&mut piece, size)?.is_err() {
                    return Ok(Err(Over));
                }
            }
        };
    }
    // Sizes by estimate: a piece may be somewhat larger than 1 MiB, never by more than one record.
    add!(topics, state.topics(), |t: &tidemill_types::TopicRecord| 64 + t.name.as_str().len());
    if !topics_only {
        add!(groups, state.groups(), |g: &tidemill_types::GroupRecord| 64
            + g.name.as_str().len()
            + g.config.static_assignment.iter().map(|s| 64 + s.partitions.len() * 2).sum::<usize>());
        add!(members, state.members(), |m: &tidemill_types::Member| 256 + m.lanes.len() * 32);
        add!(partitions, state.partitions(), |p: &tidemill_types::PartitionRecord| 96 + p.chain.len() * 16);
    }
    let last = encode(&piece)?;
    Ok(out(last, false))
}
