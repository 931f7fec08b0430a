//! Topics as one stream knows them: the table is asked again only when it changed.

use std::{collections::HashMap, sync::Arc};

use tidemill_types::Revision;

use crate::{core::Core, fault::Fault, route::Topic};

/// A stream that names more topics starts over.
const MAX_TOPICS: usize = 1_024;

pub(super) struct Topics {
    core: Arc<Core>,
    known: HashMap<String, Topic>,
    as_of: Option<Revision>,
}

impl Topics {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core, known: HashMap::new(), as_of: None }
    }

    /// As [`Core::client_topic`].
    pub(super) fn get(&mut self, name: &str) -> Result<Topic, Fault> {
        let now = self.core.mirror.revision();
        if self.as_of != now || self.known.len() > MAX_TOPICS {
            self.known.clear();
            self.as_of = now;
        }
        if let Some(t) = self.known.get(name) {
            return Ok(t.clone());
        }
        let t = self.core.client_topic(name)?;
        self.known.insert(name.to_owned(), t.clone());
        Ok(t)
    }
}
