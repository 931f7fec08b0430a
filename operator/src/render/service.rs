//! Services.

use serde_json::{Value, json};
use tidemill_crd::ClusterSpec;

use crate::names::{Names, PORT_GRPC, PORT_HTTP, Role};

/// Names of pods in DNS, also of those that are not ready (rule 20).
pub(super) fn headless(names: &Names, role: Role) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": names.headless(role), "labels": names.labels(Some(role), None)},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": names.selector(role, None),
            "ports": [
                {"name": "grpc", "port": PORT_GRPC, "targetPort": "grpc", "protocol": "TCP"},
                {"name": "http", "port": PORT_HTTP, "targetPort": "http", "protocol": "TCP"},
            ],
        },
    })
}

/// Where clients connect first.
pub(super) fn client(spec: &ClusterSpec, names: &Names) -> Value {
    let port =
        |name: &str, port: i32| json!({"name": name, "port": port, "targetPort": "grpc", "protocol": "TCP"});
    let ports: Vec<Value> = if spec.listeners.is_empty() {
        vec![port("grpc", PORT_GRPC)]
    } else {
        spec.listeners.iter().map(|l| port(&l.name, l.port)).collect()
    };
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": names.client(), "labels": names.labels(None, None)},
        "spec": {"type": "ClusterIP", "selector": names.selector(Role::Broker, None), "ports": ports},
    })
}
