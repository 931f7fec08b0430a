//! A body on its way past the stubs, in the extensions of a request.

use std::sync::{Arc, Mutex};

use tonic::body::Body;

/// Extensions are cloned by name only; whoever comes first takes the body.
#[derive(Clone, Debug)]
pub(super) struct Swap(Arc<Mutex<Option<Body>>>);

impl Swap {
    pub(super) fn new(body: Body) -> Self {
        Self(Arc::new(Mutex::new(Some(body))))
    }

    pub(super) fn take(&self) -> Option<Body> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
    }
}
