//! Server-side apply of a child.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{ApplyError, MANAGER_CHILDREN, Site, would_change};
use crate::{names::ANNOTATION_HASH, observe::Kind};

impl Site<'_> {
    /// Applies it, unless it is as wished already (rule 3). The hash of what was applied tells when a field is to be taken
    /// away, the comparison when somebody else changed one.
    pub(super) async fn child(&self, mut child: Value) -> Result<Option<String>, ApplyError> {
        let text = |path: &str| child.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        let hash = hash(&child);
        if let Some(metadata) = child.get_mut("metadata").and_then(Value::as_object_mut) {
            let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
            if let Some(annotations) = annotations.as_object_mut() {
                annotations.insert(ANNOTATION_HASH.to_owned(), json!(hash));
            }
        }
        let live = self.observed.children.get(&(kind.clone(), name.clone()));
        if live.is_some_and(|live| !would_change(&child, live)) {
            return Ok(None);
        }
        let what = format!("{kind} {name}");
        let Some(known) = Kind::of(&kind) else {
            return Err(ApplyError::Invalid { what, why: "the operator does not know this kind".to_owned() });
        };
        self.dynamic(known)
            .patch(&name, &PatchParams::apply(MANAGER_CHILDREN).force(), &Patch::Apply(&child))
            .await
            .map_err(|e| ApplyError::kube(what.clone(), &e))?;
        Ok(Some(what))
    }
}

fn hash(child: &Value) -> String {
    let digest = Sha256::digest(child.to_string().as_bytes());
    digest.iter().take(8).map(|b| format!("{b:02x}")).collect()
}
