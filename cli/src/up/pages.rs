//! What the HTTP port of `tidemill up` tells of its members.

use prometheus_client::metrics::gauge::Gauge;
use tidemill_runtime::Metrics;

use super::plan::{Member, Plan};
use crate::args::UpArgs;

/// Registers `tidemill_up_member{member, role, address, metrics} 1` for each member. `metrics` is the page of a member that
/// is a process of its own; in one process the metrics of all members stand on the same page, and the label is empty.
pub(crate) fn announce(args: &UpArgs, plan: &Plan, metrics: &Metrics) {
    for m in all(plan) {
        let (address, page) = (m.listen.to_string(), page(args, m).unwrap_or_default());
        let labels =
            [("member", m.name.as_str()), ("role", m.role), ("address", &address), ("metrics", &page)];
        metrics.register("up", &labels, |r| {
            let one = Gauge::<i64>::default();
            one.set(1);
            r.register("member", "A member of this cluster and where its metrics are", one);
        });
    }
}

/// The first lines of the page `/`.
pub(crate) fn title(args: &UpArgs, plan: &Plan) -> String {
    let mut text = "tidemill up\n".to_owned();
    for m in all(plan) {
        text.push_str(&format!("{:<10} {}", m.name, m.listen));
        if let Some(page) = page(args, m) {
            text.push_str(&format!("  {page}"));
        }
        text.push('\n');
    }
    text.trim_end().to_owned()
}

fn all(plan: &Plan) -> impl Iterator<Item = &Member> {
    plan.metas.iter().chain(&plan.bookies).chain(&plan.brokers)
}

fn page(args: &UpArgs, m: &Member) -> Option<String> {
    args.processes.then(|| format!("http://{}/metrics", m.http))
}
