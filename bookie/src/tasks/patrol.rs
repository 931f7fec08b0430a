//! Looks every few seconds at what the quorum says about this bookie and tells it what the disks say: read-only or not, out
//! of limbo or not.

use std::{sync::Arc, time::Duration};

use tidemill_meta_client::MetaClient;
use tidemill_types::{
    BookieState, Member,
    meta::{Answer, Query},
};

use super::limbo;
use crate::{
    shared::{Core, Serving},
    space,
};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(5);

/// Runs until it is dropped.
pub(crate) async fn run(core: Arc<Core>, client: MetaClient, serving: Arc<Serving>) {
    let every = EVERY.min(core.config.gc_pass());
    loop {
        tell_health(&core, &serving);
        tokio::time::sleep(every).await;
        let Some(member) = member(&client, &serving).await else { continue };
        follow(&core, &serving, member.state);
        reconcile_space(&client, &serving, member.state).await;
        if serving.engine.limbo() {
            match limbo::leave(&client, &serving, member.state).await {
                Ok(true) => {}
                Ok(false) => tracing::debug!("limbo goes on"),
                Err(why) => tracing::debug!(%why, "limbo could not be looked at"),
            }
        }
    }
}

/// This bookie in the quorum's table; nothing without an answer.
pub(super) async fn member(client: &MetaClient, serving: &Serving) -> Option<Member> {
    match client.read(&Query::Members).await {
        Ok((Answer::Members(all), _)) => all.into_iter().find(|m| m.id == serving.id),
        Ok(_) => None,
        Err(error) => {
            tracing::debug!(%error, "the members could not be read");
            None
        }
    }
}

/// A uuid that was declared lost has to boot again, with the duties of that (1.6); a retired one ends for good.
fn follow(core: &Core, serving: &Serving, state: BookieState) {
    serving.set_state(state);
    let why = match state {
        BookieState::Lost => "it was declared lost while it was away; start it again",
        BookieState::Retired => "its uuid is retired; empty its disks to start a new bookie",
        _ => return,
    };
    core.sup.fatal(&format!("bookie {} cannot go on: {why}", core.config.name));
}

/// `rw` and `ro` follow the disks and the wish of a person, both of which the bookie knows; the other states are the quorum's.
async fn reconcile_space(client: &MetaClient, serving: &Serving, state: BookieState) {
    let read_only = space::is_read_only(&serving.engine.info());
    let wished = match (state, read_only) {
        (BookieState::Rw, true) => BookieState::Ro,
        (BookieState::Ro, false) if !serving.engine.limbo() => BookieState::Rw,
        _ => return,
    };
    let Some(session) = client.session() else { return };
    match session.set_member_state(serving.id, wished, false).await {
        Ok(Ok(())) => serving.set_state(wished),
        Ok(Err(rejection)) => {
            tracing::warn!(%rejection, ?wished, "the quorum does not take the bookie's state");
        }
        Err(error) => tracing::debug!(%error, ?wished, "the quorum was not told of the bookie's state"),
    }
}

fn tell_health(core: &Core, serving: &Serving) {
    let health = core.sup.health();
    let say = |what: &str, wait: bool, why: &str| {
        let key = core.health_key(what);
        if wait { health.waits_for(&key, why) } else { health.has(&key) }
    };
    say(
        "limbo",
        serving.engine.limbo(),
        "it may have lost data; it serves what it has and denies nothing until it is repaired",
    );
    say(
        "space",
        space::is_read_only(&serving.engine.info()),
        "read-only: a disk is above its high-water mark, or it was set by hand",
    );
}
