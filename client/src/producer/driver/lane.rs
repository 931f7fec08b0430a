//! The undecided batches of one partition, in order: what may be sent, what an answer means, what a time-out means.
//! No I/O and no clock in here.

mod give_up;

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use tidemill_types::ErrorCode;
use tokio::time::Instant;

use super::verdict::{failure, says_not_written};
use crate::{
    ClientError,
    producer::{
        DeliveryError, NotDelivered,
        accumulator::{Body, Closed},
        delivery::Outcome,
        outcome::{Doubt, Fate},
    },
};

/// One batch.
#[derive(Debug)]
struct Item {
    batch: Closed,
    /// Which batch of the lane it is.
    ordinal: u64,
    deadline: Instant,
    /// On its way, unanswered.
    asked: bool,
    /// An earlier try ended without a definite answer.
    doubt: bool,
    decided: bool,
    tries: u32,
}

/// A batch that is decided: its outcome for the handles, and what it held.
#[derive(Debug)]
pub(super) struct Decided {
    pub(super) batch: Closed,
    pub(super) outcome: Outcome,
}

/// What an answer or a failure asks the driver to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Todo {
    /// The partition's producer id is spent: batches that it sealed fail so, later ones need a new id.
    pub(super) spent: Option<DeliveryError>,
    /// All is answered and something failed: look for the owner, wait, send again from the first.
    pub(super) again: bool,
    /// Another producer took the id over.
    pub(super) fenced: bool,
}

#[derive(Debug)]
pub(super) struct Lane {
    idempotent: bool,
    max_in_flight: usize,
    items: VecDeque<Item>,
    /// Batches that came so far.
    pushed: u64,
    /// Number of the first item.
    first: u64,
    /// Items before this one were sent in this try.
    next: usize,
    pub(super) unanswered: usize,
    pub(super) unanswered_bytes: u64,
    /// Something failed: nothing more is sent until all is answered.
    broken: bool,
    /// As `broken`, and what is left has to fail.
    spent: Option<DeliveryError>,
    pub(super) attempt: u32,
    last: Option<ClientError>,
    pub(super) decided: Vec<Decided>,
    /// Whether the owner is asked about batches in doubt when their time is over.
    asks: bool,
    /// Batches whose fate is being asked for, by their ordinal, with what they become when nobody answers.
    inquiring: Vec<(u64, Closed, DeliveryError)>,
    /// Questions that the driver has to ask.
    pub(super) questions: Vec<(u64, Doubt)>,
}

/// A batch to send.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) number: u64,
    pub(super) bytes: Bytes,
    pub(super) again: bool,
}

