//! A Kubernetes cluster: the one that `KUBECONFIG` names, through `kubectl` and `helm` as a person would use them.
//!
//! `cargo xtask e2e` starts one, has the image on its nodes, and names both in the environment.

mod client;
mod cluster;
mod forward;
mod judges;
mod kubectl;
mod namespace;
mod nodes;
mod operator;
mod report;
mod wait;

pub use client::{Job, consume_numbers, produce_numbers};
pub use cluster::{CLUSTER, Size, cluster, together, topic};
pub use forward::Forward;
pub use judges::{argo, kstatus};
pub use kubectl::{
    apply, condition, delete, exec, get, image, kubectl, kubectl_with, list, next_image, patch, ready,
    refused,
};
pub use namespace::Namespace;
pub use nodes::{drain, kill_node, start_node, uncordon};
pub use operator::{Operator, checkout};
pub use report::seen;
pub use wait::until;
