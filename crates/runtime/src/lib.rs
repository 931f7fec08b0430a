//! Supervisor, clock, disk, configuration, telemetry, health.