impl Lane {
    pub(super) fn new(idempotent: bool, max_in_flight: usize, asks: bool) -> Self {
        Self {
            idempotent,
            // Without sequences a retry behind a later batch would change the order.
            max_in_flight: if idempotent { max_in_flight } else { 1 },
            items: VecDeque::new(),
            pushed: 0,
            first: 0,
            next: 0,
            unanswered: 0,
            unanswered_bytes: 0,
            broken: false,
            spent: None,
            attempt: 0,
            last: None,
            decided: Vec::new(),
            asks: asks && idempotent,
            inquiring: Vec::new(),
            questions: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, mut batch: Closed, deadline: Instant) {
        if let Body::Refused(e) = &batch.body {
            let error = DeliveryError {
                kind: NotDelivered::NotWritten,
                code: Some(ErrorCode::InvalidBatch),
                message: Arc::from(format!("batch: {e}")),
            };
            batch.body = Body::Sealed(Bytes::new());
            self.decided.push(Decided { batch, outcome: Err(error) });
            return;
        }
        self.pushed += 1;
        self.items.push_back(Item {
            batch,
            ordinal: self.pushed,
            deadline,
            asked: false,
            doubt: false,
            decided: false,
            tries: 0,
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.inquiring.is_empty()
    }

    /// Whether the producer id is spent and its last batches are still on their way.
    pub(super) fn is_spent(&self) -> bool {
        self.spent.is_some()
    }

    /// A batch that the spent id sealed and that never came here.
    pub(super) fn reject(&mut self, batch: Closed, why: &DeliveryError) {
        self.decided.push(Decided { batch, outcome: Err(why.clone()) });
    }

    /// Batches that are not decided, for sealing.
    pub(super) fn batches_mut(&mut self) -> impl Iterator<Item = &mut Closed> {
        self.items.iter_mut().map(|i| &mut i.batch)
    }

    pub(super) fn undecided(&self) -> impl Iterator<Item = &Closed> {
        let asked = self.inquiring.iter().map(|(_, batch, _)| batch);
        self.items.iter().filter(|i| !i.decided).map(|i| &i.batch).chain(asked)
    }

    /// The owner said what became of a batch, or nobody did.
    pub(super) fn found(&mut self, ordinal: u64, fate: Option<Fate>) {
        let Some(at) = self.inquiring.iter().position(|(o, ..)| *o == ordinal) else { return };
        let (_, batch, unknown) = self.inquiring.swap_remove(at);
        let outcome = match fate {
            Some(Fate::Written(offset, append_time)) => Ok((offset, append_time)),
            Some(Fate::NotWritten) => {
                let code = unknown.code.or(Some(ErrorCode::NotWritten));
                Err(DeliveryError { kind: NotDelivered::NotWritten, code, ..unknown })
            }
            None => Err(unknown),
        };
        self.decided.push(Decided { batch, outcome });
    }

    /// The batch that may go next, with its length. It stays until [`Self::sent`].
    pub(super) fn peek(&self) -> Option<usize> {
        if self.broken || self.spent.is_some() || self.unanswered >= self.max_in_flight {
            return None;
        }
        let (head, item) = (self.items.front()?, self.items.get(self.next)?);
        // A broker remembers the last few batches of a producer. Later ones that were written while the first is in
        // doubt count too: else its retry meets a broker that has forgotten it.
        if self.idempotent && item.ordinal - head.ordinal >= self.max_in_flight as u64 {
            return None;
        }
        match &item.batch.body {
            Body::Sealed(bytes) => Some(bytes.len()),
            Body::Raw(_) | Body::Refused(_) => None,
        }
    }

    /// The batch of [`Self::peek`] goes.
    pub(super) fn send(&mut self) -> Option<Sending> {
        let number = self.first + self.next as u64;
        let item = self.items.get_mut(self.next)?;
        let Body::Sealed(bytes) = &item.batch.body else { return None };
        item.asked = true;
        item.tries += 1;
        self.next += 1;
        self.unanswered += 1;
        self.unanswered_bytes += bytes.len() as u64;
        Some(Sending { number, bytes: bytes.clone(), again: item.tries > 1 })
    }

    /// The answer for a batch that was sent.
    pub(super) fn answer(
        &mut self,
        number: u64,
        bytes: u64,
        result: Result<(Option<i64>, i64), ClientError>,
    ) -> Todo {
        self.unanswered = self.unanswered.saturating_sub(1);
        self.unanswered_bytes = self.unanswered_bytes.saturating_sub(bytes);
        let mut todo = Todo::default();
        let at = number.checked_sub(self.first).and_then(|n| usize::try_from(n).ok());
        if let Some(item) = at.and_then(|at| self.items.get_mut(at))
            && !item.decided
        {
            item.asked = false;
            match result {
                Ok(place) => {
                    self.attempt = 0;
                    self.decide(at.unwrap_or_default(), Ok(place));
                }
                Err(e) => self.refused(at.unwrap_or_default(), e, &mut todo),
            }
        }
        self.settle(&mut todo);
        todo
    }

    fn refused(&mut self, at: usize, e: ClientError, todo: &mut Todo) {
        let Some(item) = self.items.get_mut(at) else { return };
        item.doubt |= !says_not_written(e.code);
        // Behind a batch that failed, a gap in the sequence is what has to come: it says nothing of this batch.
        let follows =
            self.broken && matches!(e.code, Some(ErrorCode::OutOfOrderSequence | ErrorCode::UnknownProducer));
        if e.retryable || follows {
            self.broken = true;
            if !follows {
                self.last = Some(e);
            }
            return;
        }
        todo.fenced |= e.code == Some(ErrorCode::ProducerFenced);
        let error = failure(item.doubt, e.code, &e.message);
        self.decide(at, Err(error));
        if self.idempotent {
            self.spend(&e, todo);
        }
    }

    /// The stream is gone: what was on its way is in doubt.
    pub(super) fn cut(&mut self, e: &ClientError) -> Todo {
        for item in self.items.iter_mut().filter(|i| i.asked) {
            item.asked = false;
            item.doubt = true;
        }
        self.unanswered = 0;
        self.unanswered_bytes = 0;
        self.broken = true;
        self.last = Some(e.clone());
        let mut todo = Todo::default();
        self.settle(&mut todo);
        todo
    }

    /// Why the batches are not yet written.
    pub(super) fn last(&self) -> Option<&ClientError> {
        self.last.as_ref()
    }

    /// No way to the owner at present.
    pub(super) fn no_route(&mut self, e: ClientError) {
        self.last = Some(e);
    }

    fn decide(&mut self, at: usize, outcome: Outcome) {
        let Some(item) = self.items.get_mut(at) else { return };
        item.decided = true;
        let hollow = Closed {
            state: item.batch.state.clone(),
            reserved: item.batch.reserved,
            born: item.batch.born,
            count: item.batch.count,
            body: Body::Sealed(Bytes::new()),
        };
        self.decided.push(Decided { batch: std::mem::replace(&mut item.batch, hollow), outcome });
    }

    /// Drops decided batches from the front; once nothing is on its way, begins a new try where one is needed.
    fn settle(&mut self, todo: &mut Todo) {
        if self.spent.is_some() {
            self.fail_idle();
        }
        while self.items.front().is_some_and(|i| i.decided) {
            self.items.pop_front();
            self.first += 1;
            self.next = self.next.saturating_sub(1);
        }
        if self.unanswered > 0 {
            return;
        }
        if self.spent.take().is_some() || self.broken {
            todo.again = self.broken && !self.items.is_empty();
            self.broken = false;
            // Decided batches in the middle are not sent again: they leave first.
            self.drop_decided();
            self.next = 0;
        }
    }

    /// Numbers are positions, so batches may leave the middle only while none is on its way.
    fn drop_decided(&mut self) {
        let before = self.items.len();
        self.items.retain(|i| !i.decided);
        self.first += (before - self.items.len()) as u64;
    }
}
