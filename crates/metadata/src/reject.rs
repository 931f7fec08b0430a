//! Short ways to say no.

use std::fmt::Display;

use tidemill_types::meta::Rejection;

pub(crate) fn invalid(field: &str, why: impl Display) -> Rejection {
    Rejection::Invalid { field: field.to_owned(), why: why.to_string() }
}

pub(crate) fn conflict(why: impl Display) -> Rejection {
    Rejection::Conflict { why: why.to_string() }
}

pub(crate) fn not_found(what: &str, id: impl Display) -> Rejection {
    Rejection::NotFound { what: format!("{what} {id}") }
}
