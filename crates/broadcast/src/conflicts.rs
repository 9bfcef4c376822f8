//! Which commands are known that conflict with one.
//!
//! By object there are the commands that touch it, as a [set](IdSet) for each kind of access, and
//! the highest position that one of them had. So the commands that a new one depends on are found
//! in a time that grows with its objects and with the members, not with the commands that wait. All
//! commands are within the group, which those write that conflict with everything.

use std::collections::BTreeMap;

use muesli_core::{wire_enum, wire_struct};

use crate::command::CommandId;
use crate::id_set::IdSet;
use crate::objects::{ObjectAccess, ObjectSet, Touchable};

/// Commands that do the same with an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct SameAccess {
    ids: IdSet,
    /// No position of theirs was higher.
    highest: u64,
}

/// All commands that touch an object, by their access.
type ByAccess = [SameAccess; ObjectAccess::ALL.len()];

/// What conflicts with a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conflicts {
    /// The commands.
    pub ids: IdSet,
    /// No position of theirs was higher; 0: there are none.
    pub highest: u64,
}

/// The highest position that a command had which does the same with an object, or the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HighestPosition {
    pub touched: Touchable,
    pub access: ObjectAccess,
    pub position: u64,
}

wire_struct!(HighestPosition { touched: Touchable, access: ObjectAccess, position: u64 });
wire_enum!(Touchable, "what is touched" {
    0 => Group,
    1 => Object(number: u64),
});

/// The commands that are known, by their objects.
///
/// Invariant: an object is there if some command is that touches it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConflictIndex {
    objects: BTreeMap<Touchable, ByAccess>,
}

impl ConflictIndex {
    /// A command is known, or has another position.
    pub fn insert(&mut self, id: CommandId, objects: &ObjectSet, position: u64) {
        for (touched, access) in objects.touched() {
            let touching = &mut self.objects.entry(touched).or_default()[access as usize];
            touching.ids.insert(id);
            touching.highest = touching.highest.max(position);
        }
    }

    /// A command is of no interest any more.
    pub fn remove(&mut self, id: CommandId, objects: &ObjectSet) {
        for (touched, access) in objects.touched() {
            let Some(all) = self.objects.get_mut(&touched) else { continue };
            all[access as usize].ids.remove(id);
            if all.iter().all(|touching| touching.ids.is_empty()) {
                self.objects.remove(&touched);
            }
        }
    }

    /// What is known that conflicts with a command, itself left out. The highest position may be
    /// one that the command itself had.
    pub fn of(&self, id: CommandId, objects: &ObjectSet) -> Conflicts {
        let mut found = Conflicts::default();
        for (touched, own) in objects.touched() {
            let Some(all) = self.objects.get(&touched) else { continue };
            for (touching, access) in all.iter().zip(ObjectAccess::ALL) {
                if !access.conflicts_with(own) || touching.ids.is_empty() {
                    continue;
                }
                let is_alone = touching.ids.len() == 1 && touching.ids.contains(id);
                if !is_alone {
                    found.ids.extend(&touching.ids);
                    found.highest = found.highest.max(touching.highest);
                }
            }
        }
        found.ids.remove(id);
        found
    }

    /// The highest positions by object and access, as they go into a checkpoint; 0: none.
    pub(crate) fn highest(&self) -> impl Iterator<Item = HighestPosition> + '_ {
        self.objects.iter().flat_map(|(touched, all)| {
            let known = all.iter().zip(ObjectAccess::ALL).filter(|(it, _)| it.highest > 0);
            known.map(|(it, access)| HighestPosition {
                touched: *touched,
                access,
                position: it.highest,
            })
        })
    }

    /// Takes back one of them; the commands come after.
    pub(crate) fn take_highest(&mut self, highest: HighestPosition) {
        let HighestPosition { touched, access, position } = highest;
        self.objects.entry(touched).or_default()[access as usize].highest = position;
    }

    /// Whether some command is there that touches an object, for each of them.
    pub(crate) fn is_sound(&self) -> bool {
        let is_touched = |all: &ByAccess| all.iter().any(|touching| !touching.ids.is_empty());
        self.objects.values().all(is_touched)
    }

    /// How many objects are touched by commands that are known.
    pub fn len(&self) -> usize {
        self.objects.len() - usize::from(self.objects.contains_key(&Touchable::Group))
    }

    /// Whether no command is known.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::MemberId;
    use crate::objects::TouchedObject;

    fn id(sequence: u64) -> CommandId {
        CommandId { leader: MemberId(0), sequence }
    }

    fn one(number: u64, access: ObjectAccess) -> ObjectSet {
        ObjectSet::new([TouchedObject { number, access }])
    }

    #[test]
    fn commands_are_found_by_objects_and_access() {
        let mut index = ConflictIndex::default();
        index.insert(id(1), &one(7, ObjectAccess::Write), 10);
        index.insert(id(2), &one(7, ObjectAccess::Read), 20);
        index.insert(id(3), &one(7, ObjectAccess::WriteWithin), 30);
        index.insert(id(4), &one(8, ObjectAccess::Write), 40);
        let ids = |access, as_id| {
            let found = index.of(id(as_id), &one(7, access));
            (found.ids.iter().map(|it| it.sequence).collect::<Vec<_>>(), found.highest)
        };
        assert_eq!(ids(ObjectAccess::Read, 9), (vec![1, 3], 30));
        assert_eq!(ids(ObjectAccess::WriteWithin, 9), (vec![1, 2], 20));
        assert_eq!(ids(ObjectAccess::Write, 9), (vec![1, 2, 3], 30));
        assert_eq!(ids(ObjectAccess::Write, 3), (vec![1, 2], 20), "not itself, nor its position");
        for (sequence, access) in
            [(1, ObjectAccess::Write), (2, ObjectAccess::Read), (3, ObjectAccess::WriteWithin)]
        {
            index.remove(id(sequence), &one(7, access));
        }
        assert_eq!(index.len(), 1, "the other object is left");
    }

    #[test]
    fn everything_is_found_by_all_and_finds_all() {
        let mut index = ConflictIndex::default();
        index.insert(id(1), &one(7, ObjectAccess::Read), 10);
        index.insert(id(2), &ObjectSet::default(), 20);
        let everything = ObjectSet::everything();
        let ids = |index: &ConflictIndex, as_id, objects: &ObjectSet| {
            let found = index.of(id(as_id), objects);
            (found.ids.iter().map(|it| it.sequence).collect::<Vec<_>>(), found.highest)
        };
        assert_eq!(ids(&index, 3, &everything), (vec![1, 2], 20));
        index.insert(id(3), &everything, 30);
        assert_eq!(ids(&index, 4, &one(9, ObjectAccess::Read)), (vec![3], 30));
        assert_eq!(ids(&index, 4, &ObjectSet::default()), (vec![3], 30));
        assert_eq!(ids(&index, 3, &everything), (vec![1, 2], 20), "not itself");
        index.remove(id(3), &everything);
        assert_eq!(ids(&index, 4, &one(9, ObjectAccess::Read)), (vec![], 0));
        index.remove(id(1), &one(7, ObjectAccess::Read));
        index.remove(id(2), &ObjectSet::default());
        assert!(index.is_empty());
    }
}
