//! Answers of a broker.

use tidemill_proto::v1;
use tidemill_types::ErrorCode;

use super::Driver;
use crate::ClientError;

impl Driver {
    pub(super) fn answers(&mut self, at: usize, generation: u64, results: Vec<v1::ProduceResult>) {
        for r in results {
            let link = &mut self.links[at];
            // Also while it goes on: an answer can make the stream be cut.
            if link.generation != generation {
                return;
            }
            let Some(frame) = link.take(r.correlation) else {
                tracing::warn!(address = %link.address, correlation = r.correlation, "answer to no frame");
                continue;
            };
            let result = self.read(frame.lane, &r);
            let todo = self.seats[frame.lane].lane.answer(frame.number, frame.bytes, result);
            self.act(frame.lane, &todo);
        }
        self.pump(at);
    }

    /// What an answer says, and what it teaches about the owner.
    fn read(&mut self, lane: usize, r: &v1::ProduceResult) -> Result<(Option<i64>, i64), ClientError> {
        let Some(e) = &r.error else {
            return Ok(((r.base_offset >= 0).then_some(r.base_offset), r.append_time_ms));
        };
        let seat = &self.seats[lane];
        let p = seat.partition.clone();
        let error = ClientError::from_item(&format!("produce to {}/{}", p.topic, p.index), e);
        match error.code {
            // Written, only its place is forgotten.
            Some(ErrorCode::DuplicateSequence) => return Ok((None, r.append_time_ms)),
            Some(ErrorCode::NotOwner | ErrorCode::NoOwner | ErrorCode::StaleEpoch) => {
                let stale = self.generation_of(lane);
                let topology = &self.client.inner.topology;
                let seat = &mut self.seats[lane];
                seat.route = None;
                match &error.owner {
                    Some(h) => {
                        topology.hint(&p.topic, p.index, &h.address, h.epoch);
                        seat.stale = None;
                    }
                    None => seat.stale = stale,
                }
            }
            _ => {}
        }
        Err(error)
    }
}
