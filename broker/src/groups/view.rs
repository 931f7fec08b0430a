//! What coordinators need of the metadata: topics and configurations of groups.

use std::{collections::BTreeMap, sync::Arc};

use tidemill_group::{TopicEntry, Topics};
use tidemill_meta_client::{MetaTable, ViewEvent};
use tidemill_types::{GroupConfig, GroupName, meta::Change};

/// As of one moment; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub(crate) topics: Arc<Topics>,
    pub(crate) configs: Arc<BTreeMap<GroupName, Arc<GroupConfig>>>,
}

impl View {
    pub(super) fn of(table: &MetaTable) -> Self {
        let live = table
            .topics()
            .filter(|t| !t.deleting && !table.is_tombstone(t.id))
            .map(|t| (t.name.clone(), TopicEntry { id: t.id, partitions: t.partitions }));
        // Either can come back.
        let kept = table.topics().filter(|t| t.deleting || table.is_tombstone(t.id)).map(|t| t.id);
        Self { topics: Arc::new(Topics::new(live, kept)), configs: Self::configs(table) }
    }

    fn configs(table: &MetaTable) -> Arc<BTreeMap<GroupName, Arc<GroupConfig>>> {
        Arc::new(table.groups().map(|g| (g.name.clone(), Arc::new(g.config.clone()))).collect())
    }
}

/// Whether an event can change a view.
pub(super) fn matters(event: &ViewEvent) -> bool {
    match event {
        ViewEvent::Reload => true,
        ViewEvent::Changes(w) => w.changes.iter().any(|c| {
            matches!(
                c,
                Change::Topic(_)
                    | Change::TopicRemoved(_)
                    | Change::TopicControl(_)
                    | Change::Group(_)
                    | Change::GroupRemoved(_)
            )
        }),
    }
}
