//! Sockets: of the kernel, or of the simulation that this thread belongs to.

mod dial;
mod listen;
mod socket;

pub use dial::{connect, lazy};
pub use listen::{BindError, Incoming, Listener, bind};
pub use socket::Socket;
