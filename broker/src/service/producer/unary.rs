//! The unary form: one call, one entry.

use std::{
    sync::Arc,
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

use tidemill_partition_log::LogState;
use tidemill_proto::v1;
use tidemill_record::partition_for_key;
use tidemill_types::PartitionId;

use super::{batches, refused};
use crate::{convert, core::Core, deadline::Deadline, fault::Fault, route::Topic};

/// Longest wait for a take-over by this broker when the caller set no earlier deadline.
const TAKE_OVER_WAIT: std::time::Duration = std::time::Duration::from_secs(5);

pub(super) async fn produce(
    core: &Arc<Core>,
    request: v1::ProduceRequest,
    deadline: Deadline,
) -> Result<v1::ProduceResponse, Fault> {
    let arrived = Instant::now();
    let topic = core.client_topic(&request.topic)?;
    let index = match request.partition {
        Some(index) => index,
        None => choose(core, &topic, &request)?,
    };
    let id = topic.partition(index)?;
    let batches = match (request.records.is_empty(), request.batches.is_empty()) {
        (false, true) => {
            let without = request.records.iter().position(|r| r.key.is_none()).filter(|_| topic.compacted);
            if let Some(i) = without {
                return Err(batches::no_key(&format!("records[{i}]")));
            }
            let now = core.clock.realtime_ms();
            vec![convert::record::encode(&request.records, request.compression, now, topic.max_batch)?]
        }
        (true, false) => batches::split(request.batches, topic.max_batch, topic.compacted)?,
        (true, true) => return Err(Fault::invalid("records", "nothing", "records or batches")),
        (false, false) => return Err(Fault::invalid("batches", "both", "either records or batches")),
    };
    if deadline.passed() {
        return Err(Fault::deadline_not_written());
    }
    let log = core.ready_log(&topic, id, request.epoch, deadline.at_most(TAKE_OVER_WAIT)).await?;
    let (bytes, records) = (batches.iter().map(|b| b.bytes.len()).sum::<usize>(), batches::count(&batches));
    let room = deadline.bound(log.reserve(bytes)).await.map_err(|_| Fault::deadline_not_written())?;
    let room = room.map_err(|e| refused(core, &topic, id, &e))?;
    if deadline.passed() {
        return Err(Fault::deadline_not_written());
    }
    let handle = log.submit(batches, room);
    // From here on the call goes on whoever waits for it.
    let outcome = deadline.bound(handle).await.map_err(|_| Fault::deadline_unknown())?;
    let done = outcome.map_err(|e| refused(core, &topic, id, &e))?;
    let m = &core.metrics;
    m.produce_latency.observe(arrived.elapsed().as_secs_f64());
    m.produce_records.inc_by(records);
    m.produce_bytes.inc_by(bytes as u64);
    m.produce_duplicates.inc_by(done.duplicate.into());
    Ok(v1::ProduceResponse {
        partition: index,
        base_offset: done.base_offset.0,
        count: u32::try_from(records).unwrap_or(u32::MAX),
        append_time_ms: done.append_time_ms,
        epoch: log.epoch().0,
        duplicate: done.duplicate,
    })
}

/// By the first record's key as Kafka does, else one of this broker's own partitions, in turn.
fn choose(core: &Core, topic: &Topic, request: &v1::ProduceRequest) -> Result<u32, Fault> {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    let Some(first) = request.records.first() else {
        return Err(Fault::invalid("partition", "none", "a partition, when batches are given"));
    };
    if let Some(key) = &first.key {
        return Ok(partition_for_key(key, topic.count));
    }
    let serving = |index: &u32| {
        let log = core.owned.log(PartitionId { topic: topic.id, index: *index });
        log.is_some_and(|l| l.state() == LogState::Serving)
    };
    let turn = TURN.fetch_add(1, Ordering::Relaxed);
    let own: Vec<u32> = (0..topic.count.get()).filter(serving).collect();
    if own.is_empty() {
        // None is here: the answer tells where this one is.
        return Ok(u32::try_from(turn % topic.count.get() as usize).unwrap_or(0));
    }
    Ok(own[turn % own.len()])
}
