//! Whether a topic has no record, as the owners of its partitions know it.

use std::time::Duration;

use futures::{StreamExt, stream};
use tidemill_proto::v1;
use tidemill_types::{ErrorCode, TopicName};

use super::Caller;
use crate::{fault::Fault, service::admin::partition};

/// Owners asked at once.
const AT_ONCE: usize = 16;
/// How long an owner gets to see the tombstone, and a partition to have an owner.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two questions.
const PAUSE: Duration = Duration::from_millis(50);

/// `Ok` when no partition has a record, or there is no such topic. `deleted`: only the word of owners counts that know of the
/// tombstone and so take nothing any more.
///
/// # Errors
/// `TOPIC_NOT_EMPTY` with the partition, `NO_OWNER` when an owner could not be asked.
pub(super) async fn check(caller: Caller<'_>, name: &TopicName, deleted: bool) -> Result<(), Fault> {
    let Ok(topic) = caller.core.any_topic(name.as_str()) else { return Ok(()) };
    let asked = (0..topic.count.get()).map(|index| one(caller, name, index, deleted));
    let mut answers = stream::iter(asked).buffer_unordered(AT_ONCE);
    while let Some(answer) = answers.next().await {
        answer?;
    }
    Ok(())
}

async fn one(caller: Caller<'_>, name: &TopicName, partition: u32, deleted: bool) -> Result<(), Fault> {
    let wait = caller.deadline.at_most(PATIENCE);
    loop {
        let request = v1::DescribePartitionRequest { topic: name.to_string(), partition };
        let told = match partition::describe(caller.core, request, wait, true).await {
            // Purged, or never there: nothing is in it.
            Err(f) if f.code() == ErrorCode::UnknownTopic => return Ok(()),
            told => told?,
        };
        // Never written to: no owner has to say so.
        let never = told.chain.is_empty() && told.log_start == 0;
        if told.high_watermark > told.log_start {
            let records = told.high_watermark - told.log_start;
            let why = format!("topic {name} has records: {records} in partition {partition}");
            return Err(Fault::new(ErrorCode::TopicNotEmpty, why));
        }
        if (told.high_watermark >= 0 || (never && !deleted)) && (!deleted || told.deleted) {
            return Ok(());
        }
        if wait.passed() {
            let why = format!("the owner of {name}/{partition} did not say whether it is empty");
            return Err(Fault::new(ErrorCode::NoOwner, why));
        }
        tokio::time::sleep(PAUSE).await;
    }
}
