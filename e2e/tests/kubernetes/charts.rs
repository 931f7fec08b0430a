//! What the charts make, byte by byte, and that helm finds nothing wrong with them. After a wished change: `TIDEMILL_GOLDEN=write`,
//! then look at the difference.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use tidemill_e2e::kube::{Operator, checkout, seen};

/// The oldest server that the charts are for.
const VERSION: &str = "--kube-version=1.33.0";
/// Everything that the chart can do at once.
const FULL: [&str; 12] = [
    "--set=watchNamespace=team",
    "--set=replicas=2",
    "--set=image.tag=1.2.3",
    "--set=image.pullSecrets[0].name=registry",
    "--set=priorityClassName=system-cluster-critical",
    "--set=metrics.serviceMonitor.enabled=true",
    "--set=metrics.prometheusRule.enabled=true",
    "--set=metrics.dashboard.enabled=true",
    "--set=nodeSelector.disk=ssd",
    "--set=podLabels.team=data",
    "--set=serviceAccount.annotations.example=x",
    "--set=log.format=text",
];

fn chart(name: &str) -> String {
    checkout("charts").join(name).display().to_string()
}

fn golden(name: &str, text: &str) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/kubernetes/golden/{name}.yaml"));
    if std::env::var("TIDEMILL_GOLDEN").as_deref() == Ok("write") {
        std::fs::write(&path, text)?;
    }
    let have = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let differs = have.lines().zip(text.lines()).position(|(a, b)| a != b);
    ensure!(have == text, "{} differs from what helm makes, first in line {differs:?}", path.display());
    Ok(())
}

#[test]
fn charts_make_what_they_made() -> Result<()> {
    let made = |name: &str, more: &[&str]| -> Result<String> {
        let chart = chart(name);
        let mut args = vec!["template", name, chart.as_str(), "--namespace=tidemill-system", VERSION];
        args.extend(more);
        let text = Operator::helm(&args)?.ok()?.stdout;
        // Equal input gives equal bytes.
        ensure!(Operator::helm(&args)?.ok()?.stdout == text, "helm template {name} twice");
        Ok(text)
    };
    // The definitions have a golden form already: what is generated from the types.
    let definitions = made("tidemill-crds", &[])?;
    for name in ["clusters", "consumergroups", "topics"] {
        let path = checkout(&format!("charts/tidemill-crds/templates/{name}.yaml"));
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        ensure!(definitions.contains(text.trim()), "helm makes something else of {}", path.display());
    }
    golden("tidemill-operator", &made("tidemill-operator", &[])?)?;
    golden("tidemill-operator-full", &made("tidemill-operator", &FULL)?)?;
    seen("both charts give the golden manifests")
}

#[test]
fn helm_finds_nothing_wrong_with_the_charts() -> Result<()> {
    for (name, more) in
        [("tidemill-crds", &[][..]), ("tidemill-operator", &[][..]), ("tidemill-operator", &FULL[..])]
    {
        let chart = chart(name);
        let mut args = vec!["lint", "--strict", chart.as_str()];
        args.extend(more);
        Operator::helm(&args)?.ok().with_context(|| format!("helm lint {name}"))?;
    }
    // The schema of values refuses what would only fail later.
    for wrong in
        ["--set=replicas=none", "--set=log.format=xml", "--set=image.pullPolicy=Sometimes", "--set=replica=2"]
    {
        let done = Operator::helm(&["template", "x", &chart("tidemill-operator"), VERSION, wrong])?;
        ensure!(done.code != Some(0), "{wrong} was taken");
        ensure!(done.stderr.contains("values don't meet the specifications"), "{wrong}: {}", done.stderr);
    }
    seen("helm lint --strict: nothing; four wrong values are refused by the schema")
}
