//! Taking closed batches out of the partitions, producer ids, time-outs, and decided batches.

use std::sync::atomic::Ordering;

use tidemill_proto::v1;
use tokio::{sync::oneshot, time::Instant};

use super::{Driver, Found, Lane, Seat, Timer, lane::Todo};
use crate::{
    ClientError,
    producer::{
        Delivery, NotDelivered,
        accumulator::{Body, Identity},
        counters::Counting,
        outcome::{self, Fate},
    },
};

impl Driver {
    /// Looks at the partitions that were announced, and at all under memory pressure.
    pub(super) fn take_announced(&mut self) {
        let announced = std::mem::take(&mut *self.shared.announced.lock());
        for lane in announced {
            self.seat(lane);
            self.seats[lane].partition.acc.lock().announced = false;
            self.collect(lane);
        }
        if self.shared.pressure.swap(false, Ordering::AcqRel) {
            self.close_all();
        }
    }

    /// Makes seats up to this lane.
    fn seat(&mut self, lane: usize) {
        if lane < self.seats.len() {
            return;
        }
        let all = self.shared.partitions.lock();
        let config = &self.shared.config;
        for partition in all.iter().skip(self.seats.len()) {
            self.seats.push(Seat {
                partition: partition.clone(),
                lane: Lane::new(config.idempotent, config.max_in_flight, !config.outcome_timeout.is_zero()),
                route: None,
                stale: None,
                asking: false,
                not_before: None,
                queued: None,
                deadline_armed: false,
                linger_armed: false,
                identity_asked: false,
                identity_attempt: 0,
            });
        }
    }

    /// Takes what is closed and sees to the linger timer of what is open.
    fn collect(&mut self, lane: usize) {
        let seat = &mut self.seats[lane];
        let (closed, open_since) = {
            let mut acc = seat.partition.acc.lock();
            (std::mem::take(&mut acc.closed), acc.open_since())
        };
        for batch in closed {
            let deadline = batch.born + self.shared.config.delivery_timeout;
            if !std::mem::replace(&mut seat.deadline_armed, true) {
                self.timers.at(deadline, Timer::Deadline(lane));
            }
            seat.lane.push(batch, deadline);
        }
        if let Some(born) = open_since
            && !std::mem::replace(&mut seat.linger_armed, true)
        {
            self.timers.at(born + self.shared.config.linger, Timer::Linger(lane));
        }
        self.want_identity(lane);
        self.report(lane);
        self.offer(lane);
    }

    /// Closes the open batch when it has waited long enough.
    pub(super) fn linger_over(&mut self, lane: usize, now: Instant) {
        let seat = &mut self.seats[lane];
        seat.linger_armed = false;
        let mut acc = seat.partition.acc.lock();
        let old = acc.open_since().is_some_and(|born| born + self.shared.config.linger <= now);
        if old {
            acc.close();
        }
        drop(acc);
        if old {
            seat.partition.sticky.leave(seat.partition.index);
        }
        self.collect(lane);
    }

    /// Closes every open batch.
    pub(super) fn close_all(&mut self) {
        let count = self.shared.partitions.lock().len();
        self.seat(count.saturating_sub(1));
        for lane in 0..self.seats.len() {
            self.seats[lane].partition.acc.lock().close();
            self.collect(lane);
        }
    }

    /// Answers when what is undecided now is decided.
    pub(super) fn when_decided(&self, done: oneshot::Sender<()>) {
        let waiting: Vec<_> = self
            .seats
            .iter()
            .flat_map(|s| s.lane.undecided())
            .map(|b| Delivery::new(b.state.clone(), 0))
            .collect();
        tokio::spawn(async move {
            for delivery in waiting {
                // Decided is all that counts here.
                let _ = delivery.await;
            }
            let _ = done.send(());
        });
    }

    pub(super) fn deadline(&mut self, lane: usize, now: Instant) {
        let seat = &mut self.seats[lane];
        let (todo, next) = seat.lane.expire(now);
        seat.deadline_armed = next.is_some();
        if let Some(next) = next {
            // Batches that are past it stay only until their answers come.
            let floor = now + self.shared.config.linger.max(std::time::Duration::from_millis(1));
            self.timers.at(next.max(floor), Timer::Deadline(lane));
        }
        self.act(lane, &todo);
    }

