//! `cargo xtask layers`: dependencies go downwards through the layers of ARCHITECTURE.md, and some packages stay
//! behind the crate that hides them.

mod rules;
mod table;

use crate::metadata::Metadata;
use crate::workspace::Workspace;

/// Checks the workspace and says whether it is clean.
pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<bool> {
    let members = Metadata::of_members(workspace)?.packages;
    let violations = rules::check(&members);
    for violation in &violations {
        println!("layers: {violation}");
    }
    println!("layers: {} crates, {} violations", members.len(), violations.len());
    Ok(violations.is_empty())
}
