//! `group list`, `group describe`.

use serde_json::{Value, json};
use tidemill_client::{Client, v1};

use crate::{
    commands::{
        Output,
        connect::failed,
        table::{self, Row},
    },
    error::CliError,
    output,
};

pub(super) async fn list(client: &Client, form: Output) -> Result<(), CliError> {
    let all = client.groups().list().await.map_err(|e| failed(&e))?;
    if !all.missing.is_empty() {
        let n = all.missing.len();
        output::note(&format!("warning: {n} coordinators did not answer, their groups are missing"));
    }
    let rows = all
        .groups
        .iter()
        .map(|g| Row {
            name: g.name.clone(),
            columns: vec![
                g.name.clone(),
                g.state.clone(),
                g.members.to_string(),
                g.offsets.to_string(),
                g.assignor.clone(),
            ],
            wide: vec![g.epoch.to_string(), g.coordinator.clone()],
            json: json_of(g),
        })
        .collect();
    table::print(form, &["GROUP", "STATE", "MEMBERS", "OFFSETS", "ASSIGNOR"], &["EPOCH", "COORDINATOR"], rows)
}

fn json_of(g: &v1::GroupSummary) -> Value {
    json!({
        "name": g.name, "state": g.state, "members": g.members, "offsets": g.offsets, "assignor": g.assignor,
        "epoch": g.epoch, "coordinator": g.coordinator,
    })
}

pub(super) async fn describe(client: &Client, name: &str, form: Output) -> Result<(), CliError> {
    let d = client.groups().describe(name).await.map_err(|e| failed(&e))?;
    let s = d.summary.clone().unwrap_or_default();
    let known = |n: i64| if n < 0 { "-".to_owned() } else { n.to_string() };
    let total: i64 = d.offsets.iter().map(|o| o.lag.max(0)).sum();
    let offsets: Vec<Vec<String>> = d
        .offsets
        .iter()
        .map(|o| {
            vec![
                o.topic.clone(),
                o.partition.to_string(),
                known(o.committed),
                known(o.log_end),
                known(o.lag),
                if o.member.is_empty() { "-".to_owned() } else { o.member.clone() },
            ]
        })
        .collect();
    let members: Vec<Vec<String>> = d
        .members
        .iter()
        .map(|m| {
            vec![
                m.id.clone(),
                if m.instance.is_empty() { "-".to_owned() } else { m.instance.clone() },
                m.epoch.to_string(),
                m.assigned.len().to_string(),
                m.revoking.len().to_string(),
                m.client.clone(),
            ]
        })
        .collect();
    let mut text = format!(
        "group: {}\nstate: {}\nassignor: {}\nepoch: {}\ncoordinator: {}\nlag: {total}\n",
        s.name, s.state, s.assignor, s.epoch, s.coordinator
    );
    if !members.is_empty() {
        text.push('\n');
        text +=
            &table::columns(&["MEMBER", "INSTANCE", "EPOCH", "PARTITIONS", "REVOKING", "CLIENT"], members);
    }
    if !offsets.is_empty() {
        text.push('\n');
        text += &table::columns(&["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER"], offsets);
    }
    let parts = |all: &[v1::AssignedPartition]| -> Vec<Value> {
        all.iter().map(|p| json!({"topic": p.topic, "partition": p.partition})).collect()
    };
    let or_null = |n: i64| (n >= 0).then_some(n);
    let value = json!({
        "name": s.name, "state": s.state, "assignor": s.assignor, "epoch": s.epoch,
        "coordinator": s.coordinator, "lag": total,
        "members": d.members.iter().map(|m| json!({
            "id": m.id, "instance": m.instance, "client": m.client, "epoch": m.epoch, "away": m.away,
            "assigned": parts(&m.assigned), "revoking": parts(&m.revoking), "target": parts(&m.target),
        })).collect::<Vec<_>>(),
        "offsets": d.offsets.iter().map(|o| json!({
            "topic": o.topic, "partition": o.partition, "committed": or_null(o.committed),
            "logStart": or_null(o.log_start), "logEnd": or_null(o.log_end), "lag": or_null(o.lag),
            "member": o.member, "commitTimeMs": o.commit_time_ms, "metadata": o.metadata,
        })).collect::<Vec<_>>(),
    });
    table::object(form, &s.name, &text, &value)
}
