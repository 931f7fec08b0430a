//! The Kubernetes operator of Tidemill: reconciles Cluster, Topic and ConsumerGroup.
