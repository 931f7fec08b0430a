//! Answers of adds, gathered so that each connection is called once.

use std::{collections::HashMap, sync::Arc};

use crate::outcome::{AckSink, AckTo, AddOutcome};

type Batch = (Arc<dyn AckSink>, Vec<(u64, AddOutcome)>);

#[derive(Default)]
pub(crate) struct Acks {
    /// In the order of first use.
    batches: Vec<Batch>,
    by_sink: HashMap<*const (), usize>,
}

impl Acks {
    pub(crate) fn push(&mut self, ack: AckTo, outcome: AddOutcome) {
        let i = *self.by_sink.entry(Arc::as_ptr(&ack.sink).cast()).or_insert_with(|| {
            self.batches.push((ack.sink, Vec::new()));
            self.batches.len() - 1
        });
        self.batches[i].1.push((ack.request, outcome));
    }

    pub(crate) fn send(self) {
        for (sink, acks) in self.batches {
            sink.acked(acks);
        }
    }
}
