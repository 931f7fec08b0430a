//! What happened, in order: one line each, and a digest over all of it. Two runs of a seed give the same bytes.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs::File,
    io::{self, BufWriter, Write},
    sync::Arc,
};

use parking_lot::Mutex;
use tracing_subscriber::fmt::{MakeWriter, format::Writer, time::FormatTime};

use crate::sometimes::SOMETIMES;

/// The trace of a run. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Trace(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    file: Option<BufWriter<File>>,
    failed: Option<io::Error>,
    digest: u64,
    lines: u64,
    stderr: bool,
    /// Which of [`SOMETIMES`] were seen.
    seen: BTreeSet<&'static str>,
}

impl Trace {
    /// A trace that is also written to `file`, and to the standard error when `loud`.
    #[must_use]
    pub fn new(file: Option<File>, loud: bool) -> Self {
        Self(Arc::new(Mutex::new(Inner { file: file.map(BufWriter::new), stderr: loud, ..Inner::default() })))
    }

    /// Adds a line with the simulated time.
    pub fn line(&self, what: std::fmt::Arguments<'_>) {
        let mut text = String::new();
        let _infallible = writeln!(text, "{Stamp} {what}");
        self.add(text.as_bytes());
    }

    fn add(&self, bytes: &[u8]) {
        let mut t = self.0.lock();
        t.lines += 1;
        let text = String::from_utf8_lossy(bytes);
        for (name, mark) in SOMETIMES {
            if !t.seen.contains(name) && text.contains(mark) {
                t.seen.insert(name);
            }
        }
        // FNV-1a over 64 bits: the bytes themselves are compared when it matters.
        t.digest =
            bytes.iter().fold(t.digest, |sum, b| (sum ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3));
        if t.stderr {
            let _lost = io::stderr().write_all(bytes);
        }
        if let Some(file) = &mut t.file
            && let Err(e) = file.write_all(bytes)
        {
            t.failed.get_or_insert(e);
        }
    }

    /// Rare situations that were seen so far.
    #[must_use]
    pub fn seen(&self) -> Vec<&'static str> {
        self.0.lock().seen.iter().copied().collect()
    }

    /// Lines so far and the digest over them.
    #[must_use]
    pub fn digest(&self) -> (u64, u64) {
        let t = self.0.lock();
        (t.lines, t.digest)
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// The file could not be written, now or earlier.
    pub fn finish(&self) -> io::Result<()> {
        let mut t = self.0.lock();
        if let Some(file) = &mut t.file {
            file.flush()?;
        }
        t.failed.take().map_or(Ok(()), Err)
    }

    /// Makes the logs of all roles part of the trace.
    pub fn take_logs(&self, filter: &str) {
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(false)
            .with_timer(Stamp)
            .with_writer(self.clone())
            .finish();
        // A second run in one process would have none; there is one run a process.
        let _set = tracing::subscriber::set_global_default(subscriber);
    }
}

/// The simulated time, ms.
struct Stamp;

impl std::fmt::Display for Stamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = crate::now();
        write!(f, "{:>4}.{:03}", at.as_secs(), at.subsec_millis())
    }
}

impl FormatTime for Stamp {
    fn format_time(&self, w: &mut Writer<'_>) -> std::fmt::Result {
        write!(w, "{Stamp}")
    }
}

impl<'a> MakeWriter<'a> for Trace {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { trace: self.clone(), bytes: Vec::new() }
    }
}

/// One line of a log.
#[derive(Debug)]
pub struct Line {
    trace: Trace,
    bytes: Vec<u8>,
}

impl Write for Line {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.trace.add(&self.bytes);
    }
}
