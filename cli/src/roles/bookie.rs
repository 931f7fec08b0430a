//! `tidemill bookie`.

use tidemill_bookie::{BookieConfig, BookieHandle};
use tidemill_runtime::{Metrics, Supervisor};

use super::Role;
use crate::error::{CliError, start_failed};

/// Stores ledgers.
pub(crate) struct Bookie;

impl Role for Bookie {
    type Config = BookieConfig;
    type Handle = BookieHandle;
    const NAME: &'static str = "bookie";
    const KEYS: &'static [(&'static str, &'static str)] = &[
        ("data-dirs", "Folders, comma-separated, one per disk"),
        ("listen", "Address of the gRPC server"),
        ("advertise", "host:port under which brokers reach it"),
        ("name", "Name for people, such as bookie-0"),
        ("zone", "Failure zone"),
        ("meta", "host:port of the metadata quorum's members, comma-separated"),
        ("segment-bytes", "Size of a segment file"),
        ("group-bytes", "A commit group closes at this size"),
        ("max-entry-bytes", "Largest entry"),
        ("add-queue-bytes", "Adds waiting for a disk, per lane"),
        ("connection-add-bytes", "Unanswered adds of one connection"),
        ("read-in-flight-bytes", "Read answers in flight per connection"),
        ("control-queue", "Control requests under way at once"),
        ("index-cache-bytes", "Cache of sealed index blocks"),
        ("first-touch-reads", "Quorum reads under way at once for first touches"),
        ("disk-read-only-percent", "No plain adds above this share of the disk"),
        ("disk-read-write-percent", "Plain adds again below this share"),
        ("disk-reserve-bytes", "Kept free for fences and deletions, per lane"),
        ("disk-recovery-stop-percent", "No recovery adds above this share"),
        ("recent-bytes", "Newest entries kept in memory, per lane"),
        ("scrub-interval-ms", "Everything at rest is read and checked so often"),
        ("scrub-bytes-per-second", "Fastest reading of a scrub"),
        ("rewrite-live-percent", "Rewrite sealed segments below this share of live bytes"),
        ("rewrite-bytes-per-second", "Most bytes a second that rewriting reads"),
        ("repair-bytes-per-second", "Most bytes a second that repairs copy to this bookie"),
        ("gc-pass-ms", "Time between passes of garbage collection"),
    ];

    async fn start(
        config: BookieConfig,
        sup: &Supervisor,
        metrics: &Metrics,
    ) -> Result<BookieHandle, CliError> {
        tidemill_bookie::start(config, sup, metrics)
            .await
            .map_err(|e| start_failed(Self::NAME, &e.to_string(), e.code()))
    }

    async fn stop(handle: BookieHandle) {
        handle.stop().await;
    }

    fn describe(handle: &BookieHandle) -> String {
        format!("bookie {} on {}", handle.id(), handle.addr())
    }
}
