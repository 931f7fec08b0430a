//! What is done with arbitrary bytes that claim to be a file, or a part of one, in a lane's folder.

use tidemill_storage::recode::{Format, read, seal};

/// The first byte chooses the format. Gives how many items were understood.
pub(crate) fn exercise(data: &[u8]) -> usize {
    let Some((choice, data)) = data.split_first() else { return 0 };
    let format = Format::ALL[usize::from(*choice) % Format::ALL.len()];
    let mut sealed = data.to_vec();
    seal(format, &mut sealed);
    one(format, data).max(one(format, &sealed))
}

fn one(format: Format, data: &[u8]) -> usize {
    let first = read(format, data);
    assert_eq!(first, read(format, data), "the same bytes are read alike");
    if let Some(again) = &first.again {
        let second = read(format, again);
        assert_eq!(
            second.again.as_ref(),
            Some(again),
            "{format:?}: what was written is read, and written alike"
        );
        assert_eq!(second.items, first.items);
    }
    assert!(first.items <= data.len());
    first.items
}
