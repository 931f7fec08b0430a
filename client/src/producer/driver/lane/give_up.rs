//! What a lane gives up: batches out of time, behind a sequence that stays a gap, or of a topic that is gone.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Decided, Lane, Todo};
use crate::{
    ClientError,
    producer::{DeliveryError, NotDelivered, accumulator::Body, driver::verdict::failure, outcome::Doubt},
};

impl Lane {
    /// A batch failed for good, so that its sequence stays a gap: what was not sent fails now, what is on its way when
    /// it is answered (2.1.1).
    pub(super) fn spend(&mut self, e: &ClientError, todo: &mut Todo) {
        if self.spent.is_none() {
            let why = DeliveryError {
                kind: NotDelivered::NotWritten,
                code: e.code,
                message: Arc::from(format!("an earlier batch of the partition failed: {}", e.message)),
            };
            todo.spent = Some(why.clone());
            self.spent = Some(why);
        }
        self.fail_idle();
    }

    /// Fails what is sealed with the spent id and not on its way. Unsealed batches take the next id.
    pub(super) fn fail_idle(&mut self) {
        let Some(why) = self.spent.clone() else { return };
        for at in 0..self.items.len() {
            let item = &self.items[at];
            if !item.asked && !item.decided && matches!(item.batch.body, Body::Sealed(_)) {
                let kind = if item.doubt { NotDelivered::Unknown } else { NotDelivered::NotWritten };
                self.fail(at, DeliveryError { kind, ..why.clone() });
            }
        }
    }

    /// The topic is gone or the like: nothing of the partition can be written.
    pub(in super::super) fn give_up(&mut self, e: &ClientError) -> Todo {
        let mut todo = Todo::default();
        for at in 0..self.items.len() {
            let item = &self.items[at];
            if !item.decided {
                let error = failure(item.doubt || item.asked, e.code, &e.message);
                self.decide(at, Err(error));
            }
        }
        if self.idempotent {
            self.spend(e, &mut todo);
        }
        self.settle(&mut todo);
        todo
    }

    /// Fails what is out of time. Gives the next deadline too.
    pub(in super::super) fn expire(&mut self, now: Instant) -> (Todo, Option<Instant>) {
        let mut todo = Todo::default();
        let mut sealed_failed = false;
        for at in 0..self.items.len() {
            let item = &self.items[at];
            if item.deadline > now {
                break;
            }
            if item.decided {
                continue;
            }
            sealed_failed |= matches!(item.batch.body, Body::Sealed(_));
            let in_doubt = item.doubt || item.asked;
            let (code, last) = match &self.last {
                Some(e) => (e.code, format!("; last answer: {e}")),
                None => (None, String::new()),
            };
            let message = format!("not acknowledged within the delivery time-out{last}");
            let error = failure(in_doubt, if in_doubt { None } else { code }, &message);
            self.fail(at, error);
        }
        if sealed_failed && self.idempotent {
            let mut why = ClientError::deadline("the delivery time-out passed", self.last.as_ref());
            // What kept the partition waiting says more than that the time is over.
            why.code = self.last.as_ref().and_then(|e| e.code).or(why.code);
            self.spend(&why, &mut todo);
        }
        self.settle(&mut todo);
        (todo, self.items.front().map(|i| i.deadline))
    }

    /// A batch is given up. Where it may have been written its owner is asked before anybody is told (2.1.3).
    fn fail(&mut self, at: usize, error: DeliveryError) {
        let Some(item) = self.items.get(at) else { return };
        let doubt = match &item.batch.body {
            Body::Sealed(bytes) if self.asks && error.kind == NotDelivered::Unknown => Doubt::of(bytes),
            _ => None,
        };
        let ordinal = item.ordinal;
        self.decide(at, Err(error));
        if let Some(doubt) = doubt
            && let Some(Decided { batch, outcome: Err(error) }) = self.decided.pop()
        {
            self.inquiring.push((ordinal, batch, error));
            self.questions.push((ordinal, doubt));
        }
    }
}
