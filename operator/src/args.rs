//! The command line.

use std::net::SocketAddr;

use clap::{Parser, ValueEnum};

/// Runs Tidemill on Kubernetes: makes Clusters, Topics and ConsumerGroups what their specs say.
///
/// It finds the API server by KUBECONFIG, or by its service account inside a pod. Several may run: one leads, the others
/// wait. Without the custom resource definitions it waits for them and says so on /readyz.
#[derive(Clone, Debug, Parser)]
#[command(name = "tidemill-operator", version)]
pub struct Args {
    /// Watch this namespace only; all when absent.
    #[arg(long, env = "WATCH_NAMESPACE")]
    pub namespace: Option<String>,
    /// Image of Tidemill without its tag.
    #[arg(long, env = "IMAGE_REPOSITORY", default_value = "tidemill")]
    pub image_repository: String,
    /// Tag of the image of a Cluster that names neither version nor image.
    #[arg(long, env = "DEFAULT_VERSION", default_value = env!("CARGO_PKG_VERSION"))]
    pub default_version: String,
    /// DNS domain of the Kubernetes cluster.
    #[arg(long, env = "CLUSTER_DOMAIN", default_value = "cluster.local")]
    pub cluster_domain: String,
    /// Address of the HTTP port: /metrics, /livez, /readyz.
    #[arg(long, env = "HTTP_LISTEN", default_value = "0.0.0.0:7451")]
    pub http: SocketAddr,
    /// Namespace of the Lease for leader election.
    #[arg(long, env = "POD_NAMESPACE", default_value = "default")]
    pub lease_namespace: String,
    /// Name of the Lease.
    #[arg(long, env = "LEASE_NAME", default_value = "tidemill-operator")]
    pub lease_name: String,
    /// Name of this process in the Lease; unique. The pod's name by default.
    #[arg(long, env = "POD_NAME")]
    pub identity: Option<String>,
    /// What is logged, such as info or info,tidemill_operator=debug.
    #[arg(long, env = "LOG", default_value = "info,kube_runtime=warn,kube_client=warn")]
    pub log: String,
    /// Form of log lines.
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value = "json")]
    pub log_format: LogForm,
}

/// Form of log lines.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LogForm {
    /// Text.
    Text,
    /// One JSON object per line.
    Json,
}
