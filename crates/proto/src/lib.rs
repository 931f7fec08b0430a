//! gRPC messages, clients and servers, made from `proto/`, and the conversions between them and the types of
//! `tidemill-types`.

pub mod convert;
pub mod direct;

/// Encoded `FileDescriptorSet` of all services, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptor.bin"));

macro_rules! package {
    ($(#[$doc:meta])* $name:ident, $package:literal) => {
        $(#[$doc])*
        #[expect(missing_docs, reason = "generated: the comments stand in the .proto files")]
        #[allow(clippy::all, clippy::pedantic, unreachable_pub, unused_qualifications, reason = "generated")]
        pub mod $name {
            tonic::include_proto!($package);
        }
    };
}

package!(
    /// Client-facing services.
    v1, "tidemill.v1"
);
package!(
    /// The bookie's services.
    bookie, "tidemill.bookie.v1"
);
package!(
    /// The metadata quorum's service.
    meta, "tidemill.meta.v1"
);
package!(
    /// Between members of the quorum.
    raft, "tidemill.raft.v1"
);
