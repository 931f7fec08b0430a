//! The page of error codes says what the code says: every code has a line, with its status and whether to retry.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tidemill_types::{ErrorCode, StatusClass};

/// The rows of the table: code to (status, retry). The first column alone is code in backquotes.
fn rows(page: &str) -> BTreeMap<String, (String, String)> {
    let mut rows = BTreeMap::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        if let [code, status, retry, meaning, action] = cells[..]
            && let Some(code) = code.strip_prefix('`').and_then(|code| code.strip_suffix('`'))
        {
            assert!(!meaning.is_empty() && !action.is_empty(), "{code} says nothing");
            let row = (status.trim_matches('`').to_owned(), retry.to_owned());
            assert!(rows.insert(code.to_owned(), row).is_none(), "{code} has two lines");
        }
    }
    rows
}

/// `NotFound` as gRPC writes it: `NOT_FOUND`.
fn status_name(class: StatusClass) -> String {
    let mut name = String::new();
    for letter in format!("{class:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

#[test]
fn every_error_code_has_a_line_and_no_line_is_left_over() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors/README.md");
    let mut rows = rows(&fs::read_to_string(path).unwrap());
    for &code in ErrorCode::ALL {
        let (status, retry) = rows.remove(code.wire()).unwrap_or_else(|| panic!("{code} has no line"));
        assert_eq!(status, status_name(code.class()), "status of {code}");
        assert_eq!(retry, if code.retryable() { "yes" } else { "no" }, "retry of {code}");
    }
    assert!(rows.is_empty(), "no such codes: {:?}", rows.keys());
}
