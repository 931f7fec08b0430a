//! The files that are made from the types.

use tidemill_crd::generate::definitions;

const HEAD: &str = "# Generated from crates/crd: cargo run -p tidemill-crd --example generate\n";

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
    Ok(out)
}