    /// Does what the lane asks for after an answer, a time-out or a cut.
    pub(super) fn act(&mut self, lane: usize, todo: &Todo) {
        if todo.fenced {
            self.fence();
        }
        let seat = &mut self.seats[lane];
        if let Some(why) = &todo.spent {
            let mut acc = seat.partition.acc.lock();
            acc.identity = Identity::Wanted;
            let closed = std::mem::take(&mut acc.closed);
            drop(acc);
            for batch in closed {
                match batch.body {
                    Body::Sealed(_) => seat.lane.reject(batch, why),
                    Body::Raw(_) | Body::Refused(_) => {
                        let deadline = batch.born + self.shared.config.delivery_timeout;
                        seat.lane.push(batch, deadline);
                    }
                }
            }
            if !seat.lane.is_empty() && !std::mem::replace(&mut seat.deadline_armed, true) {
                // Fires early and finds the right time.
                self.timers.at(Instant::now() + self.shared.config.linger, Timer::Deadline(lane));
            }
        }
        self.report(lane);
        self.want_identity(lane);
        if todo.again {
            self.again(lane);
        } else {
            self.offer(lane);
        }
    }

    /// Asks what became of batches that were given up in doubt.
    fn inquire(&mut self, lane: usize) {
        let deadline = Instant::now() + self.shared.config.outcome_timeout;
        for (ordinal, doubt) in std::mem::take(&mut self.seats[lane].lane.questions) {
            let (client, partition) = (self.client.clone(), self.seats[lane].partition.clone());
            self.questions.spawn(async move {
                let found = outcome::ask(&client, &partition.topic, partition.index, doubt, deadline).await;
                Found::Fate(lane, ordinal, found)
            });
        }
    }

    pub(super) fn fate_found(&mut self, lane: usize, ordinal: u64, found: Result<Fate, ClientError>) {
        let fate =
            found.inspect_err(|error| tracing::debug!(%error, "the outcome of a batch stays unknown")).ok();
        self.seats[lane].lane.found(ordinal, fate);
        self.report(lane);
    }

    /// Tells the handles and gives the memory back.
    fn report(&mut self, lane: usize) {
        self.inquire(lane);
        let counting = &self.shared.counting;
        for d in self.seats[lane].lane.decided.drain(..) {
            let counter = match &d.outcome {
                Ok(_) => &counting.acked,
                Err(e) if e.kind == NotDelivered::Unknown => &counting.unknown,
                Err(_) => &counting.not_written,
            };
            Counting::add(counter, u64::from(d.batch.count.unsigned_abs()));
            self.shared.memory.add_permits(d.batch.reserved);
            d.batch.state.resolve(d.outcome);
        }
    }

    /// Asks for a producer id for a partition that needs one, once its last batches with the old one are decided.
    pub(super) fn want_identity(&mut self, lane: usize) {
        let seat = &mut self.seats[lane];
        let wanted = seat.partition.acc.lock().identity == Identity::Wanted;
        if !wanted || seat.identity_asked || seat.lane.is_spent() {
            return;
        }
        seat.identity_asked = true;
        let client = self.client.clone();
        self.questions.spawn(async move {
            let answer = client
                .call_any("ask for a producer id", |call| {
                    let request = call.request(v1::InitProducerRequest::default());
                    async move { call.producer().init_producer(request).await }
                })
                .await;
            Found::Identity(lane, answer)
        });
    }

    pub(super) fn identity_found(
        &mut self,
        lane: usize,
        result: Result<v1::InitProducerResponse, ClientError>,
    ) {
        let backoff = self.client.backoff();
        let seat = &mut self.seats[lane];
        let good = result.and_then(|r| match i16::try_from(r.epoch) {
            Ok(epoch) if r.producer_id >= 0 && epoch >= 0 => Ok((r.producer_id, epoch)),
            _ => Err(ClientError::new(tidemill_types::ErrorCode::Internal, "a producer id out of range")),
        });
        match good {
            Ok((id, epoch)) => {
                seat.identity_asked = false;
                seat.identity_attempt = 0;
                let partition = seat.partition.clone();
                let mut acc = partition.acc.lock();
                let mut closed = std::mem::take(&mut acc.closed);
                acc.adopt(id, epoch, seat.lane.batches_mut().chain(closed.iter_mut()));
                acc.closed = closed;
                drop(acc);
                self.collect(lane);
            }
            Err(e) => {
                seat.lane.no_route(e);
                // Batches wait until their delivery time-out, the question is asked on.
                let pause = backoff.wait(seat.identity_attempt);
                seat.identity_attempt += 1;
                self.timers.at(Instant::now() + pause, Timer::Identity(lane));
            }
        }
    }
}
