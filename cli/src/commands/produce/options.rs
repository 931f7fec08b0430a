//! How a producer of a command batches and compresses.

use std::time::Duration;

use bytesize::ByteSize;
use clap::{Args, ValueEnum};
use tidemill_client::{Compression, ProducerConfig};

/// `--compression`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Codec {
    /// As it is.
    None,
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
    /// Snappy.
    Snappy,
    /// Gzip.
    Gzip,
}

impl From<Codec> for Compression {
    fn from(codec: Codec) -> Self {
        match codec {
            Codec::None => Self::None,
            Codec::Lz4 => Self::Lz4,
            Codec::Zstd => Self::Zstd,
            Codec::Snappy => Self::Snappy,
            Codec::Gzip => Self::Gzip,
        }
    }
}

/// Flags of everything that writes.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProducerArgs {
    /// How batches are compressed.
    #[arg(long, value_enum, default_value = "none")]
    pub(crate) compression: Codec,
    /// A batch is closed before it exceeds this size, 1KiB to 1MiB.
    #[arg(long, default_value = "256KiB", value_name = "SIZE", value_parser = batch_bytes)]
    pub(crate) batch_bytes: ByteSize,
    /// A batch that is not full waits so long for more records.
    #[arg(long, default_value = "5ms", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) linger: Duration,
    /// How long a record may take from being read to its success or failure, with all retries: 1s to 6h and more than
    /// the linger. (--timeout bounds only single calls, such as finding the topic.)
    #[arg(long, default_value = "2m", value_name = "DURATION", value_parser = delivery_timeout)]
    pub(crate) delivery_timeout: Duration,
}

fn batch_bytes(text: &str) -> Result<ByteSize, String> {
    let size: ByteSize = text.parse()?;
    if (ByteSize::kib(1)..=ByteSize::mib(1)).contains(&size) {
        Ok(size)
    } else {
        Err("1KiB to 1MiB expected".to_owned())
    }
}

fn delivery_timeout(text: &str) -> Result<Duration, String> {
    let d = humantime::parse_duration(text).map_err(|e| e.to_string())?;
    if (1..=6 * 3_600).contains(&d.as_secs()) { Ok(d) } else { Err("1s to 6h expected".to_owned()) }
}

impl ProducerArgs {
    /// The configuration of a producer.
    pub(crate) fn config(&self) -> ProducerConfig {
        ProducerConfig {
            compression: self.compression.into(),
            batch_bytes: usize::try_from(self.batch_bytes.as_u64()).unwrap_or(usize::MAX),
            linger: self.linger,
            delivery_timeout: self.delivery_timeout,
            ..ProducerConfig::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ProducerArgs,
    }

    #[test]
    fn the_defaults_are_the_clients() {
        let ours = Line::try_parse_from(["x"]).unwrap().args.config();
        assert_eq!(format!("{ours:?}"), format!("{:?}", ProducerConfig::default()));
    }

    #[test]
    fn limits() {
        assert_eq!(batch_bytes("128KiB").unwrap(), ByteSize::kib(128));
        assert!(batch_bytes("1000").is_err() && batch_bytes("2MiB").is_err() && batch_bytes("x").is_err());
        assert!(delivery_timeout("6h").is_ok());
        assert!(delivery_timeout("500ms").is_err() && delivery_timeout("7h").is_err());
    }
}
