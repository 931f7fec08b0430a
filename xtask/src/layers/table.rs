//! The layers, lowest first, and the packages that belong to one crate alone.

/// A layer. The order of the variants is the order of the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Layer {
    /// 0: words. No runtime, no transport, no I/O.
    Words,
    /// 1: what everything stands on.
    Base,
    /// 2: pure engines and state machines, without a network.
    Engines,
    /// 3: clients of one service each.
    Clients,
    /// 4: a partition.
    PartitionLog,
    /// 5: the roles and the client library. They never depend on each other.
    Roles,
    /// 5b: what a user starts.
    Binaries,
    /// 6: tests, benchmarks and the project's commands. They may use anything, each other too.
    Tools,
}

impl Layer {
    /// The layer's number in ARCHITECTURE.md.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Words => "0",
            Self::Base => "1",
            Self::Engines => "2",
            Self::Clients => "3",
            Self::PartitionLog => "4",
            Self::Roles => "5",
            Self::Binaries => "5b",
            Self::Tools => "6",
        }
    }

    /// The layer of a member of the workspace; nothing for one that the table does not know.
    ///
    /// `meta-client` stands above `metadata` on purpose: the commands of the quorum are its types (docs/adr/0003 and
    /// 0005). What stays apart is `meta`, which alone knows how they are replicated.
    pub(super) fn of(package: &str) -> Option<Self> {
        Some(match package {
            "tidemill-types" => Self::Words,
            "tidemill-runtime" | "tidemill-proto" | "tidemill-record" | "tidemill-placement"
            | "tidemill-group" | "tidemill-history" => Self::Base,
            "tidemill-storage" | "tidemill-metadata" | "tidemill-crd" => Self::Engines,
            "tidemill-ledger" | "tidemill-offload" | "tidemill-meta-client" => Self::Clients,
            "tidemill-partition-log" => Self::PartitionLog,
            "tidemill-bookie" | "tidemill-broker" | "tidemill-meta" | "tidemill-client" => Self::Roles,
            "tidemill" | "tidemill-operator" => Self::Binaries,
            "tidemill-sim"
            | "tidemill-sim-cache"
            | "tidemill-sim-cluster"
            | "tidemill-sim-locks"
            | "tidemill-sim-storage"
            | "tidemill-e2e"
            | "tidemill-bench"
            | "xtask" => Self::Tools,
            _ => return None,
        })
    }
}

/// Packages that only some crates may name, so that replacing one touches one place.
pub(super) struct Guard {
    /// The guarded package, and every package whose name goes on with a dash.
    pub(super) package: &'static str,
    /// The crates that may name it.
    pub(super) only: Only,
}

/// Who may name a guarded package. The tools of layer 6 always may.
pub(super) enum Only {
    /// These crates.
    Crates(&'static [&'static str]),
    /// Every crate from this layer upwards.
    From(Layer),
}

/// All guards.
pub(super) const GUARDS: &[Guard] = &[
    Guard { package: "openraft", only: Only::Crates(&["tidemill-meta"]) },
    Guard { package: "kube", only: Only::Crates(&["tidemill-crd", "tidemill-operator"]) },
    Guard { package: "k8s-openapi", only: Only::Crates(&["tidemill-crd", "tidemill-operator"]) },
    Guard { package: "object_store", only: Only::Crates(&["tidemill-offload"]) },
    // Server-side code of gRPC starts with the roles.
    Guard { package: "tonic-health", only: Only::From(Layer::Roles) },
    Guard { package: "tonic-reflection", only: Only::From(Layer::Roles) },
];
