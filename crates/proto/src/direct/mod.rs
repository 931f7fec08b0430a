//! Bodies without copies: the messages that carry the payload of the write path travel between the transport and the
//! caller by reference, with the very bytes on the wire that the generated stubs would send and understand.
//!
//! The stubs encode a message into one buffer and gather a received one in another: two copies per hop. Here a sender
//! hands its payload to HTTP/2 as it is ([`send`]), and a receiver gets slices of the frames that came in
//! ([`receive`]). Everything else of a call (headers, answers, errors) stays with the stubs: only the body of the
//! request is exchanged, by [`Sending`] at the client and [`Receiving`] at the server.

mod pieces;
mod receive;
mod rope;
mod send;
mod swap;

pub use self::{
    pieces::Pieces,
    receive::{Inbound, Receiving},
    send::{NoMessages, Pieced, Sending, outbound},
};
