//! What every role stands on: supervisor, clock, disk, configuration, telemetry, health.

pub mod clock;
pub mod config;
pub mod defaults;
pub mod health;
pub mod http;
pub mod io;
pub mod net;
mod pace;
pub mod shutdown;
pub mod telemetry;
pub mod work;
pub mod world;

pub use clock::{Clock, ManualClock, SystemClock};
pub use health::Health;
pub use pace::Pace;
pub use shutdown::Supervisor;
pub use telemetry::Metrics;
