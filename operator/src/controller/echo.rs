//! Own writes of a status: their echo is no news. A generation alone would not do as a sign, a finalizer does not change it.

use std::{collections::HashMap, time::Duration};

use kube::ResourceExt;
use parking_lot::Mutex;

/// The last own write of each object, by namespace and name.
#[derive(Debug, Default)]
pub(super) struct Echoes(Mutex<HashMap<(String, String), (String, Duration)>>);

fn key(object: &impl ResourceExt) -> (String, String) {
    (object.namespace().unwrap_or_default(), object.name_any())
}

impl Echoes {
    /// Notes an own write and when to look again.
    pub(super) fn wrote(&self, object: &impl ResourceExt, version: Option<String>, again: Duration) {
        if let Some(version) = version {
            self.0.lock().insert(key(object), (version, again));
        }
    }

    /// Whether this is the echo of an own write: then when to look again.
    pub(super) fn heard(&self, object: &impl ResourceExt) -> Option<Duration> {
        let (version, again) = self.0.lock().remove(&key(object))?;
        (Some(version) == object.resource_version()).then_some(again)
    }

    /// Something else happened to it: the next pass looks.
    pub(super) fn news(&self, namespace: &str, name: &str) {
        self.0.lock().remove(&(namespace.to_owned(), name.to_owned()));
    }
}
