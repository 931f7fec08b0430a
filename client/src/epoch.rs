//! The operator epoch that calls carry.

use tonic::{Request, metadata::MetadataValue};

use crate::call::Call;

/// gRPC metadata that carries the operator epoch, decimal.
pub const OPERATOR_EPOCH: &str = "tidemill-operator-epoch";

/// An operator epoch, if the caller has one: a call that carries it is refused with `STALE_OPERATOR_EPOCH` once another operator
/// has acquired a later one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Epoch(pub(crate) Option<u64>);

impl Epoch {
    /// A try of a call, under the epoch.
    pub(crate) fn request<T>(self, call: &Call, body: T) -> Request<T> {
        self.mark(call.request(body))
    }

    /// The request under the epoch.
    pub(crate) fn mark<T>(self, mut request: Request<T>) -> Request<T> {
        if let Some(epoch) = self.0 {
            request.metadata_mut().insert(OPERATOR_EPOCH, MetadataValue::from(epoch));
        }
        request
    }
}
