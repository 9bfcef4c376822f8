//! The order of commands that are stable and not delivered, by object.
//!
//! A command whose dependencies are all stable waits for those with lower positions. Which one of
//! them comes right before it is found by its objects, in a time that grows with these, and not
//! with how many wait.

use std::collections::{BTreeMap, BTreeSet};

use crate::command::CommandId;
use crate::objects::{ObjectAccess, ObjectSet, Touchable};

/// Commands that do the same with an object, by their positions and names.
type Ordered = BTreeSet<(u64, CommandId)>;

/// Commands that are stable and not delivered.
///
/// Invariant: an object is there if some of them touches it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct StableOrder {
    objects: BTreeMap<Touchable, [Ordered; ObjectAccess::ALL.len()]>,
}

impl StableOrder {
    pub fn insert(&mut self, id: CommandId, objects: &ObjectSet, position: u64) {
        for (touched, access) in objects.touched() {
            let all = self.objects.entry(touched).or_default();
            all[access as usize].insert((position, id));
        }
    }

    pub fn remove(&mut self, id: CommandId, objects: &ObjectSet, position: u64) {
        for (touched, access) in objects.touched() {
            let Some(all) = self.objects.get_mut(&touched) else { continue };
            all[access as usize].remove(&(position, id));
            if all.iter().all(BTreeSet::is_empty) {
                self.objects.remove(&touched);
            }
        }
    }

    /// Of those that conflict with a command and lie before a place in the order, the last one.
    pub fn right_before(
        &self,
        id: CommandId,
        objects: &ObjectSet,
        before: (u64, CommandId),
    ) -> Option<CommandId> {
        let conflicting = objects.touched().flat_map(|(touched, own)| {
            let all = self.objects.get(&touched).into_iter();
            let all = all.flat_map(|all| all.iter().zip(ObjectAccess::ALL));
            all.filter(move |(_, access)| access.conflicts_with(own))
        });
        let others = conflicting.filter_map(|(ordered, _)| {
            ordered.range(..before).rev().find(|(_, other)| *other != id)
        });
        others.max().map(|(_, other)| *other)
    }
}
