//! Membership over one stream.

use std::sync::Arc;

use futures::stream::BoxStream;
use tidemill_group::{Assignment, MemberId};
use tidemill_proto::v1::{self, subscribe_request::Request};
use tidemill_types::{ErrorCode, GroupName};
use tokio::sync::mpsc;
use tokio_stream::{StreamExt, wrappers::ReceiverStream};
use tonic::{Status, Streaming};

use super::{convert, members};
use crate::{
    core::Core,
    deadline::Deadline,
    fault::Fault,
    groups::{Groups, Handle, Watch, refused},
};

/// Answers under way to one member.
const IN_FLIGHT: usize = 4;

type Requests = Streaming<v1::SubscribeRequest>;
type Answers = mpsc::Sender<Result<v1::SubscribeResponse, Status>>;

pub(super) fn run(
    core: Arc<Core>,
    requests: Requests,
    peer: String,
) -> BoxStream<'static, Result<v1::SubscribeResponse, Status>> {
    let (tx, rx) = mpsc::channel(IN_FLIGHT);
    tokio::spawn(async move {
        if let Err(fault) = serve(&core, requests, &peer, &tx).await {
            drop(tx.send(Err(fault.into())).await);
        }
    });
    Box::pin(ReceiverStream::new(rx))
}

/// A member that is in.
struct Session {
    handle: Handle,
    watch: Watch,
    group: GroupName,
    member: MemberId,
    /// Epoch and revision that were sent last.
    sent: (u64, u64),
}

/// Until the member leaves, the stream breaks, or the coordinator moves. A broken stream is no farewell: the member's
/// session goes on and it comes back with a heartbeat, by a stream or without.
async fn serve(core: &Arc<Core>, mut requests: Requests, peer: &str, tx: &Answers) -> Result<(), Fault> {
    let mut session: Option<Session> = None;
    loop {
        let request = tokio::select! {
            () = core.stopping.cancelled() => return Err(Fault::not_ready("it is stopping")),
            request = requests.next() => request,
            news = changed(session.as_ref()) => {
                let Some(s) = session.as_mut() else { continue };
                if !news {
                    return Err(Fault::new(ErrorCode::NotReady, "the coordinator moved"));
                }
                let (group, member) = (s.group.clone(), s.member.clone());
                let now = s.handle.ask(Deadline::of_headers(&http::HeaderMap::new()), move |c| c.assignment(&group, &member)).await?;
                match now {
                    None => return Err(refused(&s.group, &tidemill_group::GroupError::UnknownMember)),
                    Some(a) if (a.epoch, a.revision) != s.sent => send(core, s, a, tx).await,
                    Some(_) => true,
                };
                continue;
            }
        };
        // A stream that ends or breaks.
        let Some(Ok(request)) = request else { return Ok(()) };
        match (request.request, session.as_mut()) {
            (Some(Request::Join(r)), _) => session = Some(join(core, r, peer, tx).await?),
            // A member that comes back on another stream: with a heartbeat, as what it is.
            (Some(Request::Heartbeat(r)), None) => {
                let beat = members::heartbeat_of(core, r)?;
                session = Some(resume(core, beat, tx).await?);
            }
            (Some(Request::Heartbeat(r)), Some(s)) => {
                let beat = members::heartbeat_of(core, r)?;
                check(s, &beat.group, &beat.member)?;
                let a = s.handle.run(forever(), |c, now| c.heartbeat(beat, now)).await?;
                let a = a.map_err(|e| refused(&s.group, &e))?;
                if !send(core, s, a, tx).await {
                    return Ok(());
                }
            }
            (Some(Request::Leave(r)), Some(s)) => {
                let leave = members::leave_of(r)?;
                check(s, &leave.group, &leave.member)?;
                let left = s.handle.run(forever(), move |c, now| c.leave(&leave, now)).await?;
                return left.map_err(|e| refused(&s.group, &e));
            }
            (Some(Request::Leave(_)), None) | (None, _) => {
                return Err(Fault::invalid(
                    "request",
                    "nothing",
                    "first join or heartbeat, then heartbeat or leave",
                ));
            }
        }
    }
}

fn forever() -> Deadline {
    Deadline::of_headers(&http::HeaderMap::new())
}

fn check(s: &Session, group: &GroupName, member: &MemberId) -> Result<(), Fault> {
    if *group == s.group && *member == s.member {
        return Ok(());
    }
    let allowed = format!("the group {} and the member that joined on this stream", s.group);
    Err(Fault::invalid("member", "another one", &allowed))
}

async fn changed(session: Option<&Session>) -> bool {
    match session {
        Some(s) => s.watch.changed().await,
        None => std::future::pending().await,
    }
}

async fn join(core: &Arc<Core>, r: v1::JoinGroupRequest, peer: &str, tx: &Answers) -> Result<Session, Fault> {
    let join = members::join_of(r, peer)?;
    let (group, member) = (join.group.clone(), join.member.clone());
    let handle = Groups::coordinator(core, &group, forever()).await?;
    // Before the join: nothing that changes right after it is missed.
    let watch = handle.watch(&group, &member);
    let a = handle.run(forever(), |c, now| c.join(join, now)).await?.map_err(|e| refused(&group, &e))?;
    let mut s = Session { handle, watch, group, member, sent: (0, 0) };
    send(core, &mut s, a, tx).await;
    Ok(s)
}

async fn resume(core: &Arc<Core>, beat: tidemill_group::Heartbeat, tx: &Answers) -> Result<Session, Fault> {
    let (group, member) = (beat.group.clone(), beat.member.clone());
    let handle = Groups::coordinator(core, &group, forever()).await?;
    let watch = handle.watch(&group, &member);
    let a = handle.run(forever(), |c, now| c.heartbeat(beat, now)).await?.map_err(|e| refused(&group, &e))?;
    let mut s = Session { handle, watch, group, member, sent: (0, 0) };
    send(core, &mut s, a, tx).await;
    Ok(s)
}

/// False when nobody listens any more.
async fn send(core: &Core, s: &mut Session, a: Assignment, tx: &Answers) -> bool {
    s.sent = (a.epoch, a.revision);
    let assignment = Some(convert::assignment(core, a));
    tx.send(Ok(v1::SubscribeResponse { assignment })).await.is_ok()
}
