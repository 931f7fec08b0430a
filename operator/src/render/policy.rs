//! Who may talk to whom.

use serde_json::{Value, json};

use crate::names::{LABEL_CLUSTER, Names, PORT_GRPC, PORT_HTTP, Role};

/// Quorum and bookies: the cluster's own pods and the operator. Brokers: everybody. The HTTP port is open to scrapers.
pub(super) fn network(names: &Names, role: Role) -> Value {
    let mut ingress = vec![json!({"ports": [{"port": PORT_HTTP, "protocol": "TCP"}]})];
    let grpc = json!([{"port": PORT_GRPC, "protocol": "TCP"}]);
    ingress.push(match role {
        Role::Broker => json!({"ports": grpc}),
        Role::Meta | Role::Bookie => json!({
            "ports": grpc,
            "from": [
                {"podSelector": {"matchLabels": {LABEL_CLUSTER: names.cluster}}},
                {
                    "namespaceSelector": {},
                    "podSelector": {"matchLabels": {"app.kubernetes.io/name": "tidemill-operator"}},
                },
            ],
        }),
    });
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": names.headless(role), "labels": names.labels(Some(role), None)},
        "spec": {
            "podSelector": {"matchLabels": names.selector(role, None)},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        },
    })
}
