//! The gRPC services, one call per file.

mod add;
mod control;
mod fence;
mod info;
mod lac;
mod list;
mod read;
mod recovery_add;
mod sink;

pub(crate) use add::AddService as DataService;
pub(crate) use control::ControlService;
pub(crate) use recovery_add::run as recovery_add;
