//! Errors of a pass.

/// A pass that did not come to an end. It is tried again with back-off.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// The API server.
    #[error("{what}: {source}")]
    Kube {
        /// What was tried.
        what: &'static str,
        /// The error.
        #[source]
        source: kube::Error,
    },
    /// Some actions failed; the status says which.
    #[error("{0}")]
    Actions(String),
}

impl PassError {
    pub(crate) fn kube(what: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self::Kube { what, source }
    }

    /// The API server denied a verb.
    #[must_use]
    pub fn forbidden(&self) -> bool {
        matches!(self, Self::Kube { source: kube::Error::Api(s), .. } if s.code == 403)
    }
}
