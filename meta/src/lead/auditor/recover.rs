//! Recovery of a ledger whose owner does not roll it (R22), or has none.

use tidemill_ledger::{LedgerClient, Recovered, RecoveredEnd};
use tidemill_partition_log::envelope::Envelope;
use tidemill_types::{
    EntryId, LedgerId, Offset,
    meta::{CloseLedger, Command},
};

use super::access::Access;

/// Fences the ledger, finds its end and closes it.
///
/// # Errors
/// Why it is not closed; another try is harmless.
pub(super) async fn recover(
    ledgers: &LedgerClient,
    access: &Access,
    ledger: LedgerId,
    base: Offset,
) -> Result<(), String> {
    let end = match ledgers.recover(ledger).await.map_err(|e| e.to_string())? {
        Recovered::Closed(_) => return Ok(()),
        Recovered::Decided(end) => end,
    };
    let records = records(&end, base).await?;
    let close = CloseLedger { records, ..end.close };
    match access.command(Command::Close { close, epoch: None }).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(rejection)) => Err(rejection.to_string()),
        Err(e) => Err(e.to_string()),
    }
}

/// Records up to the end: the last envelope says where they end, whatever its kind.
async fn records(end: &RecoveredEnd, base: Offset) -> Result<u64, String> {
    let last = end.close.last_entry;
    if last == EntryId::NONE {
        return Ok(0);
    }
    let envelope = match &end.last {
        Some(entry) => entry.envelope(),
        None => end.reader.read_head(last).await.map_err(|e| format!("last entry: {e}"))?.envelope,
    };
    let envelope = Envelope::decode(&envelope).map_err(|e| format!("last entry: {e}"))?;
    u64::try_from(envelope.next_offset().0 - base.0)
        .map_err(|_| format!("the last entry ends below base offset {base}"))
}
