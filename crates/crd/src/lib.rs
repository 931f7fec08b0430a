//! Custom resources of Tidemill (Cluster, Topic, ConsumerGroup) and the pure plan of topics and groups.
