//! Renewals: one each 0.75 s, sooner again after one that failed.

use std::{sync::Arc, time::Duration};

use tidemill_proto::meta::{RenewRequest, renew_response::Outcome};
use tokio::time::{Instant, sleep_until};

use super::{Lost, QuorumTime, Session};
use crate::{MetaError, client::Inner, codec, retry::Backoff};

/// What one renewal brought.
enum Renewed {
    Yes,
    Expired,
    No(String),
}

/// The first renewal, whose answer makes the session valid.
pub(super) async fn first(client: &Inner, session: &Session) -> Result<(), MetaError> {
    let mut backoff = Backoff::new(client.config.give_up_after);
    loop {
        match renew(client, session).await {
            Renewed::Yes => return Ok(()),
            Renewed::Expired => return Err(MetaError::SessionExpired),
            Renewed::No(why) if !backoff.pause().await => return Err(MetaError::Unavailable { why }),
            Renewed::No(_) => {}
        }
    }
}

/// Renews until the session is lost.
pub(super) async fn keep(client: Arc<Inner>, session: Session) {
    loop {
        let next = Instant::now() + client.config.session_renewal;
        tokio::select! {
            _ = session.lost() => return,
            () = sleep_until(next) => {}
        }
        let mut backoff = Backoff::new(Duration::from_secs(3600));
        loop {
            let renewed = tokio::select! {
                _ = session.lost() => return,
                r = renew(&client, &session) => r,
            };
            match renewed {
                Renewed::Yes => break,
                Renewed::Expired => {
                    tracing::warn!(session = %session.id(), member = %session.member(), "the session expired");
                    session.end(Lost::Expired);
                    return;
                }
                Renewed::No(why) => {
                    tracing::debug!(session = %session.id(), why, "a renewal failed");
                    backoff.pause().await;
                }
            }
        }
    }
}

async fn renew(client: &Inner, session: &Session) -> Renewed {
    let Some(address) = client.quorum.leader_or_next() else {
        return Renewed::No("no member's address is known".to_owned());
    };
    let mut stub = match client.quorum.stub(&address).await {
        Ok(stub) => stub,
        Err(e) => {
            client.quorum.failed(&address);
            return Renewed::No(e.to_string());
        }
    };
    let report = (session.inner.report)();
    let positions =
        if report.positions.is_empty() { Ok(Vec::new()) } else { codec::encode_positions(&report.positions) };
    let positions = match positions {
        Ok(p) => p,
        Err(e) => return Renewed::No(e.to_string()),
    };
    // Taken before the sending: validity counts from here.
    let clock = &session.inner.clock;
    let (sent_boot, sent_real_ms) = (clock.boottime(), clock.realtime_ms());
    let request = RenewRequest {
        cluster: session.cluster().0.as_bytes().to_vec(),
        session: session.id().0,
        member: session.member().0.as_bytes().to_vec(),
        wall_ms: sent_real_ms,
        positions,
        free_bytes: report.free_bytes,
        degraded_ledgers: report.degraded_ledgers,
        read_only: report.read_only,
    };
    // One try must leave time for another one within the TTL.
    let timeout = client.config.attempt_timeout.min(client.config.session_renewal);
    let answer = match tokio::time::timeout(timeout, stub.renew(request)).await {
        Ok(Ok(answer)) => answer.into_inner(),
        Ok(Err(status)) => {
            client.quorum.failed(&address);
            return Renewed::No(format!("{address}: {}", status.message()));
        }
        Err(_) => {
            client.quorum.failed(&address);
            return Renewed::No(format!("{address}: no answer in time"));
        }
    };
    if answer.quorum_wall_ms > 0 {
        let heard_at = clock.boottime();
        let mut known = session.inner.quorum_time.lock();
        // Never back: an answer that was long on its way is behind what is known already.
        if known.is_none_or(|k| k.at(heard_at) < answer.quorum_wall_ms) {
            *known = Some(QuorumTime { wall_ms: answer.quorum_wall_ms, heard_at });
        }
        if answer.quorum_tick_ms > 0 {
            let (tick, jumped) = (answer.quorum_tick_ms, answer.quorum_jumped_ms);
            session.inner.confirmed.lock().heard(tick, jumped, heard_at);
        }
    }
    match answer.outcome {
        Some(Outcome::TtlMs(ttl)) => {
            client.quorum.leads(&address);
            let ttl = Duration::from_millis(u64::from(ttl));
            session.inner.validity.lock().renewed(sent_boot, sent_real_ms, ttl);
            Renewed::Yes
        }
        Some(Outcome::Expired(true)) => Renewed::Expired,
        Some(Outcome::Leader(hint)) => {
            client.quorum.hint(&address, &hint);
            Renewed::No(format!("{address} does not lead"))
        }
        _ => Renewed::No(format!("{address}: an answer without content")),
    }
}
