//! What the process takes of the node's memory, read at each scrape.

use std::fs;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::gauge::ConstGauge,
};

/// Where the kernel tells it.
const STATUS: &str = "/proc/self/status";

/// Name and help of a metric, and the line of [`STATUS`] that has it, in KiB.
const FIELDS: [(&str, &str, &str); 2] = [
    ("resident_bytes", "Memory that the process holds", "VmRSS:"),
    ("peak_resident_bytes", "The most memory that the process held since it started", "VmHWM:"),
];

/// Memory of this process. A system that does not tell it has none of these metrics.
#[derive(Debug)]
pub(crate) struct Memory;

impl Collector for Memory {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Ok(status) = fs::read_to_string(STATUS) else { return Ok(()) };
        for (name, help, field) in FIELDS {
            let Some(bytes) = bytes(&status, field) else { continue };
            let gauge = ConstGauge::new(bytes);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}

fn bytes(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let status = "Name:\toperator\nVmHWM:\t   2048 kB\nVmRSS:\t   1024 kB\n";
        assert_eq!(bytes(status, "VmRSS:"), Some(1 << 20));
        assert_eq!(bytes(status, "VmHWM:"), Some(2 << 20));
        assert_eq!(bytes(status, "VmSwap:"), None);
        assert_eq!(bytes("VmRSS: much kB", "VmRSS:"), None);
    }

    #[test]
    fn the_page_has_both() {
        let metrics = tidemill_runtime::Metrics::new();
        metrics.register("operator", &[], |r| r.register_collector(Box::new(Memory)));
        let page = metrics.encode();
        for name in ["tidemill_operator_resident_bytes ", "tidemill_operator_peak_resident_bytes "] {
            let line = page.lines().find_map(|line| line.strip_prefix(name));
            let bytes: u64 = line.expect(&page).parse().unwrap();
            assert!(bytes > 1 << 20, "{page}");
        }
    }
}
