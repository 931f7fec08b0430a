//! Output in the form that `-o` asks for.

use serde_json::Value;
use tidemill_types::ErrorCode;

use super::Output;
use crate::{error::CliError, output};

/// Rows of a listing: the name, the columns of a table, more columns of `wide`, and the whole as JSON.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) wide: Vec<String>,
    pub(crate) json: Value,
}

/// Prints rows; `heads` and `wide_heads` name the columns.
pub(crate) fn print(
    form: Output,
    heads: &[&str],
    wide_heads: &[&str],
    rows: Vec<Row>,
) -> Result<(), CliError> {
    match form {
        Output::Name => output::print(&rows.iter().map(|r| format!("{}\n", r.name)).collect::<String>()),
        Output::Json => json(&Value::Array(rows.into_iter().map(|r| r.json).collect())),
        Output::Yaml => yaml(&Value::Array(rows.into_iter().map(|r| r.json).collect())),
        Output::Table => output::print(&columns(heads, rows.into_iter().map(|r| r.columns).collect())),
        Output::Wide => {
            let heads: Vec<&str> = heads.iter().chain(wide_heads).copied().collect();
            let rows = rows.into_iter().map(|r| r.columns.into_iter().chain(r.wide).collect()).collect();
            output::print(&columns(&heads, rows))
        }
    }
}

/// Prints one object: `text` for people, the value for programs.
pub(crate) fn object(form: Output, name: &str, text: &str, value: &Value) -> Result<(), CliError> {
    match form {
        Output::Name => output::print(&format!("{name}\n")),
        Output::Json => json(value),
        Output::Yaml => yaml(value),
        Output::Table | Output::Wide => output::print(text),
    }
}

fn json(value: &Value) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).map_err(|e| internal(&e.to_string()))?;
    output::print(&format!("{text}\n"))
}

fn yaml(value: &Value) -> Result<(), CliError> {
    output::print(&serde_saphyr::to_string(value).map_err(|e| internal(&e.to_string()))?)
}

fn internal(why: &str) -> CliError {
    CliError::new("output", why, ErrorCode::Internal)
}

/// Left-aligned columns, two spaces apart.
pub(crate) fn columns(heads: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut all: Vec<Vec<String>> = vec![heads.iter().map(|h| (*h).to_owned()).collect()];
    all.extend(rows);
    let width = |i: usize| all.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut out = String::new();
    for row in &all {
        let mut line = String::new();
        for (cell, w) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:<w$}  "));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let text =
            columns(&["NAME", "N"], vec![vec!["a".into(), "1".into()], vec!["longer".into(), "22".into()]]);
        assert_eq!(text, "NAME    N\na       1\nlonger  22\n");
    }
}
