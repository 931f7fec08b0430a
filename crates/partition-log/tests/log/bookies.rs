//! Bookies in this process, behind the ledger client's transport: fencing, in-order processing, and a network that can
//! hold adds back.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;
use tidemill_ledger::{
    core::{AddAnswer, FenceAnswer, Negative, ReadAnswer},
    transport::{AddStream, NoStream, ReadItem, ReadSpec, Target, Transport, WireAck, WireAdd},
};
use tidemill_types::{BookieId, Entry, EntryId, LedgerId};
use tokio::sync::{mpsc, watch};

#[derive(Default)]
struct Ledger {
    entries: BTreeMap<EntryId, Entry>,
    fenced: bool,
    lac: Option<EntryId>,
}

impl Ledger {
    fn put(&mut self, e: &Entry) {
        self.lac = self.lac.max(Some(e.header().lac));
        let old = self.entries.insert(e.header().entry, e.clone());
        assert!(old.is_none_or(|o| o == *e), "two different entries of one id (R24)");
    }
}

pub(crate) struct Bookie {
    pub(crate) id: BookieId,
    ledgers: Mutex<HashMap<LedgerId, Ledger>>,
    /// While true adds stay in the network: not accepted, not answered.
    held: watch::Sender<bool>,
}

impl Bookie {
    pub(crate) fn new(id: BookieId) -> Arc<Self> {
        Arc::new(Self { id, ledgers: Mutex::default(), held: watch::Sender::new(false) })
    }

    pub(crate) fn hold_adds(&self, hold: bool) {
        self.held.send_replace(hold);
    }

    /// Collects a ledger, as a bookie does that the quorum told twice that it is gone (R20).
    pub(crate) fn collect(&self, ledger: LedgerId) {
        self.ledgers.lock().remove(&ledger);
    }

    pub(crate) fn entries(&self, ledger: LedgerId) -> usize {
        self.ledgers.lock().get(&ledger).map_or(0, |l| l.entries.len())
    }

    fn add(&self, a: WireAdd) -> WireAck {
        let e = Entry::decode(a.entry).unwrap();
        let mut ledgers = self.ledgers.lock();
        let l = ledgers.entry(e.header().ledger).or_default();
        let answer = if l.fenced {
            AddAnswer::Fenced
        } else {
            l.put(&e);
            AddAnswer::Ok
        };
        WireAck { request_id: a.request_id, answer }
    }

    fn fence(&self, ledger: LedgerId) -> FenceAnswer {
        let mut ledgers = self.ledgers.lock();
        let l = ledgers.entry(ledger).or_default();
        l.fenced = true;
        FenceAnswer::Confirmed { lac: l.lac.unwrap_or(EntryId::NONE) }
    }

    fn read(&self, spec: ReadSpec) -> Vec<ReadItem> {
        if spec.fence {
            self.fence(spec.ledger);
        }
        let ledgers = self.ledgers.lock();
        let mut out = Vec::new();
        let mut bytes = 0;
        for id in (spec.first.0..=spec.last.0).map(EntryId) {
            let answer = match ledgers.get(&spec.ledger).map(|l| l.entries.get(&id)) {
                None => ReadAnswer::Negative(Negative::NoSuchLedger),
                Some(None) => ReadAnswer::Negative(Negative::NoSuchEntry),
                Some(Some(e)) => {
                    let n = if spec.header_only { e.header().head_len() } else { e.bytes().len() };
                    bytes += n;
                    ReadAnswer::Found(e.bytes().slice(..n))
                }
            };
            let found = matches!(answer, ReadAnswer::Found(_));
            out.push((id, answer));
            if (!found && !spec.fence) || bytes >= spec.max_bytes as usize {
                break;
            }
        }
        out
    }
}

pub(crate) struct Network {
    pub(crate) bookies: Vec<Arc<Bookie>>,
}

impl Network {
    fn bookie(&self, t: &Target) -> Arc<Bookie> {
        self.bookies.iter().find(|b| b.id == t.bookie).unwrap().clone()
    }
}

impl Transport for Network {
    fn open_adds(&self, target: Target) -> BoxFuture<'static, Result<AddStream, NoStream>> {
        let b = self.bookie(&target);
        async move {
            let (adds, mut queue) = mpsc::channel::<Vec<WireAdd>>(64);
            let (tx, mut acks) = mpsc::channel(64);
            tokio::spawn(async move {
                let mut held = b.held.subscribe();
                while let Some(batch) = queue.recv().await {
                    if held.wait_for(|h| !h).await.is_err() {
                        return;
                    }
                    let out = batch.into_iter().map(|a| b.add(a)).collect();
                    if tx.send(out).await.is_err() {
                        return;
                    }
                }
            });
            let acks = Box::pin(futures::stream::poll_fn(move |cx| acks.poll_recv(cx)));
            Ok(AddStream { incarnation: target.incarnation, adds, acks })
        }
        .boxed()
    }

    fn read(&self, target: Target, spec: ReadSpec) -> BoxFuture<'static, Vec<ReadItem>> {
        let b = self.bookie(&target);
        async move { b.read(spec) }.boxed()
    }

    fn fence(&self, target: Target, ledgers: Vec<LedgerId>) -> BoxFuture<'static, Vec<FenceAnswer>> {
        let b = self.bookie(&target);
        async move { ledgers.into_iter().map(|l| b.fence(l)).collect() }.boxed()
    }

    fn recovery_add(&self, target: Target, entries: Vec<Bytes>) -> BoxFuture<'static, Vec<AddAnswer>> {
        let b = self.bookie(&target);
        async move {
            let mut ledgers = b.ledgers.lock();
            let add = |e| {
                let e = Entry::decode(e).unwrap();
                let fenced = || Ledger { fenced: true, ..Ledger::default() };
                ledgers.entry(e.header().ledger).or_insert_with(fenced).put(&e);
                AddAnswer::Ok
            };
            entries.into_iter().map(add).collect()
        }
        .boxed()
    }

    fn read_lac(
        &self,
        target: Target,
        ledger: LedgerId,
        _above: Option<EntryId>,
        _wait: Duration,
    ) -> BoxFuture<'static, FenceAnswer> {
        let b = self.bookie(&target);
        async move {
            let lac = b.ledgers.lock().get(&ledger).and_then(|l| l.lac).unwrap_or(EntryId::NONE);
            FenceAnswer::Confirmed { lac }
        }
        .boxed()
    }

    fn write_lac(&self, target: Target, ledger: LedgerId, lac: EntryId) -> BoxFuture<'static, bool> {
        let b = self.bookie(&target);
        async move {
            let mut ledgers = b.ledgers.lock();
            let Some(l) = ledgers.get_mut(&ledger) else { return false };
            l.lac = l.lac.max(Some(lac));
            true
        }
        .boxed()
    }
}
