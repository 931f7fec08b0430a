//! Events.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType};

use crate::context::Context;

/// Longest note; the API server takes 1 024 bytes.
const MAX_NOTE: usize = 900;

/// Writes an Event. One that cannot be written is no reason to stop.
pub(crate) async fn publish(
    context: &Context,
    about: &ObjectReference,
    type_: EventType,
    reason: &str,
    action: &str,
    note: &str,
) {
    let mut note = note.to_owned();
    while note.len() > MAX_NOTE {
        note.pop();
    }
    let event = Event {
        type_,
        reason: reason.to_owned(),
        note: Some(note),
        action: action.to_owned(),
        secondary: None,
    };
    if let Err(e) = context.recorder.publish(&event, about).await {
        tracing::debug!(error = %e, "an Event was not written");
    }
}
