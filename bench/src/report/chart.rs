//! Charts as SVG: bars of throughput, percentiles of latency on a logarithmic axis.

use std::fmt::Write;

use super::Results;
use crate::outcome::{Outcome, median};

const WIDTH: f64 = 760.0;
const LEFT: f64 = 190.0;
const ROW: f64 = 26.0;
const COLOURS: [&str; 6] = ["#1b6ca8", "#d1495b", "#edae49", "#66a182", "#8d6a9f", "#555555"];

/// File names and contents.
pub(super) fn all(results: &Results) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for work in &results.work {
        let name = |kind: &str| {
            let plain: String = work
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
                .collect();
            format!("{kind}-{plain}.svg")
        };
        if work.starts_with("write") || work.starts_with("read") {
            let bars = values(results, work, |o| Some(o.rate()));
            out.extend(bars_chart(&format!("{work}: records/s"), &bars).map(|svg| (name("rate"), svg)));
        } else {
            let rows: Vec<(String, [f64; 3])> = results
                .systems
                .iter()
                .filter_map(|s| {
                    let runs = s.runs.get(work)?;
                    let at = |f: fn(&Outcome) -> Option<f64>| median(runs.iter().filter_map(f));
                    let p50 = at(|o| o.printed.latency_us.map(|l| l.p50 / 1e3))?;
                    let p99 = at(|o| o.printed.latency_us.map(|l| l.p99 / 1e3))?;
                    let p999 = at(|o| o.printed.latency_us.map(|l| l.p999 / 1e3))?;
                    Some((s.name.clone(), [p50, p99, p999]))
                })
                .collect();
            out.extend(
                percentiles(&format!("{work}: ms, p50 / p99 / p99.9"), &rows)
                    .map(|svg| (name("latency"), svg)),
            );
        }
    }
    out
}

fn values(results: &Results, work: &str, of: fn(&Outcome) -> Option<f64>) -> Vec<(String, f64)> {
    let one =
        |s: &super::SystemResults| Some((s.name.clone(), median(s.runs.get(work)?.iter().filter_map(of))?));
    results.systems.iter().filter_map(one).collect()
}

fn begin(title: &str, rows: usize) -> (String, f64) {
    let height = 60.0 + ROW * f64::from(u32::try_from(rows).unwrap_or(u32::MAX));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    text(&mut svg, 10.0, 22.0, "start", title);
    (svg, height)
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, what: &str) {
    let what = what.replace('&', "&amp;").replace('<', "&lt;");
    let _infallible = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{what}</text>");
}

fn rows<T>(all: &[(String, T)]) -> impl Iterator<Item = (f64, &'static str, &str, &T)> {
    let tops = (0_u32..).map(|i| 40.0 + ROW * f64::from(i));
    all.iter().zip(tops).zip(COLOURS.iter().cycle()).map(|(((n, v), top), c)| (top, *c, n.as_str(), v))
}

fn bars_chart(title: &str, bars: &[(String, f64)]) -> Option<String> {
    let most = bars.iter().map(|(_, v)| *v).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let (mut svg, _) = begin(title, bars.len());
    for (top, colour, name, v) in rows(bars) {
        let width = (WIDTH - LEFT - 110.0) * v / most;
        text(&mut svg, LEFT - 8.0, top + 16.0, "end", name);
        let _infallible = writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"20\" fill=\"{colour}\"/>"
        );
        text(&mut svg, LEFT + width + 6.0, top + 16.0, "start", &format!("{v:.0}"));
    }
    Some(svg + "</svg>\n")
}

fn percentiles(title: &str, all: &[(String, [f64; 3])]) -> Option<String> {
    let points = || all.iter().flat_map(|(_, p)| *p).filter(|v| *v > 0.0);
    let (low, high) = (points().fold(f64::INFINITY, f64::min), points().fold(0.0, f64::max));
    if !low.is_finite() || high <= 0.0 {
        return None;
    }
    let (from, to) = (low.log10().floor(), high.log10().ceil().max(low.log10().floor() + 1.0));
    let x = |v: f64| LEFT + (WIDTH - LEFT - 30.0) * (v.max(low).log10() - from) / (to - from);
    let (mut svg, height) = begin(title, all.len());
    let mut power = from;
    while power <= to {
        let at = x(10_f64.powf(power));
        let bottom = height - 22.0;
        let _infallible = writeln!(
            svg,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"34\" y2=\"{bottom:.1}\" stroke=\"#cccccc\"/>"
        );
        text(&mut svg, at, height - 8.0, "middle", &format!("{}", 10_f64.powf(power)));
        power += 1.0;
    }
    for (top, colour, name, [p50, p99, p999]) in rows(all) {
        text(&mut svg, LEFT - 8.0, top + 16.0, "end", name);
        let (a, b) = (x(*p50), x(*p999));
        let y = top + 11.0;
        let _infallible = writeln!(
            svg,
            "<line x1=\"{a:.1}\" x2=\"{b:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\" stroke-width=\"3\"/>"
        );
        for (v, r) in [(p50, 6.0), (p99, 4.5), (p999, 3.0)] {
            let _infallible =
                writeln!(svg, "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"{r}\" fill=\"{colour}\"/>", x(*v));
        }
    }
    Some(svg + "</svg>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_show_every_row_and_escape_names() {
        let svg = bars_chart("t", &[("a<b".into(), 1.0), ("c".into(), 2.0)]).unwrap();
        assert_eq!(svg.matches("<rect x=").count(), 2);
        assert!(svg.contains("a&lt;b") && svg.ends_with("</svg>\n"));
        assert!(bars_chart("t", &[]).is_none());
        let svg = percentiles("t", &[("a".into(), [0.5, 5.0, 50.0])]).unwrap();
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(percentiles("t", &[("a".into(), [0.0; 3])]).is_none());
    }
}
