//! One operation per file.

mod commit;
mod declare;
mod delete;
mod fetch;
mod heartbeat;
mod join;
mod leave;
mod reset;
mod tick;
