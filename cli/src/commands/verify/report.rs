//! What a run came to, for people and for programs.

use std::time::Duration;

use serde_json::json;
use tidemill_client::ErrorCode;

use crate::{
    error::CliError,
    progress::{count, per_second, span},
};
use tidemill_history::{Report, Violation};

/// Violations that are printed for people.
const SHOWN: usize = 20;

/// A run with its result.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) topic: String,
    pub(super) partitions: u32,
    pub(super) producers: u32,
    /// Until the last record was decided.
    pub(super) wrote: Duration,
    pub(super) took: Duration,
    pub(super) first_failure: Option<String>,
    pub(super) report: Report,
}

impl Run {
    fn line(&self, v: &Violation) -> String {
        let offset = v.offset.map_or_else(|| "unknown offset".to_owned(), |o| format!("offset {o}"));
        format!("{}/{} {offset}: {}: {}", self.topic, v.partition, v.fault.name(), v.fault)
    }

    /// Lines for people.
    pub(super) fn text(&self) -> String {
        let r = &self.report;
        let mut text = format!(
            "verify {}: {} records sent by {} producers to {} partitions in {} ({}/s)\n",
            self.topic,
            count(r.sent),
            self.producers,
            self.partitions,
            span(self.wrote),
            count(per_second(r.sent, self.wrote)),
        );
        text.push_str(&format!(
            "  acknowledged {}, not written {}, outcome unknown {} (of which {} are there)\n",
            count(r.acked),
            count(r.not_written),
            count(r.unknown),
            count(r.unknown_present),
        ));
        text.push_str(&format!(
            "  slowest acknowledgement {} ms after sending\n",
            count(r.slowest_ns / 1_000_000)
        ));
        text.push_str(&format!(
            "  read {} while writing, {} from the start\n",
            count(r.read_live),
            count(r.read_last)
        ));
        if let Some(failure) = &self.first_failure {
            text.push_str(&format!("  first failure: {failure}\n"));
        }
        if r.violations.is_empty() {
            text.push_str("  no violation\n");
            return text;
        }
        text.push_str(&format!("  {} violations\n", count(r.violations.len() as u64)));
        for v in r.violations.iter().take(SHOWN) {
            text.push_str(&format!("    {}\n", self.line(v)));
        }
        if r.violations.len() > SHOWN {
            text.push_str(&format!("    and {} more; --json has all\n", r.violations.len() - SHOWN));
        }
        text
    }

    /// One JSON document with everything.
    pub(super) fn json(&self) -> Result<String, CliError> {
        let r = &self.report;
        let violations: Vec<_> = r
            .violations
            .iter()
            .map(|v| {
                json!({
                    "partition": v.partition,
                    "offset": v.offset,
                    "kind": v.fault.name(),
                    "message": v.fault.to_string(),
                })
            })
            .collect();
        let document = json!({
            "topic": self.topic,
            "partitions": self.partitions,
            "producers": self.producers,
            "writeSeconds": self.wrote.as_secs_f64(),
            "seconds": self.took.as_secs_f64(),
            "sent": r.sent,
            "acknowledged": r.acked,
            "notWritten": r.not_written,
            "outcomeUnknown": r.unknown,
            "outcomeUnknownPresent": r.unknown_present,
            "slowestAcknowledgementSeconds": Duration::from_nanos(r.slowest_ns).as_secs_f64(),
            "readWhileWriting": r.read_live,
            "readFromStart": r.read_last,
            "firstFailure": self.first_failure,
            "violations": violations,
        });
        serde_json::to_string_pretty(&document)
            .map(|text| text + "\n")
            .map_err(|e| CliError::new("output", e.to_string(), ErrorCode::Internal))
    }

    /// Success only without violations and with at least one acknowledged record.
    pub(super) fn verdict(&self) -> Result<(), CliError> {
        let what = format!("verify {}", self.topic);
        if let Some(first) = self.report.violations.first() {
            let why = format!("{} violations, first {}", self.report.violations.len(), self.line(first));
            return Err(CliError::new(what, why, ErrorCode::DataLoss));
        }
        if self.report.acked == 0 {
            let why = self.first_failure.as_deref().unwrap_or("nothing was sent");
            return Err(CliError::new(
                what,
                format!("no record was acknowledged: {why}"),
                ErrorCode::NotWritten,
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Exit;
    use tidemill_history::{Fault, Id};

    fn run(violations: Vec<Violation>) -> Run {
        Run {
            topic: "t".into(),
            partitions: 2,
            producers: 1,
            wrote: Duration::from_secs(2),
            took: Duration::from_secs(3),
            first_failure: None,
            report: Report { sent: 10, acked: 9, unknown: 1, violations, ..Report::default() },
        }
    }

    #[test]
    fn a_violation_is_named_with_its_place_and_fails() {
        let fault = Fault::Lost(Id { producer: 0, sequence: 4 });
        let r = run(vec![Violation { partition: 1, offset: Some(2), fault }]);
        let place = "t/1 offset 2: lost: record 4 of producer 0 was acknowledged and is not there";
        assert!(r.text().contains(place), "{}", r.text());
        let e = r.verdict().unwrap_err();
        assert_eq!(e.exit, Exit::Failed);
        assert!(e.why.contains(place));
        let json: serde_json::Value = serde_json::from_str(&r.json().unwrap()).unwrap();
        assert_eq!(json["violations"][0]["kind"], "lost");
        assert_eq!(json["violations"][0]["offset"], 2);
    }

    #[test]
    fn many_violations_are_cut_for_people_only() {
        let fault = Fault::Phantom(None);
        let all = (0..25).map(|o| Violation { partition: 0, offset: Some(o), fault }).collect();
        let r = run(all);
        assert_eq!(r.text().matches("phantom").count(), SHOWN);
        assert!(r.text().contains("and 5 more"));
        assert_eq!(r.json().unwrap().matches("\"phantom\"").count(), 25);
    }

    #[test]
    fn nothing_acknowledged_is_no_success() {
        assert!(run(Vec::new()).verdict().is_ok());
        let mut r = run(Vec::new());
        r.report.acked = 0;
        r.first_failure = Some("no".into());
        assert_eq!(r.verdict().unwrap_err().exit, Exit::Failed);
    }
}
