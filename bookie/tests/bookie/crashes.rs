//! A boot that was cut off between two of its steps (R16): the next one is an ordinary boot, never limbo.

use std::sync::Arc;

use tidemill_runtime::io::RealDisk;
use tidemill_storage::{Engine, EngineConfig, FinishBoot};
use tidemill_types::{
    BookieId, BookieState, Incarnation,
    meta::{BookieSpec, Command, Reply},
};

use crate::{
    quorum::Quorum,
    shelf::{Bookie, Disks, config},
};

/// The last step that a boot did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Last {
    Scan,
    CookiesPending,
    QuorumPending,
    Cookies,
}

/// Does the steps of a boot up to this one and dies.
fn die_after(last: Last, quorum: &Quorum, disks: &Disks, incarnation: Incarnation) -> BookieId {
    let engine = EngineConfig { segment_bytes: 4 << 20, ..EngineConfig::new(disks.dirs.clone()) };
    let mut scanned = Engine::open_scan(Arc::new(RealDisk), engine).unwrap();
    let report = scanned.report().clone();
    assert!(!report.found_loss(), "{report:?}");
    if last >= Last::CookiesPending {
        scanned.write_pending(quorum.cluster, incarnation).unwrap();
    }
    if last >= Last::QuorumPending {
        let spec = BookieSpec {
            cluster: report.incarnation.and(report.cluster),
            id: report.bookie,
            name: "bookie-0".into(),
            last_incarnation: report.incarnation,
            incarnation,
            lanes: report.positions,
            found_loss: false,
        };
        let word = quorum.command(Command::BookieBoot(spec)).unwrap();
        assert!(matches!(word, Reply::BookieBoot { limbo: false, was_lost: false, .. }), "{word:?}");
    }
    if last >= Last::Cookies {
        scanned.finish(FinishBoot { limbo: false, mark: None }).unwrap().shutdown();
    }
    report.bookie
}

#[tokio::test(flavor = "multi_thread")]
async fn a_boot_may_be_cut_off_after_each_step() {
    for used in [false, true] {
        for last in [Last::Scan, Last::CookiesPending, Last::QuorumPending, Last::Cookies] {
            let (quorum, disks) = (Quorum::start().await, Disks::new(2));
            let mut known = None;
            if used {
                let bookie = Bookie::start(config(&quorum, &disks)).await;
                known = Some(bookie.id());
                bookie.stop().await;
            }
            let cut_off = die_after(last, &quorum, &disks, Incarnation(41));
            // Twice: the second one meets what the first one has left.
            let again = die_after(last, &quorum, &disks, Incarnation(42));
            let bookie = Bookie::start(config(&quorum, &disks)).await;
            if let Some(known) = known {
                assert_eq!((cut_off, again, bookie.id()), (known, known, known), "{last:?}");
            } else if last > Last::Scan {
                assert_eq!((cut_off, again), (bookie.id(), bookie.id()), "{last:?}");
            }
            assert_eq!(bookie.state().await, "rw", "used {used}, cut off after {last:?}");
            let member = quorum.look(|s| s.member(bookie.id()).unwrap().clone());
            assert_eq!((member.state, member.limbo_count), (BookieState::Rw, 0));
            assert_eq!(member.pending_incarnation, None);
            bookie.stop().await;
        }
    }
}
