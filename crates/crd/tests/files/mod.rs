//! The files that are made from the types, and the health scripts for Argo CD, one for each kind from one piece.

use tidemill_crd::generate::definitions;

const HEAD: &str = "# Generated from crates/crd: cargo run -p tidemill-crd --example generate\n";

/// The script, the same for all kinds: conditions are judged, not kinds.
const HEALTH: &str = include_str!("../../health.lua");
const HEALTH_HEAD: &str =
    "-- Generated from crates/crd/health.lua: cargo run -p tidemill-crd --example generate\n";
const ARGO_HEAD: &str = "\
# Generated from crates/crd/health.lua: cargo run -p tidemill-crd --example generate
# Merge into the ConfigMap argocd-cm of Argo CD, so that it judges the kinds of Tidemill by their conditions.
# The scripts are those of health/, the same for all kinds.
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-cm
  namespace: argocd
  labels:
    app.kubernetes.io/name: argocd-cm
    app.kubernetes.io/part-of: argocd
data:
";

fn health() -> Vec<(String, String)> {
    let script = format!("{HEALTH_HEAD}{HEALTH}");
    let mut out = Vec::new();
    let mut map = ARGO_HEAD.to_owned();
    for kind in ["Cluster", "Topic", "ConsumerGroup"] {
        out.push((format!("examples/argocd/health/{}.lua", kind.to_lowercase()), script.clone()));
        map.push_str(&format!("  resource.customizations.health.tidemill.dev_{kind}: |\n"));
        for line in script.lines() {
            map.push_str(if line.is_empty() { "" } else { "    " });
            map.push_str(line);
            map.push('\n');
        }
    }
    out.push(("examples/argocd/argocd-cm.yaml".to_owned(), map));
    out
}

/// Path from the top folder, and text.
pub(crate) fn all() -> Result<Vec<(String, String)>, Box<dyn std::error::Error>> {
    let mut out = Vec::new();
    for d in definitions()? {
        out.push((format!("crds/{}", d.file), format!("{HEAD}{}", serde_saphyr::to_string(&d.object)?)));
        // Helm deletes what it installed unless told otherwise: deleting a definition deletes every object of its kind.
        let mut kept = d.object;
        kept["metadata"]["annotations"] = serde_json::json!({"helm.sh/resource-policy": "keep"});
        out.push((
            format!("charts/tidemill-crds/templates/{}", d.file),
            format!("{HEAD}{}", serde_saphyr::to_string(&kept)?),
        ));
    }
    out.extend(health());
    Ok(out)
}
