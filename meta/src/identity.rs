//! Who this volume is: `identity`, written once, and the lock on the folder.
//!
//! | offset | bytes | content |
//! | --- | --- | --- |
//! | 0 | 8 | magic `TMMDIDEN` |
//! | 8 | 2 | version, 1 |
//! | 10 | 1 | 1 when a cluster id follows, else 0 |
//! | 11 | 5 | zero |
//! | 16 | 16 | uuid of the volume |
//! | 32 | 16 | uuid of the cluster, zero when none |
//! | 48 | 4 | CRC-32C of bytes 0..48 |

use std::{io, path::Path};

use tidemill_runtime::io::{Disk, Lock, read_all, write_durably};
use tidemill_types::{ClusterId, MemberId, entry::crc32c};
use uuid::Uuid;

use crate::{MetaStartError, types::NodeId};

const MAGIC: &[u8; 8] = b"TMMDIDEN";
const VERSION: u16 = 1;
const LEN: usize = 52;

/// The identity of a member's volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) member: MemberId,
    pub(crate) cluster: Option<ClusterId>,
}

impl Identity {
    /// The raft node: an emptied disk draws another uuid, so it is another node and never votes under the old id.
    pub(crate) fn node(&self) -> NodeId {
        let (high, low) = self.member.0.as_u64_pair();
        // Zero stands for "unknown" in messages.
        (high ^ low.rotate_left(32)).max(1)
    }

    fn encode(&self) -> [u8; LEN] {
        let mut b = [0; LEN];
        b[..8].copy_from_slice(MAGIC);
        b[8..10].copy_from_slice(&VERSION.to_le_bytes());
        b[10] = u8::from(self.cluster.is_some());
        b[16..32].copy_from_slice(self.member.0.as_bytes());
        if let Some(c) = self.cluster {
            b[32..48].copy_from_slice(c.0.as_bytes());
        }
        let crc = crc32c(&[&b[..48]]);
        b[48..].copy_from_slice(&crc.to_le_bytes());
        b
    }

    fn decode(b: &[u8]) -> Result<Self, String> {
        if b.len() != LEN || &b[..8] != MAGIC {
            return Err("not an identity file".to_owned());
        }
        if crc32c(&[&b[..48]]).to_le_bytes() != b[48..] {
            return Err("its checksum does not match".to_owned());
        }
        let version = u16::from_le_bytes([b[8], b[9]]);
        if version != VERSION {
            return Err(format!("version {version}, only {VERSION} is known"));
        }
        let id = |range: std::ops::Range<usize>| Uuid::from_slice(&b[range]).map_err(|e| e.to_string());
        let cluster = if b[10] == 1 { Some(ClusterId(id(32..48)?)) } else { None };
        Ok(Self { member: MemberId(id(16..32)?), cluster })
    }
}

/// The member's folder, locked.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) identity: Identity,
    _lock: Box<dyn Lock>,
}

impl Home {
    /// Locks the folder and reads who it is, or makes it somebody when it is empty.
    pub(crate) fn open(disk: &dyn Disk, dir: &Path) -> Result<Self, MetaStartError> {
        disk.create_dir(dir).map_err(|e| MetaStartError::io("creating", dir, e))?;
        let lock_path = dir.join("LOCK");
        let lock = disk.lock(&lock_path).map_err(|e| match e.kind() {
            io::ErrorKind::WouldBlock => MetaStartError::Locked { dir: dir.to_path_buf() },
            _ => MetaStartError::io("locking", lock_path, e),
        })?;
        let path = dir.join("identity");
        let found = read_all(disk, &path, LEN as u64).map_err(|e| MetaStartError::io("reading", &path, e))?;
        let identity = match found {
            Some(bytes) => Identity::decode(&bytes).map_err(|why| MetaStartError::Corrupt {
                path,
                offset: 0,
                why,
                dir: dir.to_path_buf(),
            })?,
            None => {
                Self::refuse_leftovers(disk, dir, &path)?;
                let new = Identity { member: MemberId(Uuid::new_v4()), cluster: None };
                write_durably(disk, &path, &new.encode())
                    .map_err(|e| MetaStartError::io("writing", path, e))?;
                new
            }
        };
        Ok(Self { identity, _lock: lock })
    }

    /// A log without an identity is a folder that lost something: making a new identity would vote with an old log.
    fn refuse_leftovers(disk: &dyn Disk, dir: &Path, path: &Path) -> Result<(), MetaStartError> {
        let items = disk.list(dir).map_err(|e| MetaStartError::io("listing", dir, e))?;
        match items.iter().find(|i| i.name == "log" || i.name == "snapshot" || i.name == "vote") {
            None => Ok(()),
            Some(item) => Err(MetaStartError::Corrupt {
                path: path.to_path_buf(),
                offset: 0,
                why: format!("it is missing, but {} is there", item.name),
                dir: dir.to_path_buf(),
            }),
        }
    }
}

/// Notes the cluster that this member belongs to from now on.
pub(crate) fn join(disk: &dyn Disk, dir: &Path, member: MemberId, cluster: ClusterId) -> io::Result<()> {
    write_durably(disk, &dir.join("identity"), &Identity { member, cluster: Some(cluster) }.encode())
}

#[cfg(test)]
mod tests {
    use tidemill_runtime::io::SimDisk;

    use super::*;

    #[test]
    fn an_identity_stays_and_is_locked() {
        let disk = SimDisk::new(1, 1 << 20);
        let dir = Path::new("/m");
        let home = Home::open(&disk, dir).unwrap();
        let again = Home::open(&disk, dir).unwrap_err();
        assert!(matches!(again, MetaStartError::Locked { .. }), "{again}");
        let cluster = ClusterId(Uuid::from_u128(7));
        join(&disk, dir, home.identity.member, cluster).unwrap();
        let (member, node) = (home.identity.member, home.identity.node());
        drop(home);
        let home = Home::open(&disk, dir).unwrap();
        assert_eq!(home.identity, Identity { member, cluster: Some(cluster) });
        assert_eq!(home.identity.node(), node);
        drop(home);
        disk.flip_bit(&dir.join("identity"), 20 * 8).unwrap();
        let e = Home::open(&disk, dir).unwrap_err();
        assert!(e.to_string().contains("checksum"), "{e}");
    }

    #[test]
    fn a_log_without_identity_is_refused() {
        let disk = SimDisk::new(1, 1 << 20);
        let dir = Path::new("/m");
        disk.create_dir(&dir.join("log")).unwrap();
        disk.create(&dir.join("vote"), 0).unwrap();
        assert!(matches!(Home::open(&disk, dir), Err(MetaStartError::Corrupt { .. })));
    }
}
