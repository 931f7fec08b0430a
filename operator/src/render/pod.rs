//! Pod templates.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tidemill_crd::{ClusterSpec, PodTemplate, Resources};

use super::{CLAIM, RenderError, Wishes};
use crate::names::{Names, PORT_GRPC, PORT_HTTP, Role};

/// User and group of all processes.
const USER: i64 = 65_532;
/// Keys that the operator sets itself.
const RESERVED: [&str; 8] = ["listen", "advertise", "name", "zone", "meta", "data-dir", "data-dirs", "http"];

/// What differs between roles and pools.
pub(super) struct Part<'a> {
    pub(super) role: Role,
    pub(super) pool: Option<&'a str>,
    pub(super) zones: &'a [String],
    pub(super) resources: Option<&'a Resources>,
    pub(super) template: Option<&'a PodTemplate>,
}

pub(super) fn template(
    spec: &ClusterSpec,
    names: &Names,
    wishes: &Wishes,
    part: &Part<'_>,
) -> Result<Value, RenderError> {
    let empty = PodTemplate::default();
    let more = part.template.unwrap_or(&empty);
    // The operator's labels win: selectors stand on them.
    let mut labels = more.labels.clone();
    labels.extend(names.labels(Some(part.role), part.pool));
    let mut pod = json!({
        "serviceAccountName": names.headless(part.role),
        "automountServiceAccountToken": false,
        // A Service named tidemill would set TIDEMILL_PORT, which is no configuration key.
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": grace(part.role),
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": spread(spec, names, part),
        "containers": [container(spec, names, wishes, part)?],
    });
    if let Some(pod) = pod.as_object_mut() {
        additions(pod, spec, part, more);
    }
    Ok(json!({
        "metadata": {"labels": labels, "annotations": more.annotations},
        "spec": pod,
    }))
}

fn additions(pod: &mut Map<String, Value>, spec: &ClusterSpec, part: &Part<'_>, more: &PodTemplate) {
    let mut set = |key: &str, value: Value| pod.insert(key.to_owned(), value);
    if !spec.image_pull_secrets.is_empty() {
        set("imagePullSecrets", json!(spec.image_pull_secrets));
    }
    if !more.node_selector.is_empty() {
        set("nodeSelector", json!(more.node_selector));
    }
    if !more.tolerations.is_empty() {
        set("tolerations", json!(more.tolerations));
    }
    if let Some(class) = &more.priority_class_name {
        set("priorityClassName", json!(class));
    }
    if !part.zones.is_empty() {
        let term = json!({"key": spec.placement.topology_key, "operator": "In", "values": part.zones});
        set(
            "affinity",
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [term]}],
            }}}),
        );
    }
}

/// Time for an ordered stop, s: a broker hands its partitions over, a bookie answers and announces its restart (R28).
fn grace(role: Role) -> i64 {
    match role {
        Role::Meta => 30,
        Role::Bookie => 60,
        Role::Broker => 45,
    }
}

fn spread(spec: &ClusterSpec, names: &Names, part: &Part<'_>) -> Value {
    let one = |key: &str| {
        json!({
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": names.selector(part.role, part.pool)},
        })
    };
    json!([one(&spec.placement.topology_key), one("kubernetes.io/hostname")])
}

fn container(
    spec: &ClusterSpec,
    names: &Names,
    wishes: &Wishes,
    part: &Part<'_>,
) -> Result<Value, RenderError> {
    let mut container = json!({
        "name": part.role.name(),
        "image": wishes.image,
        "args": args(spec, names, wishes, part)?,
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
            {"name": "ZONE", "valueFrom": {"fieldRef": {
                "apiVersion": "v1",
                "fieldPath": format!("metadata.labels['{}']", spec.placement.topology_key),
            }}},
        ],
        "ports": [
            {"name": "grpc", "containerPort": PORT_GRPC, "protocol": "TCP"},
            {"name": "http", "containerPort": PORT_HTTP, "protocol": "TCP"},
        ],
        // Looks at the process alone, never at quorum, disk or limbo (rule 19).
        "livenessProbe": probe("/livez", 10, 6),
        "readinessProbe": probe("/readyz", 2, 3),
        "startupProbe": probe("/livez", 2, 150),
        // Endpoints forget the pod before it stops; the ordered stop itself begins with SIGTERM.
        "lifecycle": {"preStop": {"sleep": {"seconds": 2}}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
        "resources": resources(part),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    });
    if let Some(c) = container.as_object_mut() {
        if let Some(policy) = &spec.image_pull_policy {
            c.insert("imagePullPolicy".to_owned(), json!(policy));
        }
        if part.role != Role::Broker {
            c.insert("volumeMounts".to_owned(), json!([{"name": CLAIM, "mountPath": "/data"}]));
        }
    }
    Ok(container)
}

fn probe(path: &str, period: i32, failures: i32) -> Value {
    json!({
        "httpGet": {"path": path, "port": "http", "scheme": "HTTP"},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    })
}

/// Requests are always set (rule 19); what the user says replaces them.
fn resources(part: &Part<'_>) -> Value {
    let (cpu, memory) = match part.role {
        Role::Meta => ("100m", "128Mi"),
        Role::Bookie => ("100m", "256Mi"),
        Role::Broker => ("100m", "256Mi"),
    };
    let mut requests =
        BTreeMap::from([("cpu".to_owned(), cpu.to_owned()), ("memory".to_owned(), memory.to_owned())]);
    let mut limits = BTreeMap::new();
    if let Some(r) = part.resources {
        requests.extend(r.requests.iter().map(|(k, v)| (k.clone(), v.0.clone())));
        limits.extend(r.limits.iter().map(|(k, v)| (k.clone(), v.0.clone())));
    }
    if limits.is_empty() {
        json!({"requests": requests})
    } else {
        json!({"requests": requests, "limits": limits})
    }
}

fn args(
    spec: &ClusterSpec,
    names: &Names,
    wishes: &Wishes,
    part: &Part<'_>,
) -> Result<Vec<String>, RenderError> {
    let host = names.host(part.role, "$(POD_NAME)");
    let mut args = vec![
        part.role.name().to_owned(),
        format!("--http=0.0.0.0:{PORT_HTTP}"),
        format!("--listen=0.0.0.0:{PORT_GRPC}"),
        format!("--advertise={host}:{PORT_GRPC}"),
        "--name=$(POD_NAME)".to_owned(),
    ];
    match part.role {
        Role::Meta => args.push("--data-dir=/data/meta".to_owned()),
        Role::Bookie => args.push("--data-dirs=/data/bookie".to_owned()),
        Role::Broker => {}
    }
    if part.role != Role::Meta {
        args.push("--zone=$(ZONE)".to_owned());
        args.push(format!("--meta={}", names.meta_addresses(wishes.metas).join(",")));
    }
    // A number that the user gave as the memory of a broker is its budget's ceiling too.
    for (key, value) in &spec.config {
        let field = || format!("spec.config[{key}]");
        let Some((role, name)) = key.split_once('.') else {
            return Err(RenderError {
                field: field(),
                why: "keys are ROLE.KEY, such as broker.roll-bytes".to_owned(),
            });
        };
        if RESERVED.contains(&name) {
            return Err(RenderError { field: field(), why: "the operator sets this key itself".to_owned() });
        }
        if role == part.role.name() {
            // `$(` would be taken for a variable.
            args.push(format!("--{name}={}", value.replace("$(", "$$(")));
        }
    }
    Ok(args)
}
