//! A broker of the protocol in this process.
