//! The operator and its custom resources, installed by their charts.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use super::kubectl::{image, kubectl, list};
use super::report::seen;
use super::wait::until;
use crate::command::{Finished, run};

/// A chart that is not installed by then never will be.
const LIMIT: Duration = Duration::from_secs(240);
/// The operator's namespace.
const NAMESPACE: &str = "tidemill-system";

/// The installed operator.
#[derive(Clone, Debug)]
pub struct Operator {
    /// How long the installation took, from the first `helm install` to the operator's readiness.
    pub took: Duration,
}

static INSTALLED: OnceLock<Result<Operator, String>> = OnceLock::new();

impl Operator {
    /// The operator, installed by the first test that asks for it.
    ///
    /// # Errors
    /// A chart could not be installed.
    pub fn installed() -> Result<Self> {
        INSTALLED
            .get_or_init(|| install().map_err(|error| format!("{error:#}")))
            .clone()
            .map_err(|why| anyhow!(why))
    }

    /// Its namespace.
    #[must_use]
    pub fn namespace() -> &'static str {
        NAMESPACE
    }

    /// How many passes over objects the running operators have ended since they started.
    ///
    /// # Errors
    /// None of them answers.
    pub fn passes() -> Result<u64> {
        Self::sum("reconciles_total{")
    }

    /// The sum of the running operators' samples whose names begin with `tidemill_operator_` and `prefix`.
    ///
    /// # Errors
    /// One of them does not answer.
    pub fn sum(prefix: &str) -> Result<u64> {
        let mut sum = 0;
        // One that is going may not answer any more.
        let all = list(NAMESPACE, "pods", "")?;
        for pod in all.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()) {
            let name = pod["metadata"]["name"].as_str().context("a pod without a name")?;
            sum += Self::sum_of(name, prefix)?;
        }
        Ok(sum)
    }

    /// The same of one pod in the operator's namespace.
    ///
    /// # Errors
    /// It does not answer.
    pub fn sum_of(pod: &str, prefix: &str) -> Result<u64> {
        let prefix = format!("tidemill_operator_{prefix}");
        let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}:7451/proxy/metrics");
        let metrics = kubectl(&["get", "--raw", &path])?.ok()?.stdout;
        let mut sum = 0;
        for line in metrics.lines().filter(|line| line.starts_with(&prefix)) {
            let value = line.rsplit_once(' ').context("a metric without a value")?.1;
            sum += value.parse::<u64>().with_context(|| line.to_owned())?;
        }
        Ok(sum)
    }

    /// Kills all operators and waits until another one has started to work.
    ///
    /// # Errors
    /// None does.
    pub fn restart() -> Result<()> {
        kubectl(&["delete", "pods", "--all", "-n", NAMESPACE, "--grace-period=0", "--force"])?.ok()?;
        until("a pass of the new operator", LIMIT, || Ok((Self::passes()? > 0).then_some(())))
    }

    /// Runs `helm` to its end, whatever that is.
    ///
    /// # Errors
    /// It cannot be started, or does not end.
    pub fn helm(args: &[&str]) -> Result<Finished> {
        run(Command::new("helm").args(args), b"", LIMIT)
    }
}

/// A file or folder of the checkout.
#[must_use]
pub fn checkout(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn install() -> Result<Operator> {
    let image = image()?;
    let (repository, tag) = image.rsplit_once(':').context("the image's name needs a tag")?;
    let started = Instant::now();
    let chart = |name: &str| checkout("charts").join(name).display().to_string();
    let place = ["--namespace", NAMESPACE, "--create-namespace", "--wait", "--timeout=3m"];
    let install = |name: &str, more: &[&str]| -> Result<()> {
        let chart = chart(name);
        let mut args = vec!["upgrade", "--install", name, chart.as_str()];
        args.extend(place);
        args.extend(more);
        Operator::helm(&args)?.ok().with_context(|| format!("helm install {name}")).map(drop)
    };
    install("tidemill-crds", &[])?;
    let values = [format!("image.repository={repository}"), format!("image.tag={tag}")];
    let mut more = Vec::new();
    for value in &values {
        more.extend(["--set", value.as_str()]);
    }
    install("tidemill-operator", &more)?;
    let took = started.elapsed();
    seen(format!("both charts installed and the operator ready in {:.1} s", took.as_secs_f64()))?;
    Ok(Operator { took })
}
