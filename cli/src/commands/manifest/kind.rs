//! The kinds and their names.

use crate::error::CliError;

/// A kind of manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Cluster,
    Topic,
    ConsumerGroup,
}

impl Kind {
    /// By the name in a manifest.
    pub(super) fn of(kind: &str) -> Option<Self> {
        Some(match kind {
            "Cluster" => Self::Cluster,
            "Topic" => Self::Topic,
            "ConsumerGroup" => Self::ConsumerGroup,
            _ => return None,
        })
    }

    /// The name in a manifest.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::Topic => "Topic",
            Self::ConsumerGroup => "ConsumerGroup",
        }
    }

    /// By what a person types: singular, plural, short name.
    fn typed(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        Some(match text.strip_suffix(".tidemill.dev").unwrap_or(&text) {
            "topic" | "topics" | "tmt" => Self::Topic,
            "consumergroup" | "consumergroups" | "tmcg" => Self::ConsumerGroup,
            "cluster" | "clusters" | "tmc" => Self::Cluster,
            _ => return None,
        })
    }

    /// As kubectl writes it: `topic.tidemill.dev`.
    pub(crate) fn full(self) -> &'static str {
        match self {
            Self::Cluster => "cluster.tidemill.dev",
            Self::Topic => "topic.tidemill.dev",
            Self::ConsumerGroup => "consumergroup.tidemill.dev",
        }
    }
}

/// `KIND NAME...`, `KIND/NAME NAME...`.
pub(super) fn parse(text: &str, mut names: Vec<String>) -> Result<(Kind, Vec<String>), CliError> {
    let (kind, first) = text.split_once('/').map_or((text, None), |(k, n)| (k, Some(n)));
    let allowed = "topic (tmt) and consumergroup (tmcg)";
    let kind = Kind::typed(kind)
        .ok_or_else(|| CliError::usage("kind", format!("{kind:?} is given, allowed are {allowed}")))?;
    if kind == Kind::Cluster {
        return Err(CliError::usage("kind", "a cluster without Kubernetes is no object")
            .help("`tidemill cluster status` shows it"));
    }
    if let Some(first) = first {
        names.insert(0, first.to_owned());
    }
    Ok((kind, names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_as_kubectl_knows_them() {
        for text in ["topic", "topics", "tmt", "Topic", "topics.tidemill.dev"] {
            assert_eq!(parse(text, vec![]).unwrap(), (Kind::Topic, vec![]), "{text}");
        }
        let two = parse("tmcg/a", vec!["b".into()]).unwrap();
        assert_eq!(two, (Kind::ConsumerGroup, vec!["a".to_owned(), "b".to_owned()]));
        assert!(parse("pod", vec![]).unwrap_err().why.contains("allowed are"));
        assert!(parse("cluster", vec![]).is_err());
    }
}
