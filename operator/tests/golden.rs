//! The children of the example Cluster, byte by byte. After a wished change: `TIDEMILL_GOLDEN=write cargo test -p
//! tidemill-operator --test golden`, then look at the difference.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;

use serde_json::Value;
use tidemill_crd::Cluster;
use tidemill_operator::{
    names::Names,
    render::{self, Wishes},
};

fn children() -> Vec<Value> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = std::fs::read_to_string(top.join("examples/quickstart/cluster.yaml")).unwrap();
    let mut cluster: Cluster = serde_saphyr::from_str(&text).unwrap();
    cluster.metadata.uid = Some("00000000-0000-0000-0000-000000000001".to_owned());
    let wishes = Wishes {
        image: "tidemill:0.1.0".to_owned(),
        template_revision: render::TEMPLATE_REVISION,
        metas: cluster.spec.meta.replicas,
        pools: cluster.spec.bookie_pools.iter().map(|p| (p.clone(), p.replicas)).collect(),
        bookies_evictable: true,
    };
    render::children(&cluster, &Names::new("default", "demo", "cluster.local"), &wishes).unwrap()
}

#[test]
fn children_of_the_example() {
    let text: String =
        children().iter().map(|c| format!("---\n{}", serde_saphyr::to_string(c).unwrap())).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/quickstart.yaml");
    if std::env::var("TIDEMILL_GOLDEN").as_deref() == Ok("write") {
        std::fs::write(&path, &text).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap() == text, "{} differs", path.display());
}

#[test]
fn equal_input_gives_equal_bytes() {
    let bytes = |c: Vec<Value>| c.iter().map(Value::to_string).collect::<Vec<_>>();
    assert_eq!(bytes(children()), bytes(children()));
}

fn sets() -> Vec<Value> {
    children().into_iter().filter(|c| c["kind"] == "StatefulSet").collect()
}

#[test]
fn rule_19_pods_fit_the_restricted_profile() {
    for set in sets() {
        let name = set["metadata"]["name"].clone();
        let pod = &set["spec"]["template"]["spec"];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{name}");
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        assert_eq!(pod["automountServiceAccountToken"], false);
        let container = &pod["containers"][0];
        let security = &container["securityContext"];
        assert_eq!(security["allowPrivilegeEscalation"], false);
        assert_eq!(security["readOnlyRootFilesystem"], true);
        assert_eq!(security["capabilities"]["drop"][0], "ALL");
        assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/livez");
        assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/readyz");
        assert!(container["lifecycle"]["preStop"].is_object());
        assert!(container["resources"]["requests"]["memory"].is_string());
    }
}

#[test]
fn rule_20_peers_find_each_other_before_anyone_is_ready() {
    for set in sets() {
        assert_eq!(set["spec"]["podManagementPolicy"], "Parallel");
        assert_eq!(set["spec"]["updateStrategy"]["type"], "OnDelete");
        let service = set["spec"]["serviceName"].clone();
        let headless = children()
            .into_iter()
            .find(|c| c["kind"] == "Service" && c["metadata"]["name"] == service)
            .unwrap();
        assert_eq!(headless["spec"]["publishNotReadyAddresses"], true);
        assert_eq!(headless["spec"]["clusterIP"], "None");
    }
}

#[test]
fn rule_10_no_volume_goes_with_a_number() {
    for set in sets().iter().filter(|s| s["spec"].get("volumeClaimTemplates").is_some()) {
        let policy = &set["spec"]["persistentVolumeClaimRetentionPolicy"];
        assert_eq!(
            (policy["whenScaled"].clone(), policy["whenDeleted"].clone()),
            ("Retain".into(), "Retain".into())
        );
    }
}
