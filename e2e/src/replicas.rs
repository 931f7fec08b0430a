//! Every copy of every closed ledger, read from every bookie that the metadata names for it, and compared byte by byte.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use tidemill_client::{Client, v1};
use tidemill_proto::{
    bookie::{Code, ReadRequest, bookie_data_client::BookieDataClient},
    convert,
};
use tidemill_runtime::net;
use tidemill_types::{ClusterId, Entry, Incarnation, MemberId};
use tonic::transport::{Channel, Endpoint};

/// What was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Closed ledgers.
    pub ledgers: u64,
    /// Ledgers that are not closed: nothing is said about them.
    pub open: u64,
    /// Entries.
    pub entries: u64,
    /// Copies of them.
    pub copies: u64,
    /// Bytes of the copies.
    pub bytes: u64,
}

/// Entries of one read.
const RUN: i64 = 1_000;

/// Reads all replicas of every closed ledger and compares them.
///
/// # Errors
/// A copy is missing, damaged, or differs from the first one; a bookie does not answer; a closed ledger has fewer copies
/// than `copies`.
pub async fn compare_replicas(client: &Client, copies: usize) -> Result<Compared> {
    let status = client.admin().cluster_status().await?;
    let mut bookies = Bookies::new(&status)?;
    let mut done = Compared::default();
    let mut after = 0;
    loop {
        let request = v1::ListLedgersRequest { after, limit: 1_000, ..v1::ListLedgersRequest::default() };
        let page = client.admin().list_ledgers(request).await?.ledgers;
        for ledger in &page {
            if ledger.state == "closed" {
                compare(&mut bookies, ledger, copies, &mut done).await.with_context(|| {
                    format!("ledger {} of {}/{}", ledger.id, ledger.topic, ledger.partition)
                })?;
                done.ledgers += 1;
            } else {
                done.open += 1;
            }
        }
        match page.last() {
            Some(last) if page.len() == 1_000 => after = last.id,
            _ => return Ok(done),
        }
    }
}

async fn compare(bookies: &mut Bookies, l: &v1::Ledger, copies: usize, done: &mut Compared) -> Result<()> {
    let end = l.last_entry.context("closed without an end")?;
    for (i, f) in l.fragments.iter().enumerate() {
        ensure!(f.ensemble.len() >= copies, "{} copies, {copies} wanted", f.ensemble.len());
        ensure!(f.under.is_empty(), "entries {:?} are said to have fewer copies", f.under);
        let last = l.fragments.get(i + 1).map_or(end, |next| end.min(next.first_entry - 1));
        let mut first = f.first_entry;
        while first <= last {
            let upto = last.min(first + RUN - 1);
            let mut all: Vec<(&str, Vec<Bytes>)> = Vec::new();
            for bookie in &f.ensemble {
                let read = bookies.read(bookie, l.id, first, upto).await;
                all.push((bookie, read.with_context(|| format!("from bookie {bookie}"))?));
            }
            let (one, reference) = all.first().context("no member")?;
            for (bookie, entries) in &all {
                for (n, (a, b)) in (first..).zip(reference.iter().zip(entries)) {
                    ensure!(a == b, "entry {n} of bookie {bookie} differs from the one of {one}");
                    done.copies += 1;
                    done.bytes += b.len() as u64;
                }
            }
            done.entries += reference.len() as u64;
            first = upto + 1;
        }
    }
    Ok(())
}

/// Connections to bookies by uuid.
struct Bookies {
    cluster: ClusterId,
    addresses: BTreeMap<String, String>,
    open: BTreeMap<String, BookieDataClient<Channel>>,
}

impl Bookies {
    fn new(status: &v1::ClusterStatusResponse) -> Result<Self> {
        let cluster = ClusterId(status.cluster.parse()?);
        let bookies = status.members.iter().filter(|m| m.role == "bookie");
        let addresses = bookies.map(|m| (m.id.clone(), m.address.clone())).collect();
        Ok(Self { cluster, addresses, open: BTreeMap::new() })
    }

    /// Exactly the entries `first..=last`, each with a valid digest.
    async fn read(&mut self, bookie: &str, ledger: u64, first: i64, last: i64) -> Result<Vec<Bytes>> {
        let id = MemberId(bookie.parse()?);
        let mut client = match self.open.get(bookie) {
            Some(c) => c.clone(),
            None => {
                let address = self.addresses.get(bookie).context("not in the table of members")?;
                let channel = net::connect(&Endpoint::from_shared(format!("http://{address}"))?).await?;
                let c = BookieDataClient::new(channel).max_decoding_message_size(80 << 20);
                self.open.insert(bookie.to_owned(), c.clone());
                c
            }
        };
        let mut out: Vec<Bytes> = Vec::new();
        // The byte limit may end an answer early.
        loop {
            let next = first + i64::try_from(out.len())?;
            if next > last {
                return Ok(out);
            }
            let request = ReadRequest {
                identity: Some(convert::identity(self.cluster, id, Incarnation(0))),
                ledger,
                first: next,
                last,
                max_bytes: 16 << 20,
                header_only: false,
                fence: false,
            };
            let mut answers = client.read(request).await?.into_inner();
            let before = out.len();
            while let Some(message) = answers.message().await? {
                for r in message.results {
                    let code = Code::try_from(r.code)?;
                    ensure!(code == Code::Ok, "entry {}: {code:?}", r.entry);
                    let entry = Entry::decode(r.bytes).with_context(|| format!("entry {}", r.entry))?;
                    ensure!(entry.header().ledger.0 == ledger, "entry {} of another ledger", r.entry);
                    ensure!(entry.header().entry.0 == r.entry, "another entry than {}", r.entry);
                    out.push(entry.bytes().clone());
                }
            }
            if out.len() == before {
                bail!("entry {next}: no answer");
            }
        }
    }
}
