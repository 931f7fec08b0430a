//! The log against openraft's conformance suite, and against crashes.

mod crash;
mod suite;
