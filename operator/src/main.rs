//! `tidemill-operator`.

fn main() {}
