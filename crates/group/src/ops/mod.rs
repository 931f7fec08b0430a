//! One operation per file.

mod commit;
mod delete;
mod fetch;
mod heartbeat;
mod join;
mod leave;
mod tick;
