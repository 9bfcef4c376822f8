//! How the [levels](super::levels) of a transaction begin, and how they end.

use super::levels::{LEVELS_MAX, LevelMark};
use super::transaction::{SEARCHED_LINEARLY, TransactionSets};
use crate::Failure;

impl TransactionSets {
    /// How many levels are open; 0: none but the transaction itself.
    #[inline]
    pub fn depth(&self) -> u32 {
        self.levels.depth()
    }

    /// Whether a level of this number can begin inside of the innermost one.
    ///
    /// # Errors
    /// It is not the next one, or there are too many.
    pub fn check_next_level(&self, level: u32) -> Result<(), Failure> {
        if self.depth() + 1 != level {
            return Err(Failure::ChildOpen);
        }
        if level > LEVELS_MAX {
            let reason = format!("a transaction has at most {LEVELS_MAX} levels, one in the other");
            return Err(Failure::Procedure(reason));
        }
        Ok(())
    }

    /// Whether the innermost level has this number: one that is not open ended with an outer one.
    pub fn is_innermost(&self, level: u32) -> bool {
        level > 0 && self.depth() == level
    }

    /// The innermost level ends: its writes are its parent's, or undone.
    pub fn end_level(&mut self, merges: bool) {
        match merges {
            true => self.merge(),
            false => self.unnest(),
        }
    }

    /// A level begins inside of the innermost one; its number.
    pub fn nest(&mut self) -> u32 {
        assert!(self.depth() < LEVELS_MAX, "{} levels are open", self.depth());
        self.levels.marks.push(LevelMark {
            reads: self.reads.len(),
            writes: self.writes.len(),
            scans: self.scans.len(),
            operations: self.operations.mark(),
            written_bytes: self.written_bytes,
        });
        self.levels.guarded = self.writes.len();
        self.depth()
    }

    /// The innermost level is its parent's.
    pub fn merge(&mut self) {
        let level = self.depth();
        self.levels.close();
        let put_aside = self.levels.replaced.split_off(&(level, 0));
        // Of its parent's own writes nothing is put aside: they go with it.
        for ((_, place), before) in put_aside {
            if place < self.levels.guarded {
                self.levels.replaced.entry((level - 1, place)).or_insert(before);
            }
        }
    }

    /// The innermost level is dropped: its writes are undone, its reads are its parent's.
    pub fn unnest(&mut self) {
        let level = self.depth();
        let mark = *self.levels.mark(level);
        let wrote = self.writes.len() > mark.writes || self.levels.has_replaced(level);
        self.undo_writes(level, mark);
        self.operations.keep_reads(mark.operations, !wrote);
        self.levels.close();
    }

    /// Nothing is left of a level, and of all inside of it.
    pub fn roll_back(&mut self, level: u32) {
        assert!((1..=self.depth()).contains(&level), "level {level} of {}", self.depth());
        let mark = *self.levels.mark(level);
        self.undo_writes(level, mark);
        self.reads.truncate(mark.reads);
        self.scans.truncate(mark.scans);
        self.operations.rewind(mark.operations);
        while self.depth() >= level {
            self.levels.close();
        }
    }

    /// Undoes the writes of a level, and of all inside of it.
    fn undo_writes(&mut self, level: u32, mark: LevelMark) {
        let put_aside = self.levels.replaced.split_off(&(level, 0));
        for ((_, place), before) in put_aside.into_iter().rev() {
            self.writes[place].value = before; // The outermost one comes last, and counts.
        }
        if self.writes.len() > mark.writes {
            self.writes.truncate(mark.writes);
            self.write_index.clear();
            if self.writes.len() > SEARCHED_LINEARLY {
                self.index_writes();
            }
        }
        self.written_bytes = mark.written_bytes;
    }

    /// The write at a place is about to be replaced, and was there as the innermost level began.
    #[cold]
    pub(super) fn put_aside(&mut self, place: usize) {
        let level = self.depth();
        let value = &mut self.writes[place].value;
        self.levels.replaced.entry((level, place)).or_insert_with(|| value.take());
    }

    /// The level that a read belongs to, by its place among the reads.
    pub fn level_of_read(&self, place: usize) -> u32 {
        assert!(place < self.reads.len(), "read {place} of {}", self.reads.len());
        self.levels.marks.partition_point(|mark| mark.reads <= place) as u32
    }

    /// The outermost level that has scanned.
    pub fn level_of_first_scan(&self) -> Option<u32> {
        let level = || self.levels.marks.partition_point(|mark| mark.scans == 0) as u32;
        (!self.scans.is_empty()).then(level)
    }

    /// So many reads belong to levels outside of this one.
    pub fn reads_outside(&self, level: u32) -> usize {
        self.levels.marks.get(level as usize - 1).map_or(self.reads.len(), |mark| mark.reads)
    }

