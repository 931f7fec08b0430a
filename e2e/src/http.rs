//! HTTP, for `/readyz` and `/metrics`, and for buckets.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result};

/// Status code and body of `path`.
///
/// # Errors
/// Nobody answers, or not with HTTP.
pub fn get(addr: SocketAddr, path: &str) -> Result<(u16, String)> {
    request(addr, "GET", path, "")
}

/// Status code and body of a request with a body.
///
/// # Errors
/// Nobody answers, or not with HTTP.
pub fn request(addr: SocketAddr, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
    let mut s = TcpStream::connect_timeout(&addr, Duration::from_secs(1))?;
    s.set_read_timeout(Some(Duration::from_secs(5)))?;
    let length = body.len();
    write!(
        s,
        "{method} {path} HTTP/1.1\r\nhost: {addr}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )?;
    let mut text = String::new();
    s.read_to_string(&mut text)?;
    let code = text.split(' ').nth(1).and_then(|c| c.parse().ok()).context("no status line")?;
    let body = text.split_once("\r\n\r\n").map(|(_, b)| b.to_owned()).unwrap_or_default();
    Ok((code, body))
}
