//! Tidemill on Kubernetes: a real API server, kubelets and containers, the real image.
//!
//! `cargo xtask e2e` runs these; see `e2e/README.md`. They share one cluster and one operator, each in a namespace of its
//! own. Those that take long are ignored unless the full run is asked for.

mod charts;
mod deletion;
mod flux;
mod gitops;
mod groups;
mod growth;
mod helm;
mod image;
mod kills;
mod manifests;
mod merge;
mod nodes;
mod operators;
mod quickstart;
mod rights;
mod roles;
mod rolling;
mod rules;
mod scale;
mod steady;
mod thousand;
mod topics;
mod verdict;
mod verdict_topic;
mod volumes;
