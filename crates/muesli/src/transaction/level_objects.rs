//! What a transaction keeps of the objects that it has opened: one table for all its levels, and
//! of each level whether what it did is undone.
//!
//! A transaction that opens no object has none of this. The first level that opens one makes the
//! table; its parent has it from the merge on, its children have it from their begin.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use muesli_core::{SmallBytes, SpaceId};

/// How a level has ended.
#[derive(Debug)]
enum LevelEnd {
    Undone,
    /// What it did is that of this level, which was running then.
    Merged(Arc<LevelStatus>),
}

/// Whether a run of a level goes on, or how it has ended.
#[derive(Debug, Default)]
pub(crate) struct LevelStatus(OnceLock<LevelEnd>);

impl LevelStatus {
    /// The running level that what was done here is of by now; `None`: it was undone.
    pub fn running(self: &Arc<LevelStatus>) -> Option<Arc<LevelStatus>> {
        let mut level = self;
        loop {
            match level.0.get() {
                None => return Some(level.clone()),
                Some(LevelEnd::Merged(outer)) => level = outer,
                Some(LevelEnd::Undone) => return None,
            }
        }
    }

    fn merge_into(&self, outer: &Arc<LevelStatus>) {
        let ended = self.0.set(LevelEnd::Merged(outer.clone()));
        assert!(ended.is_ok(), "a level ends once");
    }
}

/// The status of a level that is running: what is not merged when this is dropped is undone.
#[derive(Debug, Default)]
struct RunningLevel(Arc<LevelStatus>);

impl Drop for RunningLevel {
    fn drop(&mut self) {
        let _ = self.0.0.set(LevelEnd::Undone); // Unless it was merged.
    }
}

/// An object as its table holds it, whatever its type.
pub(crate) type AnyObject = Arc<dyn Any + Send + Sync>;

/// The objects that a transaction has opened.
#[derive(Default)]
pub(crate) struct ObjectTable(Mutex<BTreeMap<(SpaceId, SmallBytes), AnyObject>>);

impl ObjectTable {
    /// The object of a key; made, where there is none yet.
    pub fn object(
        &self,
        key: (SpaceId, SmallBytes),
        make: impl FnOnce() -> AnyObject,
    ) -> AnyObject {
        let mut objects = self.0.lock().unwrap_or_else(|broken| broken.into_inner());
        objects.entry(key).or_insert_with(make).clone()
    }
}

impl fmt::Debug for ObjectTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectTable").finish_non_exhaustive()
    }
}

/// What a level has of its transaction's objects.
#[derive(Debug, Default)]
pub(crate) struct LevelObjects {
    table: Arc<ObjectTable>,
    level: RunningLevel,
}

impl LevelObjects {
    /// Of another level of the same transaction.
    pub fn beside(&self) -> LevelObjects {
        LevelObjects { table: self.table.clone(), level: RunningLevel::default() }
    }

    /// Of a level that is merged into one that has these objects, or none yet.
    pub fn merge_into(&self, outer: &OnceLock<LevelObjects>) {
        let outer = outer.get_or_init(|| self.beside());
        assert!(Arc::ptr_eq(&outer.table, &self.table), "a transaction has one table of objects");
        self.status().merge_into(outer.status());
    }

    /// The table of the transaction, the same for all its levels.
    pub fn table(&self) -> &Arc<ObjectTable> {
        &self.table
    }

    /// The run of the level that has this.
    pub fn status(&self) -> &Arc<LevelStatus> {
        &self.level.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_merged_goes_the_way_of_the_level_that_has_it() {
        let root = LevelObjects::default();
        let (child, undone) = (root.beside(), root.beside());
        let grandchild = child.beside();
        let (of_grandchild, of_undone) = (grandchild.status().clone(), undone.status().clone());
        grandchild.status().merge_into(child.status());
        drop((grandchild, undone));
        assert!(Arc::ptr_eq(&of_grandchild.running().unwrap(), child.status()));
        assert!(of_undone.running().is_none());
        child.status().merge_into(root.status());
        drop(child);
        assert!(Arc::ptr_eq(&of_grandchild.running().unwrap(), root.status()));
        drop(root);
        assert!(of_grandchild.running().is_none());
    }
}
