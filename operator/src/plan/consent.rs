//! Whether steps that disturb may be taken now: by approval and by windows.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tidemill_crd::cluster::{UpdateStrategy, Weekday, Window};

use super::Input;
use crate::render::Wishes;

/// The answer for this pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Consent {
    /// Names the goal, so that it stays the same while the steps are taken one by one.
    pub(super) hash: String,
    /// What is waited for; `None` = go on.
    pub(super) waits_for: Option<String>,
}

impl Consent {
    pub(super) fn of(input: &Input<'_>, wishes: &Wishes) -> Self {
        let spec = &input.cluster.spec;
        let goal = json!({
            "image": wishes.image,
            "revision": wishes.template_revision,
            "meta": spec.meta,
            "pools": spec.bookie_pools,
            // The number of brokers is an autoscaler's, not a plan's.
            "brokers": {"resources": spec.brokers.resources, "template": spec.brokers.template},
            "placement": spec.placement,
            "config": spec.config,
        });
        let hash = short_hash(&goal);
        let updates = &spec.updates;
        let approved = updates.approved_plan.as_deref() == Some(hash.as_str());
        let waits_for = if updates.strategy == UpdateStrategy::Approve && !approved {
            Some(format!("approval: set spec.updates.approvedPlan to {hash}"))
        } else if !updates.windows.is_empty() && !updates.windows.iter().any(|w| open(w, input.minute)) {
            Some("a window of spec.updates.windows".to_owned())
        } else {
            None
        };
        Self { hash, waits_for }
    }
}

fn short_hash(value: &Value) -> String {
    let digest = Sha256::digest(value.to_string().as_bytes());
    digest.iter().take(6).map(|b| format!("{b:02x}")).collect()
}

const DAY: u32 = 24 * 60;
const WEEK: u32 = 7 * DAY;

/// Whether `minute` (since Monday 00:00) lies in the window.
fn open(window: &Window, minute: u32) -> bool {
    let Some((h, m)) = window
        .start
        .split_once(':')
        .and_then(|(h, m)| Some((h.parse::<u32>().ok()?, m.parse::<u32>().ok()?)))
    else {
        return false;
    };
    let length = u32::try_from(window.duration.millis().unwrap_or(0) / 60_000).unwrap_or(0);
    let all =
        [Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu, Weekday::Fri, Weekday::Sat, Weekday::Sun];
    all.iter().zip(0u32..).filter(|(day, _)| window.days.is_empty() || window.days.contains(day)).any(
        |(_, day)| {
            let start = day * DAY + h * 60 + m;
            (minute + WEEK - start) % WEEK < length
        },
    )
}

#[cfg(test)]
mod tests {
    use tidemill_crd::Duration;

    use super::*;

    #[test]
    fn windows() {
        let w = Window { days: vec![Weekday::Sun], start: "23:00".into(), duration: Duration::new("2h") };
        assert!(open(&w, 6 * DAY + 23 * 60));
        assert!(open(&w, 30), "past midnight into Monday");
        assert!(!open(&w, 60));
        assert!(!open(&w, 5 * DAY + 23 * 60));
        let daily = Window { days: vec![], start: "02:00".into(), duration: Duration::new("1h") };
        assert!(open(&daily, 3 * DAY + 150) && !open(&daily, 3 * DAY + 180));
    }
}
