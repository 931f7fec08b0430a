//! What the CRD refuses, judged once more (rule 13), and what this version cannot do: refused, never ignored.

use tidemill_crd::ClusterSpec;

type Refusal = (&'static str, String);

pub(super) fn check(spec: &ClusterSpec) -> Result<(), Refusal> {
    let invalid = |why: String| Err(("InvalidSpec", why));
    let unsupported = |why: &str| Err(("Unsupported", why.to_owned()));
    if ![1, 3, 5].contains(&spec.meta.replicas) {
        return invalid(format!("spec.meta.replicas: 1, 3 or 5, not {}", spec.meta.replicas));
    }
    if spec.bookie_pools.is_empty() {
        return invalid("spec.bookiePools: at least one".to_owned());
    }
    if spec.image.is_some() && spec.version.is_some() {
        return invalid("give either spec.version or spec.image".to_owned());
    }
    let sizes =
        spec.bookie_pools.iter().map(|p| (format!("spec.bookiePools[{}].storage.size", p.name), &p.storage));
    for (field, storage) in sizes.chain([("spec.meta.storage.size".to_owned(), &spec.meta.storage)]) {
        match storage.size.bytes() {
            Ok(bytes) if bytes >= MIN_VOLUME => {}
            Ok(_) => return invalid(format!("{field}: {} is too small, at least 64Mi", storage.size)),
            Err(e) => return invalid(format!("{field}: {e}")),
        }
    }
    for (i, w) in spec.updates.windows.iter().enumerate() {
        match w.duration.millis() {
            Ok(1..=86_400_000) => {}
            Ok(_) => return invalid(format!("spec.updates.windows[{i}].duration: above 0 and at most 24h")),
            Err(e) => return invalid(format!("spec.updates.windows[{i}].duration: {e}")),
        }
    }
    if spec.offload.is_some() {
        return unsupported("spec.offload: this version does not offload to object storage yet");
    }
    if spec.listeners.iter().any(|l| l.tls.is_some()) {
        return unsupported("spec.listeners[].tls: this version does not serve TLS yet");
    }
    Ok(())
}

/// A bookie's volume holds a few segments at least.
const MIN_VOLUME: u64 = 64 << 20;
