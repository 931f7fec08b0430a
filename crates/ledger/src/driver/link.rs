//! The data link to one bookie: adds of all ledgers go out in shared messages, acks come back likewise.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt, stream::BoxStream};
use parking_lot::Mutex;
use tidemill_types::{BookieId, Entry, EntryId, Incarnation, LedgerId};
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{shared::Shared, writer::WriterShared};
use crate::{
    BookieTable,
    core::{
        AddAnswer, Unknown,
        health::{self, Health, HealthConfig, Verdict},
        writer::{Attempt, Input},
    },
    transport::{AddStream, Target, WireAck, WireAdd},
};

/// Bytes of entries in one message; one larger entry goes alone.
const BATCH_BYTES: usize = 1 << 20;
const FIRST_BACKOFF: Duration = Duration::from_millis(20);
const LAST_BACKOFF: Duration = Duration::from_millis(100);

/// What an ack on the stream answers (R10).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) ledger: LedgerId,
    pub(crate) index: u8,
    pub(crate) attempt: Attempt,
    pub(crate) entry: EntryId,
    at: Duration,
}

#[derive(Default)]
struct Queue {
    /// The process that the open stream reaches.
    open: Option<Incarnation>,
    adds: VecDeque<WireAdd>,
    /// Adds without an answer; the first has the id `first`.
    sent: VecDeque<Option<Sent>>,
    first: u64,
}

impl Queue {
    fn take(&mut self, request_id: u64) -> Option<Sent> {
        let at = usize::try_from(request_id.checked_sub(self.first)?).ok()?;
        let s = self.sent.get_mut(at)?.take();
        while self.sent.front().is_some_and(Option::is_none) {
            self.sent.pop_front();
            self.first += 1;
        }
        s
    }
}

pub(crate) struct Link {
    pub(crate) bookie: BookieId,
    queue: Mutex<Queue>,
    wake: Notify,
    health: Mutex<Health>,
    /// Bytes that this bookie has not acknowledged, over all writers.
    pub(crate) unacked: AtomicU64,
}

impl Link {
    pub(crate) fn new(bookie: BookieId, config: HealthConfig, now: Duration) -> Self {
        Self {
            bookie,
            queue: Mutex::default(),
            wake: Notify::new(),
            health: Mutex::new(Health::new(config, now)),
            unacked: AtomicU64::new(0),
        }
    }

    /// Queues an add, if the stream to the process that the attempt names is open; else the writer sends it again when a
    /// stream is opened.
    pub(crate) fn send(&self, ledger: LedgerId, index: u8, attempt: Attempt, entry: &Entry, now: Duration) {
        let mut q = self.queue.lock();
        if q.open != Some(attempt.incarnation) {
            return;
        }
        let request_id = q.first + q.sent.len() as u64;
        q.sent.push_back(Some(Sent { ledger, index, attempt, entry: entry.header().entry, at: now }));
        q.adds.push_back(WireAdd { request_id, entry: entry.bytes().clone() });
        drop(q);
        self.wake.notify_one();
    }

    /// The process that can be sent to.
    pub(crate) fn open(&self) -> Option<Incarnation> {
        self.queue.lock().open
    }

    pub(crate) fn hear(&self, input: health::Input, now: Duration) {
        self.health.lock().step(input, now);
    }

    pub(crate) fn verdict(&self, now: Duration) -> Verdict {
        let mut h = self.health.lock();
        h.step(health::Input::Unacknowledged(self.unacked.load(Ordering::Relaxed)), now);
        h.verdict(now)
    }

    fn batch(&self) -> Vec<WireAdd> {
        let mut q = self.queue.lock();
        let mut bytes = 0;
        let n = q
            .adds
            .iter()
            .take_while(|a| {
                bytes += a.entry.len();
                bytes <= BATCH_BYTES
            })
            .count()
            .max(1)
            .min(q.adds.len());
        q.adds.drain(..n).collect()
    }

    /// The oldest add without an answer, when it is older than `timeout`: to be sent again, not a verdict.
    pub(crate) fn overdue(&self, now: Duration, timeout: Duration) -> Option<Sent> {
        let mut q = self.queue.lock();
        let front = (*q.sent.front()?)?;
        // While everything waits the disk is slow; only an add that others have overtaken was forgotten.
        let overtaken = q.sent.iter().any(Option::is_none);
        if !overtaken || now.saturating_sub(front.at) < timeout {
            return None;
        }
        let id = q.first;
        q.take(id)
    }
}

