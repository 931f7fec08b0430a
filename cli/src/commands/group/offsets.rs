//! Committed offsets as JSON: `group export`, and the first half of `group import`.

use std::{io::Read, path::Path};

use serde::{Deserialize, Serialize};
use tidemill_client::{Client, ErrorCode, ResetTo, TopicPartition};

use crate::{commands::connect::failed, error::CliError, output};

/// Longest file, bytes.
const MAX_BYTES: u64 = 64 << 20;
/// What a file says that it is.
const KIND: &str = "tidemill-offsets";
/// The version of the file.
const VERSION: u32 = 1;

/// The file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    kind: String,
    version: u32,
    group: String,
    offsets: Vec<Offset>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Offset {
    topic: String,
    partition: u32,
    offset: i64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    metadata: String,
}

pub(super) async fn export(client: &Client, name: &str) -> Result<(), CliError> {
    let all = client.groups().committed(name, &[]).await.map_err(|e| failed(&e))?;
    let offsets: Vec<Offset> = all
        .into_iter()
        .filter_map(|c| {
            Some(Offset {
                topic: c.source.topic.to_string(),
                partition: c.source.partition,
                offset: c.offset?,
                metadata: c.metadata,
            })
        })
        .collect();
    if offsets.is_empty() {
        let why = "it has committed no offsets";
        return Err(CliError::new(format!("export group {name}"), why, ErrorCode::UnknownGroup)
            .help("`tidemill group list` shows the groups"));
    }
    let file = File { kind: KIND.to_owned(), version: VERSION, group: name.to_owned(), offsets };
    let text = serde_json::to_string_pretty(&file)
        .map_err(|e| CliError::new("output", e.to_string(), ErrorCode::Internal))?;
    output::print(&format!("{text}\n"))
}

/// The bytes of a file or of standard input.
pub(super) fn read(file: &Path) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let from: Box<dyn Read> = if file == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(
            std::fs::File::open(file)
                .map_err(|e| CliError::usage(file.display().to_string(), e.to_string()))?,
        )
    };
    from.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| CliError::usage(file.display().to_string(), e.to_string()))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(CliError::usage(file.display().to_string(), format!("more than {MAX_BYTES} bytes")));
    }
    Ok(bytes)
}

pub(super) fn parse(bytes: &[u8]) -> Result<ResetTo, CliError> {
    let wrong =
        |why: String| CliError::usage("import", why).help("it takes what `tidemill group export` printed");
    let file: File = serde_json::from_slice(bytes).map_err(|e| wrong(e.to_string()))?;
    if file.kind != KIND || file.version != VERSION {
        return Err(wrong(format!(
            "{:?} of version {}, {KIND:?} of version {VERSION} expected",
            file.kind, file.version
        )));
    }
    let exact = file.offsets.into_iter().map(|o| {
        (TopicPartition { topic: o.topic.as_str().into(), partition: o.partition }, o.offset, o.metadata)
    });
    Ok(ResetTo::Exact(exact.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_back_and_other_files_are_refused() {
        let text = r#"{"kind":"tidemill-offsets","version":1,"group":"g","offsets":[
            {"topic":"a","partition":3,"offset":7},{"topic":"b","partition":0,"offset":0,"metadata":"m"}]}"#;
        let ResetTo::Exact(all) = parse(text.as_bytes()).unwrap() else { panic!() };
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].1, all[1].2.as_str()), (7, "m"));
        for bad in [
            "",
            "{}",
            &text.replace("\"version\":1", "\"version\":2"),
            &text.replace("tidemill-offsets", "x"),
            &text.replace("\"partition\":3", "\"partition\":-3"),
            &text.replace("\"offset\":7", "\"offset\":7,\"x\":1"),
        ] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
