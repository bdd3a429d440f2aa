//! Which of the caller's sandboxes is meant.

use policy::SandboxId;

use crate::error::EngineError;
use crate::kept;
use crate::start::Engine;

impl Engine {
    /// The ids of all that there are: kept, or only running.
    pub(crate) fn ids(&self) -> Vec<SandboxId> {
        let mut ids = kept::ids(&self.directories.kept());
        let mut others = kept::ids(&self.directories.sandboxes());
        others.retain(|id| ids.binary_search(id).is_err() && self.is_running(id));
        ids.append(&mut others);
        ids.sort();
        ids
    }

    /// Whom a person means: by id, by name, or by the beginning of an id.
    pub fn find(&self, text: &str) -> Result<SandboxId, EngineError> {
        // Whoever knows the id does not wait for a look at all the others.
        if let Ok(id) = text.parse()
            && (self.kept(&id).exists() || self.is_running(&id))
        {
            return Ok(id);
        }
        let ids = self.ids();
        let named = |id: &&SandboxId| {
            let filed = self.filed(id).ok();
            filed.is_some_and(|filed| filed.spec.name.is_some_and(|name| name.as_str() == text))
        };
        if let Some(id) = ids.iter().find(named) {
            return Ok(id.clone());
        }
        let fitting: Vec<&SandboxId> =
            ids.iter().filter(|id| !text.is_empty() && id.as_str().starts_with(text)).collect();
        match fitting.as_slice() {
            [id] => Ok((*id).clone()),
            [] => Err(EngineError::Unknown(text.escape_debug().to_string())),
            several => Err(EngineError::Ambiguous {
                text: text.to_owned(),
                ids: several.iter().map(ToString::to_string).collect(),
            }),
        }
    }
}
