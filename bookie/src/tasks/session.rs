//! The session with the quorum: opened again when it was lost. A bookie without one goes on serving: safety rests on
//! fences and incarnations, not on sessions.

use std::sync::Arc;

use tidemill_meta_client::{Lost, MetaClient};

use super::patrol;
use crate::{
    boot::{Booted, Ended, Quorum, open_session},
    shared::Core,
    space,
};

/// Keeps a session until the bookie stops.
pub(crate) async fn keep(core: Arc<Core>, client: MetaClient, booted: Booted) {
    let Booted { serving, mut session, mut spec } = booted;
    let key = core.health_key("session");
    loop {
        match session.lost().await {
            Lost::Closed => return,
            Lost::Expired => {}
        }
        core.counters.sessions_lost.inc();
        core.sup
            .health()
            .waits_for(&key, "the session with the metadata quorum expired; opening another one");
        let quorum = Quorum::new(&core, &client);
        let info = serving.engine.info();
        (spec.free_bytes, spec.read_only) = (space::free_bytes(&info), space::is_read_only(&info));
        // The same incarnation: the process is the same, and so are its disks.
        match open_session(&quorum, &serving.engine, &spec).await {
            Ok(again) => {
                serving.set_state(again.state());
                core.sup.health().has(&key);
                session = again;
            }
            Err(Ended::Stopped) => return,
            Err(Ended::Fatal(why)) => {
                core.sup.fatal(&format!("bookie {} cannot go on: {why}", core.config.name));
                return;
            }
        }
    }
}

/// Tells writers to wait for a restart instead of replacing the bookie at once (R28).
pub(crate) async fn announce_restart(core: &Core, client: &MetaClient) {
    let (Some(serving), Some(session)) = (core.any_serving(), client.session()) else { return };
    // The state as it is now: a wish to drain that this bookie has not heard of yet must not be undone.
    let Some(member) = patrol::member(client, &serving).await else { return };
    match session.set_member_state(serving.id, member.state, true).await {
        Ok(Ok(())) => {}
        Ok(Err(rejection)) => tracing::debug!(%rejection, "the restart was not announced"),
        Err(error) => tracing::debug!(%error, "the restart was not announced"),
    }
}