/// Keeps a stream open while the table knows the bookie.
pub(crate) async fn run(shared: Weak<Shared>, link: Arc<Link>, stop: CancellationToken) {
    let mut backoff = FIRST_BACKOFF;
    loop {
        let Some(s) = shared.upgrade() else { return };
        let mut table = s.meta.bookies();
        table.mark_unchanged();
        let target = s.target(link.bookie);
        let timeout = s.config.add_timeout;
        let transport = s.transport.clone();
        drop(s);
        let opened = async {
            match &target {
                Some(t) => tokio::time::timeout(timeout, transport.open_adds(t.clone()))
                    .await
                    .unwrap_or(Err(crate::transport::NoStream(Unknown::TimedOut))),
                None => Err(crate::transport::NoStream(Unknown::Closed)),
            }
        };
        let opened = tokio::select! {
            o = opened => o,
            () = stop.cancelled() => return,
        };
        let (wait, why) = match (opened, target) {
            (Ok(stream), Some(target)) => {
                serve(&shared, &link, stream, &target, &mut table, &stop).await;
                backoff = FIRST_BACKOFF;
                (FIRST_BACKOFF, health::Input::Disconnected)
            }
            (Err(e), _) if e.0 == Unknown::WrongIdentity => (backoff, health::Input::WrongIdentity),
            _ => (backoff, health::Input::Disconnected),
        };
        let Some(s) = shared.upgrade() else { return };
        let now = s.now();
        drop(s);
        link.hear(why, now);
        tokio::select! {
            () = tokio::time::sleep(wait) => backoff = (backoff * 2).min(LAST_BACKOFF),
            r = table.changed() => if r.is_err() { tokio::time::sleep(backoff).await },
            () = stop.cancelled() => return,
        }
    }
}

async fn serve(
    shared: &Weak<Shared>,
    link: &Arc<Link>,
    stream: AddStream,
    target: &Target,
    table: &mut watch::Receiver<Arc<BookieTable>>,
    stop: &CancellationToken,
) {
    let AddStream { incarnation, adds, acks } = stream;
    {
        let Some(s) = shared.upgrade() else { return };
        link.queue.lock().open = Some(incarnation);
        link.hear(health::Input::Connected(incarnation), s.now());
        for w in s.writers() {
            // Down first: what an earlier stream carried is void, also when the process is the same.
            w.step(Input::BookieDown { bookie: link.bookie });
            w.step(Input::BookieUp { bookie: link.bookie, incarnation });
        }
    }
    tokio::select! {
        () = send(link, adds) => {}
        () = receive(shared, link, acks) => {}
        () = moved(link, target, table) => {}
        () = stop.cancelled() => {}
    }
    {
        let mut q = link.queue.lock();
        q.open = None;
        q.adds.clear();
        // Answers from a closed connection are dropped: ids are never used twice.
        q.first += q.sent.len() as u64;
        q.sent.clear();
    }
    if let Some(s) = shared.upgrade() {
        for w in s.writers() {
            w.step(Input::BookieDown { bookie: link.bookie });
        }
    }
}

/// Returns when the table names another process or address.
async fn moved(link: &Link, target: &Target, table: &mut watch::Receiver<Arc<BookieTable>>) {
    loop {
        if table.changed().await.is_err() {
            return std::future::pending().await;
        }
        let t = table.borrow_and_update().clone();
        match t.get(link.bookie) {
            Some(b) if b.incarnation == target.incarnation && b.endpoint == target.endpoint => {}
            // A bookie between two sessions: its stream tells more than the table.
            None => {}
            Some(_) => return,
        }
    }
}

async fn send(link: &Link, adds: mpsc::Sender<Vec<WireAdd>>) {
    loop {
        let woken = link.wake.notified();
        // Room first, then the batch: what waits meanwhile shares the message.
        let Ok(room) = adds.reserve().await else { return };
        let batch = link.batch();
        if batch.is_empty() {
            drop(room);
            tokio::select! {
                () = woken => {}
                () = adds.closed() => return,
            }
        } else {
            room.send(batch);
        }
    }
}

async fn receive(shared: &Weak<Shared>, link: &Link, mut acks: BoxStream<'static, Vec<WireAck>>) {
    let mut batch: Vec<(Sent, AddAnswer)> = Vec::new();
    while let Some(mut message) = acks.next().await {
        let Some(s) = shared.upgrade() else { return };
        let now = s.now();
        batch.clear();
        {
            let mut q = link.queue.lock();
            batch.extend(message.drain(..).filter_map(|a| q.take(a.request_id).map(|s| (s, a.answer))));
        }
        // One visit per ledger and message.
        batch.sort_by_key(|(s, _)| (s.ledger, s.entry));
        for group in batch.chunk_by(|a, b| a.0.ledger == b.0.ledger) {
            if let Some(w) = s.writer(group[0].0.ledger) {
                deliver(&w, link, group);
            }
        }
        if batch.iter().any(|(_, a)| *a == AddAnswer::Ok) {
            link.hear(health::Input::Accepted, now);
        }
        for (_, a) in &batch {
            match a {
                AddAnswer::Overloaded { retry_after } => {
                    link.hear(health::Input::Overloaded(*retry_after), now);
                }
                AddAnswer::Unknown(Unknown::ReadOnly) => {
                    link.hear(health::Input::ReadOnly, now);
                    s.judge.notify_one();
                }
                _ => {}
            }
        }
    }
}

fn deliver(w: &Arc<WriterShared>, link: &Link, group: &[(Sent, AddAnswer)]) {
    w.steps(group.iter().map(|(s, answer)| Input::Answer {
        index: s.index,
        bookie: link.bookie,
        attempt: s.attempt,
        entry: s.entry,
        answer: *answer,
    }));
}
