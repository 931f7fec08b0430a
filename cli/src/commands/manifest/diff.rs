//! `diff`: what `apply` would change, judged by the cluster.

use std::time::Duration;

use tidemill_client::Client;

use super::{
    apply, cluster, groups, observe,
    read::Manifest,
    topics::{self, Done},
};
use crate::{
    error::{CliError, Exit},
    output,
};

/// Exit code 1 when something would change, as kubectl's.
pub(super) async fn diff(client: &Client, manifests: &[Manifest]) -> Result<(), CliError> {
    cluster::warn(manifests);
    // What fails must not look like a difference.
    let of_diff = |e: CliError| if e.exit == Exit::Failed { e.exit(Exit::Usage) } else { e };
    let seen = observe::named(client, topics::names(manifests)).await.map_err(of_diff)?;
    let plans = topics::plans(manifests, &seen, false);
    let mut done = topics::apply(client, plans, true, Duration::ZERO).await.map_err(of_diff)?;
    done.extend(groups::apply(client, manifests, true).await.map_err(of_diff)?);
    let mut text = String::new();
    for (m, d) in &done {
        let lines = match d {
            Done::Created => vec!["would be created".to_owned()],
            Done::Undeleted => vec!["deleted -> undeleted".to_owned()],
            Done::Configured(changes) => changes.clone(),
            Done::Unchanged | Done::Refused(..) => continue,
        };
        text.push_str(&m.full_name());
        text.push('\n');
        for line in lines {
            text.push_str("  ");
            text.push_str(&line);
            text.push('\n');
        }
    }
    output::print(&text)?;
    apply::refusals(&done).map_err(of_diff)?;
    if text.is_empty() { Ok(()) } else { Err(CliError::quiet(Exit::Failed)) }
}
