//! Producer ids: ranges of the quorum, handed out one by one.

use tidemill_meta_client::MetaClient;
use tidemill_proto::v1;
use tidemill_types::meta::{Command, Reply};

use crate::fault::{Fault, rejected};

/// Ids of one range: one command serves so many producers. Ids of a range that a broker did not hand out are lost.
const RANGE: u32 = 1_000;

/// The rest of the current range.
#[derive(Debug, Default)]
pub(crate) struct Ids(tokio::sync::Mutex<std::ops::Range<i64>>);

impl Ids {
    /// An id that nobody had before.
    ///
    /// # Errors
    /// The quorum does not answer. When the outcome is unknown a range is lost, nothing else.
    pub(crate) async fn next(&self, client: &MetaClient) -> Result<i64, Fault> {
        let mut range = self.0.lock().await;
        if let Some(id) = range.next() {
            return Ok(id);
        }
        let what = "allocate producer ids";
        let reply = client
            .propose(Command::AllocateProducerIds { count: RANGE })
            .await
            .map_err(|e| Fault::new(e.code(), format!("{what}: {e}")))?
            .map_err(|r| rejected(what, &r))?;
        let Reply::ProducerIds { first, count } = reply else {
            return Err(Fault::internal(what, "a reply of another kind"));
        };
        *range = first..first.saturating_add(count.into());
        range.next().ok_or_else(|| Fault::internal(what, "an empty range"))
    }
}

/// The last epoch of an id: after it a new id begins (2.1.5). The one above is never handed out.
const LAST_EPOCH: i32 = 32_766;

/// The next epoch of the named id; `None` when a new id is wanted, or needed because its epochs are used up.
///
/// # Errors
/// `INVALID_ARGUMENT`.
pub(super) fn next_epoch(r: &v1::InitProducerRequest) -> Result<Option<(i64, i32)>, Fault> {
    let Some(id) = r.producer_id else {
        if r.epoch != 0 {
            return Err(Fault::invalid("epoch", r.epoch, "0 without a producer id"));
        }
        return Ok(None);
    };
    if id < 0 {
        return Err(Fault::invalid(
            "producer_id",
            id,
            "0 or above, as InitProducer gave it; absent for a new one",
        ));
    }
    if !(0..=LAST_EPOCH).contains(&r.epoch) {
        return Err(Fault::invalid(
            "epoch",
            r.epoch,
            &format!("0 to {LAST_EPOCH}, the epoch that was used last"),
        ));
    }
    Ok((r.epoch < LAST_EPOCH).then_some((id, r.epoch + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(producer_id: Option<i64>, epoch: i32) -> Result<Option<(i64, i32)>, Fault> {
        next_epoch(&v1::InitProducerRequest { producer_id, epoch })
    }

    #[test]
    fn epochs_go_up_and_at_their_end_a_new_id_begins() {
        assert_eq!(asked(None, 0), Ok(None));
        assert_eq!(asked(Some(7), 0), Ok(Some((7, 1))));
        assert_eq!(asked(Some(7), 32_765), Ok(Some((7, 32_766))));
        assert_eq!(asked(Some(7), 32_766), Ok(None), "a new id, never 32 767 (KAFKA-19367)");
        for (id, epoch) in [(Some(-1), 0), (Some(7), -1), (Some(7), 32_767), (None, 1)] {
            assert!(asked(id, epoch).is_err(), "{id:?} {epoch}");
        }
    }
}
