//! `cargo xtask test`: every test there is, as a table of named steps that share one target folder.

mod run;
mod steps;
mod summary;
mod totals;

use anyhow::bail;

use crate::workspace::Workspace;
use steps::{STEPS, Step};
use summary::Summary;

/// Flags of `cargo xtask test`.
#[derive(clap::Args, Default)]
pub(crate) struct Args {
    /// Leave out what takes minutes
    #[arg(long)]
    quick: bool,
    /// Give the tests that can fill any time their full length
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Stop at the first failure
    #[arg(long)]
    fail_fast: bool,
    /// Run only this step (may be given several times)
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Show the steps and run nothing
    #[arg(long)]
    list: bool,
}

impl Args {
    /// The flags that `cargo xtask verify` hands on.
    pub(crate) fn quick(quick: bool) -> Self {
        Self { quick, ..Self::default() }
    }
}

/// Runs the chosen steps and says whether all of them passed.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> anyhow::Result<bool> {
    let chosen = choose(STEPS, args)?;
    if args.list {
        for step in &chosen {
            println!("{:<16} {}", step.name, step.about);
        }
        return Ok(true);
    }
    let mut summary = Summary::default();
    for step in chosen {
        let outcome = run::run(workspace, step, args);
        let stop = args.fail_fast && !outcome.passed();
        summary.add(step.name, outcome);
        if stop {
            break;
        }
    }
    print!("{summary}");
    Ok(summary.passed())
}

fn choose<'a>(steps: &'a [Step], args: &Args) -> anyhow::Result<Vec<&'a Step>> {
    if let Some(unknown) = args.only.iter().find(|only| steps.iter().all(|step| step.name != only.as_str())) {
        let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
        bail!("there is no step `{unknown}`: the steps are {}", names.join(", "));
    }
    let named = |step: &Step| args.only.iter().any(|only| only == step.name);
    Ok(steps
        .iter()
        .filter(|step| if args.only.is_empty() { step.runs(args.quick) } else { named(step) })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(args: &Args) -> Vec<&'static str> {
        choose(STEPS, args).unwrap().iter().map(|step| step.name).collect()
    }

    #[test]
    fn all_steps_run_unless_some_are_named() {
        assert_eq!(names(&Args::default()).len(), STEPS.len());
        let only = Args { only: vec!["workspace".to_owned()], ..Args::default() };
        assert_eq!(names(&only), ["workspace"]);
    }

    #[test]
    fn an_unknown_step_is_refused_and_the_known_ones_are_named() {
        let args = Args { only: vec!["nothing".to_owned()], ..Args::default() };
        let error = choose(STEPS, &args).err().unwrap().to_string();
        assert!(error.contains("nothing") && error.contains("workspace"), "{error}");
    }

    #[test]
    fn names_of_steps_are_unique() {
        let mut all = names(&Args::default());
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), STEPS.len());
    }
}
