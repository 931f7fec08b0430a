//! From blocks of lines into the producer, and what becomes of each record.

use std::collections::VecDeque;

use tidemill_client::{Delivery, DeliveryError, HeaderRef, Producer, ProducerError, SendRecord, TopicHandle};
use tidemill_types::ErrorCode;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    lines::{self, Block, InputError, MAX_LINE_BYTES},
    parse::{Form, Parsed, parse},
    verdict::Stop,
};
use crate::{error::CliError, output, progress::Pace};

/// Records that are sent and not looked at; bounds memory while one slow partition holds up the oldest of them.
const MAX_WAITING: usize = 1 << 20;
/// Records between two looks at the signals and at what was acknowledged.
const TURN: u64 = 256;
/// Output is written once there is so much of it.
const OUT_BYTES: usize = 64 << 10;

/// Sends lines.
pub(super) struct Pump<'a> {
    producer: &'a Producer,
    topic: &'a TopicHandle,
    pub(super) form: Form,
    pub(super) headers: &'a [HeaderRef<'a>],
    pub(super) partition: Option<u32>,
    pub(super) pace: Option<Pace>,
    /// Whether partitions and offsets are printed.
    pub(super) print: bool,
    /// Lines that were taken.
    pub(super) lines: u64,
    /// Bytes of the input that were taken.
    pub(super) bytes: u64,
    /// The first record that was not delivered.
    pub(super) first: Option<DeliveryError>,
    waiting: VecDeque<Delivery>,
    out: Vec<u8>,
}

impl<'a> Pump<'a> {
    pub(super) fn new(producer: &'a Producer, topic: &'a TopicHandle) -> Self {
        Self {
            producer,
            topic,
            form: Form::Plain,
            headers: &[],
            partition: None,
            pace: None,
            print: false,
            lines: 0,
            bytes: 0,
            first: None,
            waiting: VecDeque::new(),
            out: Vec::new(),
        }
    }

    /// Sends until the input ends, a line is refused, a record fails, or `stop`.
    pub(super) async fn run(
        &mut self,
        mut input: mpsc::Receiver<Block>,
        stop: &CancellationToken,
    ) -> Result<Stop, CliError> {
        loop {
            self.look()?;
            self.write()?;
            if self.first.is_some() {
                return Ok(Stop::Failed);
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(Stop::Interrupted),
                block = input.recv() => match block {
                    None => return Ok(Stop::End),
                    Some(Ok(block)) => if let Some(why) = self.block(&block, stop).await? { return Ok(why) },
                    Some(Err(InputError::LongLine)) => return Ok(self.too_long(self.lines + 1)),
                    Some(Err(InputError::Read(e))) => return Ok(Stop::Input(e.to_string())),
                },
                done = oldest(&mut self.waiting) => self.done(done)?,
            }
        }
    }

