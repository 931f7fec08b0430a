//! `ForceCloseLedger`.

use std::sync::Arc;

use tidemill_proto::v1;
use tidemill_types::ErrorCode;

use crate::{core::Core, deadline::Deadline, fault::Fault};

pub(super) async fn force_close(
    _core: &Arc<Core>,
    request: v1::ForceCloseLedgerRequest,
    _deadline: Deadline,
) -> Result<v1::ForceCloseLedgerResponse, Fault> {
    let what = format!("force-close ledger {}", request.ledger);
    Err(Fault::new(ErrorCode::Unsupported, format!("{what}: this version does not close ledgers by force")))
}
