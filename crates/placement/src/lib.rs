//! The planner: partitions to brokers, ensembles to bookies.
