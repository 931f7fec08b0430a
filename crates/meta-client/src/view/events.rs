//! Changes as they come.

use std::sync::Arc;

use tidemill_types::meta::Watched;
use tokio::sync::broadcast::{Receiver, error::RecvError};

/// One event of the mirror; the table has it already when it is delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewEvent {
    /// Anything may have changed: read the table.
    Reload,
    /// The changes of one command.
    Changes(Arc<Watched>),
}

/// Receives events.
#[derive(Debug)]
pub struct MetaEvents {
    rx: Receiver<ViewEvent>,
}

impl MetaEvents {
    pub(super) fn new(rx: Receiver<ViewEvent>) -> Self {
        Self { rx }
    }

    /// The next event; [`ViewEvent::Reload`] as well when this receiver was too slow for what is kept. `None` when the
    /// mirror is gone.
    pub async fn next(&mut self) -> Option<ViewEvent> {
        match self.rx.recv().await {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(_)) => Some(ViewEvent::Reload),
            Err(RecvError::Closed) => None,
        }
    }
}
