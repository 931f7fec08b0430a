//! Numbers for people.

use std::time::Duration;

/// `1234567` as `1 234 567`.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// Whole units per second, rounded down; 0 for no time at all.
pub(crate) fn per_second(n: u64, elapsed: Duration) -> u64 {
    let nanos = elapsed.as_nanos();
    if nanos == 0 {
        return 0;
    }
    u64::try_from(u128::from(n) * 1_000_000_000 / nanos).unwrap_or(u64::MAX)
}

/// `850 ms`, `1.25 s`, `75 s`.
pub(crate) fn span(d: Duration) -> String {
    match d.as_millis() {
        ms if ms < 1_000 && !d.is_zero() => format!("{ms} ms"),
        ms if ms < 10_000 && d.subsec_millis() > 0 => format!("{:.2} s", d.as_secs_f64()),
        _ => format!("{} s", d.as_secs()),
    }
}

/// `10.5 MiB`.
pub(crate) fn bytes(n: u64) -> String {
    bytesize::ByteSize(n).display().iec().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1 000");
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!(per_second(500, Duration::from_millis(250)), 2_000);
        assert_eq!(per_second(500, Duration::ZERO), 0);
        assert_eq!(per_second(u64::MAX, Duration::from_nanos(1)), u64::MAX);
    }

    #[test]
    fn times_and_sizes() {
        assert_eq!(span(Duration::from_millis(850)), "850 ms");
        assert_eq!(span(Duration::from_millis(1_250)), "1.25 s");
        assert_eq!(span(Duration::from_secs(3)), "3 s");
        assert_eq!(span(Duration::from_millis(75_400)), "75 s");
        assert_eq!(bytes(10 * 1024 * 1024), "10.0 MiB");
    }
}
