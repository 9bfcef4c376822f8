//! All objects, found by their numbers.
//!
//! A command looks each of its objects up a dozen times from its proposal to the end. A hash finds
//! them; who goes through all of them does so in the order of their numbers.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Index;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::ObjectLog;

/// Objects of which something is known.
///
/// Invariants: each is found by its number. Which place it has in memory means nothing.
#[derive(Clone)]
pub(in crate::m2paxos) struct ObjectLogs {
    places: HashMap<u64, u32, FixedState>,
    logs: Vec<(u64, ObjectLog)>,
}

impl ObjectLogs {
    pub fn new() -> ObjectLogs {
        let places = HashMap::with_hasher(FixedState::with_seed(2));
        ObjectLogs { places, logs: Vec::new() }
    }

    pub fn get(&self, object: u64) -> Option<&ObjectLog> {
        let place = *self.places.get(&object)?;
        Some(&self.logs[place as usize].1)
    }

    pub fn get_mut(&mut self, object: u64) -> Option<&mut ObjectLog> {
        let place = *self.places.get(&object)?;
        Some(&mut self.logs[place as usize].1)
    }

    /// An object, or what is known of it from now on.
    pub fn or_insert_with(
        &mut self,
        object: u64,
        new: impl FnOnce() -> ObjectLog,
    ) -> &mut ObjectLog {
        let place = *self.places.entry(object).or_insert_with(|| {
            self.logs.push((object, new()));
            (self.logs.len() - 1) as u32
        });
        &mut self.logs[place as usize].1
    }

    /// All of them, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &ObjectLog)> {
        let mut all: Vec<&(u64, ObjectLog)> = self.logs.iter().collect();
        all.sort_unstable_by_key(|it| it.0);
        all.into_iter().map(|(object, log)| (*object, log))
    }

    /// All of them, to be changed, in the order of their numbers.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut ObjectLog)> {
        let mut all: Vec<&mut (u64, ObjectLog)> = self.logs.iter_mut().collect();
        all.sort_unstable_by_key(|it| it.0);
        all.into_iter().map(|(object, log)| (*object, log))
    }
}

impl Index<u64> for ObjectLogs {
    type Output = ObjectLog;

    fn index(&self, object: u64) -> &ObjectLog {
        self.get(object).expect("an object of which something is known")
    }
}

impl PartialEq for ObjectLogs {
    fn eq(&self, other: &ObjectLogs) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for ObjectLogs {}

impl Hash for ObjectLogs {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.logs.len());
        self.iter().for_each(|it| it.hash(state));
    }
}

impl fmt::Debug for ObjectLogs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher as _;

    use super::*;

    #[test]
    fn the_order_in_which_objects_became_known_means_nothing() {
        let table = |objects: &[u64]| {
            let mut table = ObjectLogs::new();
            for object in objects {
                table.or_insert_with(*object, ObjectLog::default).decided = object % 10;
            }
            table
        };
        let (one, other) = (table(&[3, 1, u64::MAX, 2]), table(&[u64::MAX, 1, 2, 3, 1]));
        assert_eq!(one, other);
        let hash = |it: &ObjectLogs| FixedState::with_seed(0).hash_one(it);
        assert_eq!(hash(&one), hash(&other));
        assert_eq!(format!("{one:?}"), format!("{other:?}"));
        assert_eq!(one.iter().map(|it| it.0).collect::<Vec<_>>(), [1, 2, 3, u64::MAX]);
        assert_ne!(one, table(&[3, 1, 2]));
        assert_eq!((one[2].decided, one.get(4)), (2, None));
    }
}
