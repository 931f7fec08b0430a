//! Where members are reached: what the membership says, unless an operator said otherwise (`ChangeMembers.readdress`).
//!
//! The override is local and durable, because it is needed most when the quorum cannot commit anything: when all addresses
//! changed at once. A message names the node that it is for and another node refuses it, so a wrong address costs time only.

use std::{collections::BTreeMap, io, path::PathBuf, sync::Arc};

use parking_lot::RwLock;
use tidemill_runtime::io::{Disk, read_all, write_durably};
use tonic::transport::{Channel, Endpoint};

use tidemill_runtime::defaults;

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
    overrides: RwLock<BTreeMap<NodeId, String>>,
    channels: RwLock<BTreeMap<String, Channel>>,
}

impl AddressBook {
    /// Reads the overrides: lines `node address`.
    pub(crate) fn open(disk: Arc<dyn Disk>, dir: &std::path::Path) -> Result<Self, MetaStartError> {
        let path = dir.join("addresses");
        let bytes = read_all(&*disk, &path, MAX_FILE).map_err(|e| MetaStartError::io("reading", &path, e))?;
        let text = String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default();
        let mut overrides = BTreeMap::new();
        for line in text.lines() {
            let parsed = line.split_once(' ').and_then(|(n, a)| Some((n.parse().ok()?, a.to_owned())));
            match parsed.filter(|(_, a)| is_address(a)) {
                Some((node, address)) => {
                    overrides.insert(node, address);
                }
                None => {
                    let why = format!("{line:?} is not a node and its address");
                    return Err(MetaStartError::Corrupt { path, offset: 0, why, dir: dir.to_path_buf() });
                }
            }
        }
        let inner = Inner { disk, path, overrides: RwLock::new(overrides), channels: RwLock::default() };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The address of a node that the membership puts at `known`.
    pub(crate) fn address(&self, node: NodeId, known: &str) -> String {
        self.inner.overrides.read().get(&node).cloned().unwrap_or_else(|| known.to_owned())
    }

    /// From now on this node is reached here. Blocks on the disk.
    pub(crate) fn readdress(&self, node: NodeId, address: &str) -> io::Result<()> {
        let mut overrides = self.inner.overrides.write();
        if overrides.get(&node).is_some_and(|a| a == address) {
            return Ok(());
        }
        if overrides.len() >= MAX_OVERRIDES && !overrides.contains_key(&node) {
            return Err(io::Error::other(format!("there are {MAX_OVERRIDES} overridden addresses")));
        }
        let mut new = overrides.clone();
        new.insert(node, address.to_owned());
        let text: String = new.iter().map(|(n, a)| format!("{n} {a}\n")).collect();
        write_durably(&*self.inner.disk, &self.inner.path, text.as_bytes())?;
        *overrides = new;
        Ok(())
    }

    /// A channel to an address; connects when it is used.
    pub(crate) fn channel(&self, address: &str) -> Result<Channel, String> {
        if let Some(c) = self.inner.channels.read().get(address) {
            return Ok(c.clone());
        }
        let channel = Endpoint::from_shared(format!("http://{address}"))
            .map_err(|e| format!("{address}: {e}"))?
            .connect_timeout(defaults::KEEP_ALIVE)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(defaults::KEEP_ALIVE)
            .keep_alive_timeout(defaults::KEEP_ALIVE)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(defaults::STREAM_WINDOW)
            .initial_connection_window_size(defaults::CONNECTION_WINDOW)
            .connect_lazy();
        self.inner.channels.write().insert(address.to_owned(), channel.clone());
        Ok(channel)
    }

    /// Gives a connection up after an error: the next use connects anew.
    pub(crate) fn failed(&self, address: &str) {
        self.inner.channels.write().remove(address);
    }
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
        book.readdress(7, "b:2").unwrap();
        let book = AddressBook::open(disk.clone(), Path::new("/m")).unwrap();
        assert_eq!(book.address(7, "a:1"), "b:2");
        assert_eq!(book.address(8, "a:1"), "a:1");
    }
}
