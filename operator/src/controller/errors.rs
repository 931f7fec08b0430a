//! Errors of a pass.

use tidemill_crd::{Outcome, Verdict};

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

    /// The verdict of an object for which the API server denied a verb (rule 18): only a person helps, and the message names
    /// the verb. `None` for any other failure.
    #[must_use]
    pub fn denied(&self) -> Option<Verdict> {
        let Self::Kube { what, source: kube::Error::Api(s) } = self else { return None };
        let why = format!("{what}: the operator has no right to do this: {}", s.message);
        (s.code == 403).then(|| Verdict::new(Outcome::Rejected, "Forbidden", why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: u16) -> PassError {
        let status = kube::core::Status {
            code,
            message: "pods is forbidden: User \"x\" cannot list resource \"pods\"".to_owned(),
            ..kube::core::Status::default()
        };
        PassError::kube("reading children")(kube::Error::Api(Box::new(status)))
    }

    #[test]
    fn rule_18_a_denied_verb_is_named_and_not_tried_again_and_again() {
        let verdict = of(403).denied().unwrap();
        assert_eq!((verdict.outcome, verdict.reason.as_str()), (Outcome::Rejected, "Forbidden"));
        assert!(verdict.message.contains("cannot list resource \"pods\""), "{}", verdict.message);
        assert_eq!(of(500).denied(), None);
        assert_eq!(PassError::Actions("x".into()).denied(), None);
    }
}
