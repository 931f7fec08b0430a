//! The engine's part of a boot, on threads that may block.

use std::{path::PathBuf, sync::Arc};

use tidemill_runtime::{Clock, Supervisor, io::Disk, work};
use tidemill_storage::{Engine, EngineConfig, FinishBoot, OpenError, Scanned, SpaceLimits};
use tidemill_types::{ClusterId, ErrorCode, Incarnation};

use super::{Ended, lanes};
use crate::{error::BookieError, shared::Core};

/// Step 1: locks and reads the lanes. `fatal` is told when a sync fails later (R17).
pub(crate) async fn scan(
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    core: &Core,
    fatal: Supervisor,
) -> Result<Scanned, BookieError> {
    let engine_config = engine_config(core, clock, fatal)?;
    work::blocking(move || Engine::open_scan(disk, engine_config))
        .await
        .map_err(|e| BookieError::Storage(e.to_string()))?
        .map_err(|e| match e {
            OpenError::Io { .. } => BookieError::Directory(e.to_string()),
            e => BookieError::Storage(e.to_string()),
        })
}

fn engine_config(core: &Core, clock: Arc<dyn Clock>, fatal: Supervisor) -> Result<EngineConfig, BookieError> {
    let config = &core.config;
    let absolute = |dir: &PathBuf| {
        std::path::absolute(dir).map_err(|e| BookieError::Directory(format!("{}: {e}", dir.display())))
    };
    let lanes = config.data_dirs.iter().map(absolute).collect::<Result<_, _>>()?;
    let share = |percent: u8| f64::from(percent) / 100.0;
    Ok(EngineConfig {
        segment_bytes: config.segment_bytes,
        group_bytes: config.group_bytes,
        max_entry_bytes: config.max_entry_bytes,
        queue_bytes: config.add_queue_bytes,
        index_cache_bytes: config.index_cache_bytes as u64,
        recent_bytes: config.recent_bytes,
        reserve_bytes: config.disk_reserve_bytes,
        space: SpaceLimits {
            read_only_at: share(config.disk_read_only_percent),
            read_write_below: share(config.disk_read_write_percent),
            recovery_until: share(config.disk_recovery_stop_percent),
        },
        rewrite_below: share(config.rewrite_live_percent),
        driver: lanes::driver(&core.lane_work),
        clock,
        on_fatal: Arc::new(move |poison| fatal.fatal(&poison.to_string())),
        ..EngineConfig::new(lanes)
    })
}

/// Step 2.
pub(super) async fn write_pending(
    mut scanned: Scanned,
    cluster: ClusterId,
    incarnation: Incarnation,
) -> Result<Scanned, Ended> {
    blocking(move || scanned.write_pending(cluster, incarnation).map(|()| scanned)).await?.map_err(fatal)
}

/// Step 4: the lanes run from here on.
pub(super) async fn finish(scanned: Scanned, finish: FinishBoot, core: &Core) -> Result<Engine, Ended> {
    let engine = blocking(move || scanned.finish(finish)).await?.map_err(fatal)?;
    lanes::run(&engine, &core.lane_work);
    Ok(engine)
}

/// Sets or clears the durable limbo flag.
pub(crate) async fn set_limbo(engine: &Engine, limbo: bool) -> Result<(), Ended> {
    let engine = engine.clone();
    blocking(move || engine.set_limbo(limbo)).await?.map_err(|e| Ended::Fatal(e.to_string()))
}

async fn blocking<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Result<T, Ended> {
    work::blocking(f).await.map_err(|e| Ended::Fatal(format!("a task of the boot ended early: {e}")))
}

#[expect(clippy::needless_pass_by_value, reason = "used with map_err")]
fn fatal(e: OpenError) -> Ended {
    let code = if matches!(e, OpenError::OtherCluster { .. }) {
        ErrorCode::WrongCluster
    } else {
        ErrorCode::Internal
    };
    Ended::Fatal(format!("cannot open the disks: {e} ({code})"))
}
