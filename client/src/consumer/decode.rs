//! From a fetch answer to events: one partition at a time, records as slices of the fetched bytes.

use std::collections::VecDeque;

use tidemill_proto::v1::{self, gap::Kind};
use tidemill_record::{BatchHeader, Limits, check_stored, records};

use super::{ConsumedBatch, ConsumedRecord, Event, Gap, GapKind, TopicPartition, state::Staged};

/// What a fetched partition comes to.
pub(super) struct Decoded {
    pub(super) events: VecDeque<Staged>,
    /// The next fetch begins here.
    pub(super) next: i64,
    /// Nothing more until a seek.
    pub(super) stop: bool,
}

/// Decodes what came for `source` from `from` on.
pub(super) fn decode(
    source: &TopicPartition,
    generation: u64,
    from: i64,
    fetched: v1::FetchedPartition,
    limits: &Limits,
) -> Decoded {
    let mut d = Decoded { events: VecDeque::new(), next: from, stop: false };
    if let Some(g) = &fetched.gap
        && g.to > d.next
    {
        let kind = match g.kind() {
            Kind::Trimmed => GapKind::Trimmed,
            Kind::Compacted => GapKind::Compacted,
            Kind::DataLoss | Kind::Unspecified => GapKind::DataLoss,
        };
        d.next = g.to;
        let gap = Gap { source: source.clone(), kind, from: g.from.max(from), to: g.to };
        d.stage(source, generation, Some(Event::Gap(gap)));
    }
    for b in fetched.batches {
        match batch(source, fetched.high_watermark, d.next, &b, limits) {
            Ok((records, end)) => {
                d.next = d.next.max(end);
                d.stage(source, generation, records.map(Event::Batch));
            }
            Err(corrupt) => {
                // What could be read before the damage comes first.
                if let Some(records) = corrupt.before {
                    d.next = corrupt.offset;
                    d.stage(source, generation, Some(Event::Batch(records)));
                }
                d.next = d.next.max(corrupt.offset);
                let event = Event::Corrupt {
                    source: source.clone(),
                    offset: d.next,
                    next_offset: corrupt.next.max(d.next + 1),
                    message: corrupt.message,
                };
                d.stage(source, generation, Some(event));
                d.stop = true;
                return d;
            }
        }
    }
    // Offsets at the end without records, such as those of markers.
    if fetched.next_offset > d.next {
        d.next = fetched.next_offset;
        d.stage(source, generation, None);
    }
    d
}

impl Decoded {
    fn stage(&mut self, source: &TopicPartition, generation: u64, event: Option<Event>) {
        let position = Some(self.next);
        self.events.push_back(Staged { source: source.clone(), generation, position, event });
    }
}

struct Damage {
    before: Option<ConsumedBatch>,
    offset: i64,
    next: i64,
    message: String,
}

/// Records of one batch from `from` on (`None`: it has none), and the offset behind it.
fn batch(
    source: &TopicPartition,
    high_watermark: i64,
    from: i64,
    b: &v1::FetchedBatch,
    limits: &Limits,
) -> Result<(Option<ConsumedBatch>, i64), Damage> {
    let base = b.base_offset;
    // As far as the header can be read, a damaged batch can be stepped over as a whole.
    let claimed = BatchHeader::parse(&b.batch).map_or(0, |h| i64::from(h.last_offset_delta.max(0)));
    let end = base.saturating_add(claimed).saturating_add(1);
    let damage = |before, offset: i64, message: String| Damage { before, offset, next: end, message };
    let header = check_stored(&b.batch, limits).map_err(|e| damage(None, base.max(from), e.to_string()))?;
    if header.attributes.is_control() {
        return Ok((None, end));
    }
    let opened = records(&b.batch, limits).map_err(|e| damage(None, base.max(from), e.to_string()))?;
    let count = usize::try_from(header.count).unwrap_or(0);
    let mut out = ConsumedBatch {
        source: source.clone(),
        append_time: b.append_time_ms,
        high_watermark,
        records: Vec::with_capacity(count),
    };
    let mut reached = base;
    for record in opened {
        match record {
            Ok(r) => {
                let offset = base.saturating_add(i64::from(r.offset_delta));
                reached = offset + 1;
                // The first batch can begin before the asked offset.
                if offset >= from {
                    let (key, value, headers) = (r.key, r.value, r.headers);
                    out.records.push(ConsumedRecord { offset, timestamp: r.timestamp, key, value, headers });
                }
            }
            Err(e) => {
                let before = (!out.records.is_empty()).then_some(out);
                return Err(damage(before, reached.max(from), e.to_string()));
            }
        }
    }
    Ok(((!out.records.is_empty()).then_some(out), end))
}
