//! What is done with arbitrary bytes that claim to be a file of the raft log.

/// Gives how many records were understood. A first byte of 1 has the checksum of the header made right, so that what is behind it is
/// reached.
pub(crate) fn exercise(data: &[u8]) -> usize {
    let Some((choice, data)) = data.split_first() else { return 0 };
    let mut data = data.to_vec();
    if choice % 2 == 1 && data.len() >= 64 {
        let crc = tidemill_types::entry::crc32c(&[&data[..60]]);
        data[60..64].copy_from_slice(&crc.to_le_bytes());
    }
    match tidemill_meta::recode::log_file(&data) {
        Ok(records) => records,
        Err(why) => unreachable!("{why}"),
    }
}
