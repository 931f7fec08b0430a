//! The health scripts for Argo CD against the verdict table, in a real Lua interpreter (Debian's `lua5.1`), on objects whose
//! conditions come from the operator's own code.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tidemill_crd::{Condition, Outcome, Verdict, apply_conditions};

fn script(kind: &str) -> String {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::fs::read_to_string(top.join(format!("examples/argocd/health/{kind}.lua"))).unwrap()
}

fn lua(value: &Value) -> String {
    match value {
        Value::Null => "nil".to_owned(),
        Value::Array(list) => format!("{{{}}}", list.iter().map(lua).collect::<Vec<_>>().join(",")),
        Value::Object(map) => {
            let pairs: Vec<String> = map.iter().map(|(k, v)| format!("[{k:?}]={}", lua(v))).collect();
            format!("{{{}}}", pairs.join(","))
        }
        other => other.to_string(),
    }
}

fn health(kind: &str, object: &Value) -> (String, String) {
    let program = format!(
        "local obj = {}\nlocal h = (function(obj)\n{}\nend)(obj)\nio.write(h.status, '\\n', h.message or '')",
        lua(object),
        script(kind)
    );
    let mut child = Command::new("lua5.1")
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("lua5.1 is needed: apt-get install lua5.1");
    child.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{program}");
    let text = String::from_utf8(out.stdout).unwrap();
    let (status, message) = text.split_once('\n').unwrap();
    (status.to_owned(), message.to_owned())
}

fn object(generation: i64, observed: i64, paused: bool, conditions: &[Condition]) -> Value {
    json!({
        "metadata": {"name": "x", "generation": generation},
        "spec": {"paused": paused},
        "status": {"observedGeneration": observed, "conditions": conditions},
    })
}

#[test]
fn the_verdict_table() {
    let now = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    let after = |outcomes: &[Outcome]| {
        let mut list = Vec::new();
        for outcome in outcomes {
            apply_conditions(&mut list, &Verdict::new(*outcome, "Reason", "why").conditions(), 1, &now);
        }
        list
    };
    for kind in ["cluster", "topic", "consumergroup"] {
        let of = |o: &Value| health(kind, o);
        let says = |status: &str| (status.to_owned(), "why".to_owned());
        assert_eq!(of(&object(1, 1, false, &after(&[Outcome::Working]))), says("Progressing"));
        assert_eq!(of(&object(1, 1, false, &after(&[Outcome::Done]))), says("Healthy"));
        assert_eq!(of(&object(1, 1, false, &after(&[Outcome::Rejected]))), says("Degraded"));
        assert_eq!(of(&object(1, 1, false, &after(&[Outcome::Retrying]))), says("Progressing"));
        assert_eq!(of(&object(1, 1, true, &after(&[Outcome::Done, Outcome::Paused]))).0, "Suspended");
        // A new generation while the operator is down: nothing old counts.
        for last in [Outcome::Done, Outcome::Rejected] {
            assert_eq!(of(&object(2, 1, false, &after(&[last]))).0, "Progressing");
        }
        // Never reconciled: the schema's default, or no status at all.
        let first =
            json!([{"type": "Ready", "status": "Unknown", "reason": "NotReconciled", "message": "m"}]);
        let mut never = object(1, -1, false, &[]);
        never["status"]["conditions"] = first;
        assert_eq!(of(&never).0, "Progressing");
        assert_eq!(of(&json!({"metadata": {"generation": 1}, "spec": {}})).0, "Progressing");
    }
}

#[test]
fn the_config_map_holds_the_scripts() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = std::fs::read_to_string(top.join("examples/argocd/argocd-cm.yaml")).unwrap();
    let map: Value = serde_saphyr::from_str(&text).unwrap();
    for kind in ["Cluster", "Topic", "ConsumerGroup"] {
        let held =
            map["data"][format!("resource.customizations.health.tidemill.dev_{kind}")].as_str().unwrap();
        assert_eq!(held.trim_end(), script(&kind.to_lowercase()).trim_end(), "{kind}");
    }
}
