//! One TCP stream on loopback.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    time::{Duration, Instant},
};

use super::Limit;
use crate::outcome::as_f64;

const WRITE_BYTES: usize = 256 << 10;

pub(super) fn measure(seconds: u64) -> anyhow::Result<Limit> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let at = listener.local_addr()?;
    let writer = std::thread::spawn(move || -> std::io::Result<()> {
        let mut to = TcpStream::connect(at)?;
        let (bytes, begin) = (vec![1; WRITE_BYTES], Instant::now());
        while begin.elapsed() < Duration::from_secs(seconds) {
            to.write_all(&bytes)?;
        }
        Ok(())
    });
    let (mut from, _) = listener.accept()?;
    let (mut buffer, mut sum, begin) = (vec![0; WRITE_BYTES], 0_u64, Instant::now());
    loop {
        match from.read(&mut buffer)? {
            0 => break,
            n => sum += n as u64,
        }
    }
    let took = begin.elapsed().as_secs_f64();
    writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))??;
    Ok(Limit {
        name: "loopback TCP, one stream".to_owned(),
        bytes_per_second: as_f64(sum) / took,
        p50_us: None,
        p99_us: None,
    })
}