    /// Checks the invariants of its levels.
    pub(super) fn assert_levels(&self) {
        let there = LevelMark {
            reads: self.reads.len(),
            writes: self.writes.len(),
            scans: self.scans.len(),
            operations: self.operations.mark(),
            written_bytes: 0,
        };
        let all = || self.levels.marks.iter().chain([&there]);
        for (mark, inside) in all().zip(all().skip(1)) {
            assert!(mark.reads <= inside.reads, "{} reads, of {}", mark.reads, inside.reads);
            assert!(mark.writes <= inside.writes, "{} writes, of {}", mark.writes, inside.writes);
            assert!(mark.scans <= inside.scans, "{} scans, of {}", mark.scans, inside.scans);
            assert!(mark.operations <= inside.operations, "what levels noted, out of order");
        }
        let innermost = self.levels.marks.last().map_or(0, |mark| mark.writes);
        assert_eq!(self.levels.guarded, innermost, "writes before the innermost level");
        for (level, place) in self.levels.replaced.keys() {
            assert!(*place < self.levels.mark(*level).writes, "level {level} wrote {place} first");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::transaction::ReadEntry;
    use super::*;
    use crate::bytes::SmallBytes;
    use crate::ids::{RepositoryId, SpaceId, Timestamp};
    use crate::limits::Limits;
    use crate::parts::versions::Handle;

    const SPACE: SpaceId = SpaceId(1);

    /// What a body may do next.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Write(u8, Option<u8>),
        Read(u8),
        Nest,
        Merge,
        Unnest,
        /// Rolls back so many levels, if there are as many.
        RollBack(u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0u8..30, prop::option::of(any::<u8>())).prop_map(|(k, v)| Step::Write(k, v)),
            3 => (0u8..30).prop_map(Step::Read),
            3 => Just(Step::Nest),
            2 => Just(Step::Merge),
            1 => Just(Step::Unnest),
            1 => (1u8..4).prop_map(Step::RollBack),
        ]
    }

    /// A level as the papers have it: maps and sets of its own.
    #[derive(Clone, Debug, Default)]
    struct Model {
        reads: Vec<u8>,
        writes: BTreeMap<u8, Option<u8>>,
    }

    fn key(key: u8) -> SmallBytes {
        SmallBytes::new(&[key])
    }

    fn read(sets: &mut TransactionSets, of: u8) {
        let (repository, handle, version) = (RepositoryId(0), Handle::NONE, Timestamp(of.into()));
        let entry = ReadEntry { space: SPACE, repository, handle, key: key(of), version };
        sets.operations.read(SPACE, &entry.key, version, None);
        sets.reads.push(entry);
    }

    fn perform(sets: &mut TransactionSets, model: &mut Vec<Model>, step: Step) {
        let depth = model.len() - 1;
        match step {
            Step::Write(of, value) => {
                let bytes = value.map(|value| SmallBytes::new(&[value]));
                sets.write_recorded((SPACE, key(of), bytes), &Limits::default()).unwrap();
                model[depth].writes.insert(of, value);
            }
            Step::Read(of) => {
                read(sets, of);
                model[depth].reads.push(of);
            }
            Step::Nest => {
                assert_eq!(sets.nest(), depth as u32 + 1);
                model.push(Model::default());
            }
            Step::Merge | Step::Unnest if depth == 0 => {}
            Step::Merge => {
                sets.merge();
                let child = model.pop().unwrap();
                model[depth - 1].reads.extend(child.reads);
                model[depth - 1].writes.extend(child.writes);
            }
            Step::Unnest => {
                sets.unnest();
                let child = model.pop().unwrap();
                model[depth - 1].reads.extend(child.reads);
            }
            Step::RollBack(levels) if usize::from(levels) > depth => {}
            Step::RollBack(levels) => {
                let level = depth + 1 - usize::from(levels);
                sets.roll_back(level as u32);
                model.truncate(level);
            }
        }
    }

    fn agrees(sets: &TransactionSets, model: &[Model]) {
        sets.assert_invariants();
        assert_eq!(sets.depth() as usize, model.len() - 1);
        let mut written = BTreeMap::new();
        model.iter().for_each(|level| written.extend(level.writes.clone()));
        assert_eq!(sets.writes.len(), written.len());
        for of in 0..30 {
            let own = sets.own(SPACE, &key(of));
            let own = own.map(|value| value.as_ref().map(|value| value.as_slice()[0]));
            assert_eq!(own, written.get(&of).copied(), "key {of}");
        }
        for (level, of_level) in model.iter().enumerate() {
            let of = |place: &usize| sets.level_of_read(*place) as usize == level;
            let reads = (0..sets.reads.len()).filter(of).map(|it| sets.reads[it].version.0 as u8);
            let (mut reads, mut wanted) = (reads.collect::<Vec<_>>(), of_level.reads.clone());
            reads.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(reads, wanted, "reads of level {level}");
            let outside: usize = model[..=level].iter().map(|it| it.reads.len()).sum();
            assert_eq!(sets.reads_outside(level as u32 + 1), outside);
        }
    }

    proptest! {
        #[test]
        fn levels_are_maps_of_their_own(steps in prop::collection::vec(step(), 0..120)) {
            let mut sets = TransactionSets::default();
            let mut model = vec![Model::default()];
            for step in steps {
                perform(&mut sets, &mut model, step);
                agrees(&sets, &model);
            }
            sets.clear();
            prop_assert_eq!((sets.depth(), sets.own(SPACE, &key(1))), (0, None));
            sets.assert_invariants();
        }
    }

    #[test]
    fn what_a_dropped_child_read_stays_in_the_history_and_what_it_wrote_does_not() {
        let (mut sets, limits) = (TransactionSets::default(), Limits::default());
        let mut wanted = TransactionSets::default();
        for sets in [&mut sets, &mut wanted] {
            sets.write_recorded((SPACE, key(1), Some(key(9))), &limits).unwrap();
        }
        sets.nest();
        sets.write_recorded((SPACE, key(1), None), &limits).unwrap();
        sets.operations.read_own(SPACE, &key(1), None);
        read(&mut sets, 2);
        sets.unnest();
        read(&mut wanted, 2);
        assert_eq!(sets.operations, wanted.operations);
        assert_eq!(sets.own(SPACE, &key(1)), Some(&Some(key(9))));
    }
}
