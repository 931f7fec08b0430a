//! What is done with arbitrary bytes that claim to be a request to a bookie.

use prost::Message;
use tidemill_proto::{bookie, convert::parse_identity};
use tidemill_types::Entry;

/// The first byte chooses the message. Gives 1 when the bytes were understood.
pub(crate) fn exercise(data: &[u8]) -> usize {
    let Some((choice, data)) = data.split_first() else { return 0 };
    let understood = match choice % 7 {
        0 => {
            let read = alike::<bookie::AddRequest>(data);
            read.iter().flat_map(|r| &r.adds).for_each(|a| entry(&a.entry));
            identity(read.as_ref().and_then(|r| r.hello.as_ref()));
            read.is_some()
        }
        1 => {
            let read = alike::<bookie::RecoveryAddRequest>(data);
            read.iter().flat_map(|r| &r.entries).for_each(entry);
            identity(read.as_ref().and_then(|r| r.identity.as_ref()));
            read.is_some()
        }
        2 => alike::<bookie::ReadRequest>(data).is_some(),
        3 => alike::<bookie::FenceRequest>(data).is_some(),
        4 => alike::<bookie::ReadLacRequest>(data).is_some(),
        5 => alike::<bookie::WriteLacRequest>(data).is_some(),
        _ => alike::<bookie::ListRangesRequest>(data).is_some(),
    };
    usize::from(understood)
}

/// What was read is written and read alike.
fn alike<M: Message + Default + PartialEq + std::fmt::Debug>(data: &[u8]) -> Option<M> {
    let message = M::decode(data).ok()?;
    let again = M::decode(&message.encode_to_vec()[..]);
    assert_eq!(again.as_ref(), Ok(&message));
    Some(message)
}

/// An entry that is understood is exactly its bytes: that is what its digest covers.
fn entry(bytes: &bytes::Bytes) {
    if let Ok(entry) = Entry::decode(bytes.clone()) {
        assert_eq!(entry.bytes(), bytes);
    }
}

fn identity(identity: Option<&bookie::Identity>) {
    if let Some(i) = identity
        && let Ok((cluster, id, _)) = parse_identity(i)
    {
        assert_eq!(
            (cluster.0.as_bytes().to_vec(), id.0.as_bytes().to_vec()),
            (i.cluster.clone(), i.bookie.clone())
        );
    }
}