    async fn block(&mut self, block: &[u8], stop: &CancellationToken) -> Result<Option<Stop>, CliError> {
        for line in lines::split(block) {
            if self.lines.is_multiple_of(TURN) {
                self.look()?;
                if self.first.is_some() {
                    return Ok(Some(Stop::Failed));
                }
                if stop.is_cancelled() {
                    return Ok(Some(Stop::Interrupted));
                }
            }
            while self.waiting.len() >= MAX_WAITING {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return Ok(Some(Stop::Interrupted)),
                    done = oldest(&mut self.waiting) => self.done(done)?,
                }
            }
            if let Some(pace) = self.pace
                && let Some(why) = self.paced(pace, stop).await?
            {
                return Ok(Some(why));
            }
            if let Some(why) = self.line(line, stop).await? {
                return Ok(Some(why));
            }
            self.lines += 1;
            self.bytes += line.len() as u64 + 1;
        }
        Ok(None)
    }

    /// Waits until the next line is due, and meanwhile looks at what was acknowledged.
    async fn paced(&mut self, pace: Pace, stop: &CancellationToken) -> Result<Option<Stop>, CliError> {
        let due = pace.wait(self.lines);
        tokio::pin!(due);
        loop {
            self.look()?;
            self.write()?;
            if self.first.is_some() {
                return Ok(Some(Stop::Failed));
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(Some(Stop::Interrupted)),
                _ = &mut due => return Ok(None),
                done = oldest(&mut self.waiting) => self.done(done)?,
            }
        }
    }

    async fn line(&mut self, line: &[u8], stop: &CancellationToken) -> Result<Option<Stop>, CliError> {
        let number = self.lines + 1;
        if line.len() > MAX_LINE_BYTES {
            return Ok(Some(self.too_long(number)));
        }
        let parsed = match parse(&self.form, line) {
            Ok(parsed) => parsed,
            Err(why) => {
                return Ok(Some(Stop::Line { line: number, why, code: ErrorCode::InvalidArgument }));
            }
        };
        let sent = if parsed.headers.is_empty() {
            self.send(&parsed, self.headers, stop).await
        } else {
            let own = parsed.headers.iter().map(|(key, value)| HeaderRef { key, value: value.as_deref() });
            let headers: Vec<_> = self.headers.iter().copied().chain(own).collect();
            self.send(&parsed, &headers, stop).await
        };
        match sent {
            None => Ok(Some(Stop::Interrupted)),
            Some(Ok(delivery)) => {
                self.waiting.push_back(delivery);
                Ok(None)
            }
            Some(Err(e)) => Ok(Some(Stop::Line { line: number, why: refused(&e), code: e.code() })),
        }
    }

    /// `None`: a signal came while there was no room; the record was not taken.
    async fn send(
        &self,
        parsed: &Parsed<'_>,
        headers: &[HeaderRef<'_>],
        stop: &CancellationToken,
    ) -> Option<Result<Delivery, ProducerError>> {
        let record = SendRecord {
            partition: self.partition.or(parsed.partition),
            key: parsed.key.as_deref(),
            value: parsed.value.as_deref(),
            headers,
            timestamp: parsed.timestamp,
        };
        match self.producer.try_send(self.topic, &record) {
            Err(ProducerError::Full { .. } | ProducerError::UnknownPartition { .. }) => {}
            done => return Some(done),
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => None,
            sent = self.producer.send(self.topic, record) => Some(sent),
        }
    }

    fn too_long(&self, line: u64) -> Stop {
        let why = format!("longer than {MAX_LINE_BYTES} bytes");
        Stop::Line { line, why, code: ErrorCode::MessageTooLarge }
    }

    /// Takes note of all that was decided, oldest first.
    fn look(&mut self) -> Result<(), CliError> {
        while let Some(done) = self.waiting.front().and_then(Delivery::try_get) {
            self.done(done)?;
        }
        Ok(())
    }

    /// The oldest record was decided.
    fn done(&mut self, done: Result<tidemill_client::RecordMeta, DeliveryError>) -> Result<(), CliError> {
        self.waiting.pop_front();
        match done {
            Ok(meta) if self.print => {
                let line = match meta.offset {
                    Some(offset) => format!("{} {offset}\n", meta.partition),
                    // Written, and the broker no longer knows where.
                    None => format!("{} -\n", meta.partition),
                };
                self.out.extend_from_slice(line.as_bytes());
                if self.out.len() >= OUT_BYTES {
                    self.write()?;
                }
            }
            Ok(_) => {}
            Err(e) => {
                self.first.get_or_insert(e);
            }
        }
        Ok(())
    }

    /// Takes note of everything; the producer has decided all of it.
    pub(super) async fn settle(&mut self) -> Result<(), CliError> {
        while !self.waiting.is_empty() {
            let done = oldest(&mut self.waiting).await;
            self.done(done)?;
        }
        self.write()
    }

    fn write(&mut self) -> Result<(), CliError> {
        if self.out.is_empty() {
            return Ok(());
        }
        let done = output::write_to(&mut std::io::stdout().lock(), &self.out);
        self.out.clear();
        done
    }
}

/// The outcome of the oldest record; never when there is none.
async fn oldest(waiting: &mut VecDeque<Delivery>) -> Result<tidemill_client::RecordMeta, DeliveryError> {
    match waiting.front_mut() {
        Some(delivery) => delivery.await,
        None => std::future::pending().await,
    }
}

/// Why a record was not taken, without its code, which stands at the end of the whole.
fn refused(e: &ProducerError) -> String {
    let text = e.to_string();
    text.strip_suffix(&format!(" ({})", e.code())).map_or(text.clone(), str::to_owned)
}
