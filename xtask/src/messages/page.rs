//! The page as text.

use std::fmt::Write;

use super::{
    parse::{File, Item, Kind},
    words::meaning,
};

const HEAD: &str = "# Messages, byte by byte

Written by `cargo xtask messages` out of [`proto/`](../../proto); a test compares the two. What the calls mean together stands on the
other pages.

## On the wire

All calls are gRPC over HTTP/2 without compression: `POST /PACKAGE.SERVICE/METHOD`, and in both directions each message as

| size | field |
| ---: | --- |
| 1 | 0 = not compressed |
| 4 | length of the message, big-endian |
| | the message |

A message is its fields one behind the other, in any order. Each begins with a varint `number * 8 + wire type`; a varint has 7 bits a byte, the low
ones first, the top bit set on all bytes but the last.

| type | wire type | bytes behind it |
| --- | ---: | --- |
| `bool`, `uint32`, `uint64`, an enum | 0 | varint |
| `int32`, `int64` | 0 | varint of the 64-bit two's complement: 10 bytes for a negative one |
| `fixed64` | 1 | 8, little-endian |
| `fixed32` | 5 | 4, little-endian |
| `string` (UTF-8), `bytes`, a message | 2 | length as varint, then the bytes |
| `repeated` numbers | 2 | length of all as varint, then the values; one by one is read as well |
| `repeated` of anything else | 2 | one field each, in order |
| `map<K, V>` | 2 | one message each: key = 1, value = 2 |

A field that is zero, empty or false is not sent, except `optional` ones and those of a `oneof`, of which at most one is there. Fields that are not
known are skipped. Numbers are never used again.

An error is the call's status with `google.rpc.ErrorInfo` in `grpc-status-details-bin` ([errors](../errors/README.md)).
";

pub(crate) fn page(files: &[(File, String)]) -> String {
    let mut out = HEAD.to_owned();
    for (file, path) in files {
        let _ = write!(out, "\n## `{}`: [{path}](../../{path})\n", file.package);
        if !file.doc.is_empty() {
            let _ = write!(out, "\n{}\n", file.doc);
        }
        for item in &file.items {
            render(item, &mut out);
        }
    }
    out
}

fn render(item: &Item, out: &mut String) {
    let kind = match item.kind {
        Kind::Service => "service ",
        Kind::Message => "",
        Kind::Enum => "enum ",
    };
    let _ = write!(out, "\n### {kind}`{}`\n", item.name);
    let doc = if item.doc.is_empty() { meaning("", &item.name).unwrap_or("") } else { &item.doc };
    if !doc.is_empty() {
        let _ = write!(out, "\n{doc}\n");
    }
    if item.lines.is_empty() {
        out.push_str("\nNo fields.\n");
        return;
    }
    out.push_str(match item.kind {
        Kind::Service => "\n| call | request -> answer | what |\n| --- | --- | --- |\n",
        Kind::Message => "\n| no. | type | field | what |\n| ---: | --- | --- | --- |\n",
        Kind::Enum => "\n| value | name | what |\n| ---: | --- | --- |\n",
    });
    for line in &item.lines {
        let one = line.oneof.as_ref().map(|o| format!("one of `{o}`. ")).unwrap_or_default();
        let (name, of, number) = (&line.name, &line.of, line.number);
        let what = if line.doc.is_empty() { silent(item, name, number) } else { &line.doc };
        let what = format!("{one}{what}").replace('|', "\\|");
        let _ = match item.kind {
            Kind::Service => writeln!(out, "| `{name}` | `{of}` | {what} |"),
            Kind::Message => writeln!(out, "| {number} | `{of}` | `{name}` | {what} |"),
            Kind::Enum => writeln!(out, "| {number} | `{name}` | {what} |"),
        };
    }
}

/// What a line is whose file says nothing of it.
fn silent<'a>(item: &'a Item, name: &str, number: u32) -> &'a str {
    match item.kind {
        Kind::Enum if number == 0 && name.ends_with("_UNSPECIFIED") => "Not set.",
        Kind::Service => meaning(&item.name, name).unwrap_or("As its messages say."),
        Kind::Enum | Kind::Message => meaning(&item.name, name).unwrap_or(""),
    }
}
