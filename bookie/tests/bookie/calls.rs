//! Calls as a broker makes them.

use std::collections::HashMap;

use bytes::Bytes;
use tidemill_proto::bookie::{
    AddEntry, AddRequest, AddResponse, Code, FenceRequest, Identity, ListLedgersRequest, ReadRequest,
    ReadResult,
};
use tidemill_types::{Entry, EntryId, LedgerId};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::{shelf::Bookie, wait::soon};

/// An entry with this body.
pub(crate) fn entry(ledger: LedgerId, id: i64, body: &[u8]) -> Bytes {
    let e = Entry::encode(ledger, EntryId(id), EntryId(id - 1), 0, b"env", &[Bytes::copy_from_slice(body)]);
    e.unwrap().bytes().clone()
}

/// An open add stream.
pub(crate) struct Adds {
    tx: mpsc::Sender<AddRequest>,
    rx: Streaming<AddResponse>,
    next: u64,
    /// Who answered.
    pub(crate) hello: Identity,
}

impl Adds {
    /// Opens one, meaning `identity`.
    pub(crate) async fn open(bookie: &Bookie, identity: Identity) -> Self {
        let (tx, out) = mpsc::channel(64);
        tx.send(AddRequest { hello: Some(identity), adds: vec![] }).await.unwrap();
        let mut rx = bookie.data.clone().add(ReceiverStream::new(out)).await.unwrap().into_inner();
        let first = soon("hello", rx.message()).await.unwrap().unwrap();
        Self { tx, rx, next: 1, hello: first.hello.unwrap() }
    }

    /// Opens one to the bookie that is there.
    pub(crate) async fn to(bookie: &Bookie) -> Self {
        Self::open(bookie, bookie.identity().await).await
    }

    /// Sends entries in one message; answers their request ids.
    pub(crate) async fn send(&mut self, entries: Vec<(Bytes, bool)>) -> Vec<u64> {
        let first = self.next;
        self.next += entries.len() as u64;
        let ids: Vec<u64> = (first..self.next).collect();
        let adds = entries
            .into_iter()
            .zip(&ids)
            .map(|((entry, recovery), &request_id)| AddEntry { request_id, entry, recovery })
            .collect();
        self.tx.send(AddRequest { hello: None, adds }).await.unwrap();
        ids
    }

    /// Waits for the answers to these.
    pub(crate) async fn answers(&mut self, ids: &[u64]) -> Vec<Code> {
        let mut got = HashMap::new();
        while ids.iter().any(|i| !got.contains_key(i)) {
            let message = soon("acks", self.rx.message()).await.unwrap().expect("the stream goes on");
            for r in message.results {
                assert!(got.insert(r.request_id, r.code()).is_none(), "{} answered twice", r.request_id);
                assert_eq!(r.code() == Code::Overloaded, r.retry_after_ms > 0);
            }
        }
        ids.iter().map(|i| got[i]).collect()
    }

    /// One add of the ledger's writer.
    pub(crate) async fn add(&mut self, ledger: LedgerId, id: i64, body: &[u8]) -> Code {
        let ids = self.send(vec![(entry(ledger, id, body), false)]).await;
        self.answers(&ids).await[0]
    }

    /// One recovery add.
    pub(crate) async fn recovery_add(&mut self, ledger: LedgerId, id: i64, body: &[u8]) -> Code {
        let ids = self.send(vec![(entry(ledger, id, body), true)]).await;
        self.answers(&ids).await[0]
    }

    /// What is left to come until the stream ends in peace.
    pub(crate) async fn rest(mut self) -> Vec<(u64, Code)> {
        let mut rest = Vec::new();
        while let Some(m) = soon("the end of the stream", self.rx.message()).await.unwrap() {
            rest.extend(m.results.iter().map(|r| (r.request_id, r.code())));
        }
        rest
    }

    /// The same, when the connection may break.
    pub(crate) async fn rest_or_error(mut self) -> Vec<(u64, Code)> {
        let mut rest = Vec::new();
        while let Ok(Some(m)) = soon("the end of the stream", self.rx.message()).await {
            rest.extend(m.results.iter().map(|r| (r.request_id, r.code())));
        }
        rest
    }
}

/// A read with these fields.
pub(crate) async fn read(bookie: &Bookie, request: ReadRequest) -> Vec<ReadResult> {
    let request = ReadRequest { identity: Some(bookie.identity().await), ..request };
    let mut rx = bookie.data.clone().read(request).await.unwrap().into_inner();
    let mut all = Vec::new();
    while let Some(m) = soon("a read's answer", rx.message()).await.unwrap() {
        all.extend(m.results);
    }
    all
}

/// Codes of a plain read of this range.
pub(crate) async fn read_codes(bookie: &Bookie, ledger: LedgerId, first: i64, last: i64) -> Vec<Code> {
    let request = ReadRequest { ledger: ledger.0, first, last, ..Default::default() };
    read(bookie, request).await.iter().map(ReadResult::code).collect()
}

/// Fences one ledger.
pub(crate) async fn fence(bookie: &Bookie, ledger: LedgerId) -> (Code, i64) {
    let request = FenceRequest { identity: Some(bookie.identity().await), ledgers: vec![ledger.0] };
    let r =
        soon("a fence", bookie.control.clone().fence(request)).await.unwrap().into_inner().results.remove(0);
    (r.code(), r.lac)
}

/// Ids of the ledgers held.
pub(crate) async fn held(bookie: &Bookie) -> Vec<u64> {
    let request = ListLedgersRequest { identity: Some(bookie.identity().await), after: 0, limit: 10_000 };
    let r = bookie.control.clone().list_ledgers(request).await.unwrap().into_inner();
    assert_eq!(r.code(), Code::Ok);
    r.ledgers.iter().map(|l| l.ledger).collect()
}
