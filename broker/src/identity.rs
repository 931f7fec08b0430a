//! Who a broker is. It has no disk, so its identity is derived: the same name in the same cluster is the same member.

use sha2::{Digest, Sha256};
use tidemill_types::{ClusterId, MemberId};
use uuid::Builder;

/// The member id of the broker `name`: the first 16 bytes of SHA-256 over `tidemill broker`, a zero byte, the cluster id and
/// the name, marked as a version 8 uuid (RFC 9562).
///
/// A restarted broker therefore has its old id, gets a new session, and owns nothing until it acquires again.
#[must_use]
pub fn member_id(cluster: ClusterId, name: &str) -> MemberId {
    let mut hash = Sha256::new();
    hash.update(b"tidemill broker\0");
    hash.update(cluster.0.as_bytes());
    hash.update(name.as_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    MemberId(Builder::from_custom_bytes(bytes).into_uuid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_cluster_is_one_member_for_ever() {
        let cluster: ClusterId = "6ba7b810-9dad-41d1-80b4-00c04fd430c8".parse().unwrap();
        let other: ClusterId = "6ba7b811-9dad-41d1-80b4-00c04fd430c8".parse().unwrap();
        let id = member_id(cluster, "broker-0");
        assert_eq!(id, member_id(cluster, "broker-0"));
        assert_ne!(id, member_id(cluster, "broker-1"));
        assert_ne!(id, member_id(other, "broker-0"));
        assert_eq!(id.0.get_version_num(), 8);
        // Pinned: another value would make every broker a new member after an upgrade.
        assert_eq!(id.to_string(), "093c0681-274e-85d9-9219-c19cb8447d00");
    }
}
