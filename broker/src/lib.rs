//! Broker: the stateless serving role.
