//! Where members are reached: what the membership says, unless an operator said otherwise (`ChangeMembers.readdress`).
//!
//! The override is local and durable, because it is needed most when the quorum cannot commit anything: when all addresses
//! changed at once. A message names the node that it is for and another node refuses it, so a wrong address costs time only.

use std::{collections::BTreeMap, io, path::PathBuf, sync::Arc};

use parking_lot::RwLock;
use tidemill_runtime::io::{Disk, read_all, write_durably};
use tonic::transport::{Channel, Endpoint};

use tidemill_runtime::{defaults, net};

use crate::{MetaStartError, config::is_address, types::NodeId};

/// Ceiling of the file of overrides.
const MAX_FILE: u64 = 64 << 10;
/// Overrides that are kept.
const MAX_OVERRIDES: usize = 64;

/// Addresses and connections, shared by all links.
#[derive(Clone, Debug)]
pub(crate) struct AddressBook {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    /// Per node: the membership's address that is wrong, and the right one. Once the membership has another one, that counts.
    overrides: RwLock<BTreeMap<NodeId, (String, String)>>,
    channels: RwLock<BTreeMap<String, Channel>>,
}

impl AddressBook {
    /// Reads the overrides: lines `node wrong right`, `-` for an address that the membership does not have.
    pub(crate) fn open(disk: Arc<dyn Disk>, dir: &std::path::Path) -> Result<Self, MetaStartError> {
        let path = dir.join("addresses");
        let bytes = read_all(&*disk, &path, MAX_FILE).map_err(|e| MetaStartError::io("reading", &path, e))?;
        let text = String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default();
        let mut overrides = BTreeMap::new();
        for line in text.lines() {
            let mut words = line.split(' ');
            let parsed =
                (|| Some((words.next()?.parse().ok()?, words.next()?.to_owned(), words.next()?.to_owned())))(
                );
            match parsed.filter(|(_, _, right)| is_address(right) && words.next().is_none()) {
                Some((node, wrong, right)) => {
                    overrides.insert(node, (wrong, right));
                }
                None => {
                    let why = format!("{line:?} is not a node and its addresses");
                    return Err(MetaStartError::Corrupt { path, offset: 0, why, dir: dir.to_path_buf() });
                }
            }
        }
        let inner = Inner { disk, path, overrides: RwLock::new(overrides), channels: RwLock::default() };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The address of a node that the membership puts at `known`.
    pub(crate) fn address(&self, node: NodeId, known: &str) -> String {
        match self.inner.overrides.read().get(&node) {
            Some((wrong, right)) if wrong == name(known) => right.clone(),
            _ => known.to_owned(),
        }
    }

    /// From now on this node, which the membership puts at `known`, is reached at `address`. Blocks on the disk.
    pub(crate) fn readdress(&self, node: NodeId, known: &str, address: &str) -> io::Result<()> {
        if known == address {
            return Ok(());
        }
        let mut overrides = self.inner.overrides.write();
        let new_one = (name(known).to_owned(), address.to_owned());
        if overrides.get(&node) == Some(&new_one) {
            return Ok(());
        }
        if overrides.len() >= MAX_OVERRIDES && !overrides.contains_key(&node) {
            return Err(io::Error::other(format!("there are {MAX_OVERRIDES} overridden addresses")));
        }
        let mut new = overrides.clone();
        new.insert(node, new_one);
        let text: String = new.iter().map(|(n, (wrong, right))| format!("{n} {wrong} {right}\n")).collect();
        write_durably(&*self.inner.disk, &self.inner.path, text.as_bytes())?;
        *overrides = new;
        Ok(())
    }

    /// A channel to an address; connects when it is used.
    pub(crate) fn channel(&self, address: &str) -> Result<Channel, String> {
        if let Some(c) = self.inner.channels.read().get(address) {
            return Ok(c.clone());
        }
        let endpoint = Endpoint::from_shared(format!("http://{address}"))
            .map_err(|e| format!("{address}: {e}"))?
            .connect_timeout(defaults::KEEP_ALIVE)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(defaults::KEEP_ALIVE)
            .keep_alive_timeout(defaults::KEEP_ALIVE)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(defaults::STREAM_WINDOW)
            .initial_connection_window_size(defaults::CONNECTION_WINDOW);
        let channel = net::lazy(&endpoint);
        self.inner.channels.write().insert(address.to_owned(), channel.clone());
        Ok(channel)
    }

    /// Gives a connection up after an error: the next use connects anew.
    pub(crate) fn failed(&self, address: &str) {
        self.inner.channels.write().remove(address);
    }
}

/// An address as the file has it.
fn name(known: &str) -> &str {
    if known.is_empty() { "-" } else { known }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tidemill_runtime::io::SimDisk;

    use super::*;

    #[test]
    fn an_override_is_kept() {
        let disk = Arc::new(SimDisk::new(1, 1 << 20));
        disk.create_dir(Path::new("/m")).unwrap();
        let book = AddressBook::open(disk.clone(), Path::new("/m")).unwrap();
        assert_eq!(book.address(7, "a:1"), "a:1");
        book.readdress(7, "a:1", "b:2").unwrap();
        let book = AddressBook::open(disk.clone(), Path::new("/m")).unwrap();
        assert_eq!(book.address(7, "a:1"), "b:2");
        assert_eq!(book.address(7, "c:3"), "c:3", "the membership knows better by now");
        assert_eq!(book.address(8, "a:1"), "a:1");
    }
}
