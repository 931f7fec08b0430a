//! Which image the pods run, and in which form they are written.

use serde_json::Value;

use super::Input;
use crate::{
    names::{ANNOTATION_REVISION, Role},
    render::TEMPLATE_REVISION,
};

/// Image and revision of the pod templates. What the spec leaves open stays what it was when the Cluster was made, so that
/// a newer operator restarts nothing (rule 16); an image that the spec changes brings the newest form along.
pub(super) fn choose(input: &Input<'_>) -> (String, i32) {
    let spec = &input.cluster.spec;
    let key = ("StatefulSet".to_owned(), input.names.set(Role::Meta, None));
    let live = input.observed.children.get(&key);
    let text = |path: &str| live.and_then(|l| l.pointer(path)).and_then(Value::as_str);
    let running = text("/spec/template/spec/containers/0/image");
    let image = match (&spec.image, &spec.version, running) {
        (Some(image), _, _) => image.clone(),
        (None, Some(version), _) => format!("{}:{version}", input.repository),
        (None, None, Some(running)) => running.to_owned(),
        (None, None, None) => input.default_image.to_owned(),
    };
    let annotation = format!("/metadata/annotations/{}", ANNOTATION_REVISION.replace('/', "~1"));
    let pinned =
        text(&annotation).and_then(|r| r.parse::<i32>().ok()).filter(|r| (1..=TEMPLATE_REVISION).contains(r));
    let revision = match pinned {
        Some(pinned) if running == Some(image.as_str()) => pinned,
        _ => TEMPLATE_REVISION,
    };
    (image, revision)
}
