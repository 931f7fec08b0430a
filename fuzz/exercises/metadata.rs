//! What is done with arbitrary bytes that claim to be a command, an answer, a snapshot or another message of the metadata.

use tidemill_metadata::{
    CodecError, State, decode_answer, decode_positions, decode_query, decode_request, decode_result,
    decode_view, decode_watched, encode_answer, encode_positions, encode_query, encode_request,
    encode_result, encode_view, encode_watched,
};
use tidemill_types::Revision;

/// The first byte chooses the kind. Gives 1 when the bytes were understood.
pub(crate) fn exercise(data: &[u8]) -> usize {
    let Some((choice, data)) = data.split_first() else { return 0 };
    let understood = match choice % 8 {
        0 => request(data),
        1 => alike(data, decode_result, encode_result),
        2 => query(data),
        3 => alike(data, decode_answer, encode_answer),
        4 => alike(data, decode_watched, encode_watched),
        5 => alike(data, decode_view, encode_view),
        6 => alike(data, decode_positions, encode_positions),
        _ => snapshot(data),
    };
    usize::from(understood)
}

type Decode<T> = fn(&[u8]) -> Result<T, CodecError>;
type Encode<T> = fn(&T) -> Result<Vec<u8>, CodecError>;

fn alike<T: PartialEq + std::fmt::Debug>(data: &[u8], decode: Decode<T>, encode: Encode<T>) -> bool {
    let Ok(value) = decode(data) else { return false };
    let Ok(bytes) = encode(&value) else { unreachable!("what was read can be written") };
    assert_eq!(decode(&bytes).as_ref(), Ok(&value));
    true
}

/// Whatever was understood is applied to a state, where nothing may panic.
fn request(data: &[u8]) -> bool {
    if let Ok(request) = decode_request(data) {
        let mut state = State::new();
        state.apply(Revision(1), &request);
        state.apply(Revision(2), &request);
    }
    alike(data, decode_request, encode_request)
}

fn query(data: &[u8]) -> bool {
    if let Ok(query) = decode_query(data) {
        let _answer = State::new().query(&query);
    }
    alike(data, decode_query, encode_query)
}

fn snapshot(data: &[u8]) -> bool {
    let Ok(state) = State::decode(data) else { return false };
    let Ok(bytes) = state.snapshot().encode() else { unreachable!("what was read can be written") };
    let Ok(again) = State::decode(&bytes) else { unreachable!("and read again") };
    assert_eq!(again.snapshot().encode().ok(), Some(bytes));
    true
}
