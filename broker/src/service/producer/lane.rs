//! Frames of one partition on one stream, answered in the order in which they came. Generic over what is waited for, so
//! that the order can be tested without a log.

use std::{collections::VecDeque, future::Future};

use futures::FutureExt;

/// A frame that is not answered yet.
#[derive(Debug)]
pub(super) struct Item<H, R> {
    /// What the answer needs.
    pub(super) frame: Frame,
    /// Its answer, or what will bring it.
    pub(super) state: State<H, R>,
}

/// Whose answer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) correlation: u64,
    pub(super) bytes: u64,
    pub(super) records: u64,
    pub(super) arrived: std::time::Instant,
}

#[derive(Debug)]
pub(super) enum State<H, R> {
    Done(R),
    Waiting(H),
}

/// The queue of a partition. Its head's handle is with the stream, which waits for the heads of all lanes at once.
#[derive(Debug)]
pub(super) struct Lane<H, R> {
    head: Option<Frame>,
    queue: VecDeque<Item<H, R>>,
    bytes: u64,
}

impl<H, R> Default for Lane<H, R> {
    fn default() -> Self {
        Self { head: None, queue: VecDeque::new(), bytes: 0 }
    }
}

impl<H, R> Lane<H, R>
where
    H: Future<Output = R> + Unpin,
{
    /// Unanswered bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_idle(&self) -> bool {
        self.head.is_none() && self.queue.is_empty()
    }

    /// Adds a frame. Answers that can be given go to `out`; a handle that comes back has to be waited for.
    pub(super) fn push(&mut self, item: Item<H, R>, out: &mut impl FnMut(Frame, R)) -> Option<H> {
        self.bytes += item.frame.bytes;
        self.queue.push_back(item);
        if self.head.is_some() { None } else { self.advance(out) }
    }

    /// The handle of the head brought `result`.
    pub(super) fn done(&mut self, result: R, out: &mut impl FnMut(Frame, R)) -> Option<H> {
        if let Some(frame) = self.head.take() {
            self.answered(frame, result, out);
        }
        self.advance(out)
    }

    /// Answers from the front as long as answers are there.
    fn advance(&mut self, out: &mut impl FnMut(Frame, R)) -> Option<H> {
        while let Some(item) = self.queue.pop_front() {
            match item.state {
                State::Done(r) => self.answered(item.frame, r, out),
                State::Waiting(mut handle) => match (&mut handle).now_or_never() {
                    Some(r) => self.answered(item.frame, r, out),
                    None => {
                        self.head = Some(item.frame);
                        return Some(handle);
                    }
                },
            }
        }
        None
    }

    fn answered(&mut self, frame: Frame, result: R, out: &mut impl FnMut(Frame, R)) {
        self.bytes -= frame.bytes;
        out(frame, result);
    }
}

#[cfg(test)]
mod tests {
    use futures::channel::oneshot::{Canceled, Receiver, channel};

    use super::*;

    type R = Result<u32, Canceled>;

    fn item(correlation: u64, state: State<Receiver<u32>, R>) -> Item<Receiver<u32>, R> {
        let arrived = std::time::Instant::now();
        Item { frame: Frame { correlation, bytes: 10, records: 1, arrived }, state }
    }

    #[test]
    fn an_early_answer_waits_for_those_before_it() {
        let mut lane = Lane::default();
        let mut seen = Vec::new();
        let mut out = |f: Frame, _: R| seen.push(f.correlation);
        let (tx1, rx1) = channel();
        let (tx3, rx3) = channel();
        let (tx4, rx4) = channel();
        let head = lane.push(item(1, State::Waiting(rx1)), &mut out).unwrap();
        // Refused at once, and acknowledged before the first: both wait.
        assert!(lane.push(item(2, State::Done(Ok(0))), &mut out).is_none());
        assert!(lane.push(item(3, State::Waiting(rx3)), &mut out).is_none());
        assert!(lane.push(item(4, State::Waiting(rx4)), &mut out).is_none());
        tx3.send(3).unwrap();
        assert_eq!(lane.bytes(), 40);
        tx1.send(1).unwrap();
        let first = head.now_or_never().unwrap();
        let head = lane.done(first, &mut out).unwrap();
        tx4.send(4).unwrap();
        let last = head.now_or_never().unwrap();
        assert!(lane.done(last, &mut out).is_none());
        assert_eq!((lane.bytes(), lane.is_idle()), (0, true));
        assert_eq!(seen, [1, 2, 3, 4]);
    }

    #[test]
    fn every_frame_is_answered_once_when_handles_break() {
        let mut lane = Lane::default();
        let mut seen = Vec::new();
        let mut out = |f: Frame, r: R| seen.push((f.correlation, r.is_ok()));
        let (tx, rx) = channel();
        let head = lane.push(item(1, State::Waiting(rx)), &mut out).unwrap();
        drop(tx);
        assert!(lane.done(head.now_or_never().unwrap(), &mut out).is_none());
        let (tx, rx) = channel::<u32>();
        drop(tx);
        assert!(lane.push(item(2, State::Waiting(rx)), &mut out).is_none());
        assert_eq!(seen, [(1, false), (2, false)]);
    }
}
