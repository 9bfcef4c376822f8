//! Sets of commands, as ranges of numbers by leader: what one member proposed lately is mostly all
//! there, so that a set takes about as much as there are members, however many commands are in it.

use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::wire_struct;
use smallvec::SmallVec;

use crate::command::{CommandId, MemberId};

/// Commands of one leader, from `first` up to and with `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct IdRange {
    leader: MemberId,
    first: u64,
    last: u64,
}

impl IdRange {
    fn of(id: CommandId) -> IdRange {
        IdRange { leader: id.leader, first: id.sequence, last: id.sequence }
    }

    /// Whether the two are one, or `next` comes right after it.
    fn reaches(self, next: IdRange) -> bool {
        self.leader == next.leader && next.first <= self.last.saturating_add(1)
    }
}

/// A set of commands.
///
/// Invariants: ranges are in order, none is empty, and no two of them could be one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct IdSet {
    ranges: SmallVec<[IdRange; 4]>,
}

impl IdSet {
    /// No commands.
    pub fn new() -> IdSet {
        IdSet::default()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|range| range.last - range.first + 1).sum()
    }

    /// How many ranges they are.
    pub fn ranges(&self) -> usize {
        self.ranges.len()
    }

    /// The place of the first range that does not lie before a command.
    fn place(&self, id: CommandId) -> usize {
        self.ranges.partition_point(|it| (it.leader, it.last) < (id.leader, id.sequence))
    }

    /// Whether a command is among them.
    pub fn contains(&self, id: CommandId) -> bool {
        let range = self.ranges.get(self.place(id));
        range.is_some_and(|it| it.leader == id.leader && it.first <= id.sequence)
    }

    /// Adds a command; false: it was there.
    pub fn insert(&mut self, id: CommandId) -> bool {
        let at = self.place(id);
        let new = IdRange::of(id);
        if self.ranges.get(at).is_some_and(|it| it.leader == id.leader && it.first <= id.sequence) {
            return false;
        }
        let joins_next = self.ranges.get(at).is_some_and(|next| new.reaches(*next));
        let joins_last = at > 0 && self.ranges[at - 1].reaches(new);
        match (joins_last, joins_next) {
            (true, true) => {
                self.ranges[at - 1].last = self.ranges[at].last;
                self.ranges.remove(at);
            }
            (true, false) => self.ranges[at - 1].last = id.sequence,
            (false, true) => self.ranges[at].first = id.sequence,
            (false, false) => self.ranges.insert(at, new),
        }
        true
    }

    /// Removes a command; false: it was not there.
    pub fn remove(&mut self, id: CommandId) -> bool {
        if !self.contains(id) {
            return false;
        }
        let at = self.place(id);
        let IdRange { leader, first, last } = self.ranges[at];
        match (first == id.sequence, last == id.sequence) {
            (true, true) => {
                self.ranges.remove(at);
            }
            (true, false) => self.ranges[at].first += 1,
            (false, true) => self.ranges[at].last -= 1,
            (false, false) => {
                self.ranges[at].last = id.sequence - 1;
                self.ranges.insert(at + 1, IdRange { leader, first: id.sequence + 1, last });
            }
        }
        true
    }

    /// Adds all commands of another set.
    pub fn extend(&mut self, other: &IdSet) {
        if other.ranges.iter().all(|range| self.covers(*range)) {
            return;
        }
        let mut merged: SmallVec<[IdRange; 4]> = SmallVec::new();
        let (mut ours, mut theirs) =
            (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        loop {
            let next = match (ours.peek(), theirs.peek()) {
                (Some(a), Some(b)) if a <= b => ours.next(),
                (_, Some(_)) => theirs.next(),
                (_, None) => ours.next(),
            };
            let Some(next) = next else { break };
            match merged.last_mut() {
                Some(last) if last.reaches(*next) => last.last = last.last.max(next.last),
                _ => merged.push(*next),
            }
        }
        self.ranges = merged;
    }

    fn covers(&self, range: IdRange) -> bool {
        let id = CommandId { leader: range.leader, sequence: range.first };
        let ours = self.ranges.get(self.place(id));
        let all = |it: &IdRange| it.leader == range.leader && it.first <= range.first;
        ours.is_some_and(|it| all(it) && it.last >= range.last)
    }

    /// Adds the commands of each leader up to and with the number that is given for it.
    pub fn insert_up_to(&mut self, last: &[u64]) {
        let all = last.iter().enumerate().filter(|(_, last)| **last > 0);
        let leader = |place: usize| MemberId(place as u16);
        let ranges =
            all.map(|(place, last)| IdRange { leader: leader(place), first: 1, last: *last });
        self.extend(&IdSet { ranges: ranges.collect() });
    }

    /// Removes the commands of each leader up to and with the number that is given for it.
    pub fn remove_up_to(&mut self, last: &[u64]) {
        let upto = |leader: MemberId| last.get(leader.place()).copied().unwrap_or(0);
        self.ranges.retain(|range| range.last > upto(range.leader));
        for range in &mut self.ranges {
            range.first = range.first.max(upto(range.leader) + 1);
        }
    }

    /// The last command of a leader up to which all are there, from its first.
    pub fn contiguous(&self, leader: MemberId) -> u64 {
        let first = self.ranges.get(self.place(CommandId { leader, sequence: 1 }));
        first.filter(|it| it.leader == leader && it.first == 1).map_or(0, |it| it.last)
    }

    /// All of them as ranges: the first one of each, and the number of its last one.
    pub(crate) fn as_ranges(&self) -> impl Iterator<Item = (CommandId, u64)> + '_ {
        let first = |it: &IdRange| CommandId { leader: it.leader, sequence: it.first };
        self.ranges.iter().map(move |it| (first(it), it.last))
    }

    /// Adds commands of one leader, up to and with the last number; if that is before the first
    /// one, none.
    pub(crate) fn insert_range(&mut self, first: CommandId, last: u64) {
        if (1..=last).contains(&first.sequence) {
            let range = IdRange { leader: first.leader, first: first.sequence, last };
            if self.ranges.last().is_none_or(|it| *it < range && !it.reaches(range)) {
                return self.ranges.push(range); // They mostly come in order.
            }
            self.extend(&IdSet { ranges: smallvec::smallvec![range] });
        }
    }

    /// Those of one leader from a command up to and with a number.
    pub(crate) fn within(&self, first: CommandId, last: u64) -> IdSet {
        let ranges = self.ranges[self.place(first)..].iter();
        let ranges = ranges.take_while(|it| it.leader == first.leader && it.first <= last);
        let cut = |it: &IdRange| IdRange {
            leader: it.leader,
            first: it.first.max(first.sequence),
            last: it.last.min(last),
        };
        IdSet { ranges: ranges.map(cut).collect() }
    }

    /// All of them, by leader.
    pub fn iter(&self) -> impl Iterator<Item = CommandId> + '_ {
        self.ranges.iter().flat_map(|range| {
            let leader = range.leader;
            (range.first..=range.last).map(move |sequence| CommandId { leader, sequence })
        })
    }

    /// The first of them, from one on, that is in none of the others.
    pub fn first_beyond(&self, from: CommandId, others: &IdSet) -> Option<CommandId> {
        let mut at = from;
        for range in &self.ranges[self.place(from)..] {
            if range.leader > at.leader || range.first > at.sequence {
                at = CommandId { leader: range.leader, sequence: range.first };
            }
            while at.sequence <= range.last {
                let other = others.ranges.get(others.place(at));
                match other.filter(|it| it.leader == at.leader && it.first <= at.sequence) {
                    None => return Some(at),
                    Some(known) => at.sequence = known.last + 1,
                }
            }
        }
        None
    }

    /// Of them that are in none of the others, one with the largest number.
    pub fn last_beyond(&self, others: &IdSet) -> Option<CommandId> {
        let last = |range: &IdRange| {
            let mut at = CommandId { leader: range.leader, sequence: range.last };
            while at.sequence >= range.first {
                let other = others.ranges.get(others.place(at));
                match other.filter(|it| it.leader == at.leader && it.first <= at.sequence) {
                    None => return Some(at),
                    Some(known) => at.sequence = known.first - 1,
                }
            }
            None
        };
        self.ranges.iter().filter_map(last).max_by_key(|id| (id.sequence, id.leader))
    }

    /// Leaves those of them alone that are in another set, too.
    pub fn intersect(&mut self, other: &IdSet) {
        let mut common: SmallVec<[IdRange; 4]> = SmallVec::new();
        for range in &self.ranges {
            let first = CommandId { leader: range.leader, sequence: range.first };
            let others = other.ranges[other.place(first)..].iter();
            let reached =
                others.take_while(|it| (it.leader, it.first) <= (range.leader, range.last));
            common.extend(reached.map(|it| IdRange {
                leader: range.leader,
                first: it.first.max(range.first),
                last: it.last.min(range.last),
            }));
        }
        self.ranges = common;
    }

    /// Those of them that are not in another set.
    pub fn without(&self, other: &IdSet) -> IdSet {
        let mut rest = IdSet::new();
        for range in &self.ranges {
            let mut next = range.first;
            let first = CommandId { leader: range.leader, sequence: range.first };
            let others = other.ranges[other.place(first)..].iter();
            let reached =
                others.take_while(|it| (it.leader, it.first) <= (range.leader, range.last));
            for it in reached {
                if it.first > next {
                    rest.ranges.push(IdRange { first: next, last: it.first - 1, ..*range });
                }
                next = next.max(it.last.saturating_add(1));
            }
            if next <= range.last {
                rest.ranges.push(IdRange { first: next, ..*range });
            }
        }
        rest
    }

    /// Commands that are in all of several sets, but for so many.
    pub fn in_all_but<'a>(sets: impl Iterator<Item = &'a IdSet>, most: usize) -> IdSet {
        let (mut count, mut ends) = (0_usize, Vec::new());
        for set in sets {
            count += 1;
            for it in &set.ranges {
                ends.push((it.leader, it.first, true));
                ends.push((it.leader, it.last.saturating_add(1), false));
            }
        }
        ends.sort_unstable();
        let least = count.saturating_sub(most).max(1);
        let (mut common, mut inside, mut first) = (IdSet::new(), 0_usize, 0);
        for (leader, at, begins) in ends {
            if begins {
                inside += 1;
                if inside == least {
                    first = at;
                }
            } else {
                if inside == least && first < at {
                    common.insert_range(CommandId { leader, sequence: first }, at - 1);
                }
                inside -= 1;
            }
        }
        common
    }

    /// How many of them are in none of the others; no more than so many are counted.
    pub fn count_beyond(&self, others: &IdSet, most: usize) -> usize {
        self.iter_beyond(others).take(most).count()
    }

    /// Those of them, in order, that are in none of the others.
    pub fn iter_beyond<'a>(&'a self, others: &'a IdSet) -> impl Iterator<Item = CommandId> + 'a {
        let first = self.first_beyond(CommandId { leader: MemberId(0), sequence: 1 }, others);
        std::iter::successors(first, |last| {
            let CommandId { leader, sequence } = *last;
            self.first_beyond(CommandId { leader, sequence: sequence + 1 }, others)
        })
    }

    /// The leaders of all of them, each with the largest number.
    pub fn last_of_each(&self) -> impl Iterator<Item = CommandId> + '_ {
        self.ranges.iter().map(|it| CommandId { leader: it.leader, sequence: it.last })
    }

    /// Checks what this says of its own state.
    ///
    /// # Panics
    /// Something of that does not hold.
    pub fn assert_invariants(&self) {
        for range in &self.ranges {
            assert!(range.first <= range.last, "an empty range in {self:?}");
            assert!(range.first > 0, "numbers begin with 1: {self:?}");
        }
        for pair in self.ranges.windows(2) {
            assert!(pair[0] < pair[1], "ranges out of order: {self:?}");
            assert!(!pair[0].reaches(pair[1]), "two ranges that are one: {self:?}");
        }
    }
}

impl FromIterator<CommandId> for IdSet {
    fn from_iter<T: IntoIterator<Item = CommandId>>(ids: T) -> IdSet {
        let mut set = IdSet::new();
        for id in ids {
            set.insert(id);
        }
        set
    }
}

wire_struct!(IdRange { leader: MemberId, first: u64, last: u64 });

impl Wire for IdSet {
    const LEAST_BYTES: usize = 4;

    fn encode(&self, out: &mut Vec<u8>) {
        muesli_core::wire::encode_list(&self.ranges, out);
    }

    /// Any ranges may come: what is out of order is put in order, and what is empty left out.
    fn decode(input: &mut Reader<'_>) -> Result<Self, WireError> {
        let mut ranges: Vec<IdRange> = Vec::decode(input)?;
        ranges.retain(|it| it.first > 0 && it.first <= it.last);
        ranges.sort_unstable();
        let mut set = IdSet::new();
        for range in ranges {
            match set.ranges.last_mut() {
                Some(last) if last.reaches(range) => last.last = last.last.max(range.last),
                _ => set.ranges.push(range),
            }
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn id(leader: u16, sequence: u64) -> CommandId {
        CommandId { leader: MemberId(leader), sequence }
    }

    fn ids() -> impl Strategy<Value = Vec<CommandId>> {
        prop::collection::vec((0..3u16, 1..20u64).prop_map(|(l, s)| id(l, s)), 0..40)
    }

    proptest! {
        /// What is in all sets but one, or in all.
        #[test]
        fn commands_are_counted_by_ranges(sets in prop::collection::vec(ids(), 1..5)) {
            let plain: Vec<BTreeSet<_>> =
                sets.iter().map(|ids| ids.iter().copied().collect()).collect();
            let sets: Vec<IdSet> = sets.into_iter().map(IdSet::from_iter).collect();
            let all: BTreeSet<_> = plain.iter().flatten().copied().collect();
            for most in 0..3 {
                let found = IdSet::in_all_but(sets.iter(), most);
                found.assert_invariants();
                let least = plain.len().saturating_sub(most).max(1);
                let count = |id: &CommandId| plain.iter().filter(|set| set.contains(id)).count();
                let expected = all.iter().filter(|id| count(id) >= least).copied();
                prop_assert!(found.iter().eq(expected));
            }
        }

        /// It is what a set of single commands is.
        #[test]
        fn ranges_are_sets(added in ids(), removed in ids(), others in ids(), from in ids()) {
            let mut set = IdSet::new();
            let mut plain = BTreeSet::new();
            for id in added {
                prop_assert_eq!(set.insert(id), plain.insert(id));
                set.assert_invariants();
            }
            for id in removed {
                prop_assert_eq!(set.remove(id), plain.remove(&id));
                set.assert_invariants();
            }
            let other: IdSet = others.iter().copied().collect();
            let plain_other: BTreeSet<_> = others.into_iter().collect();
            for from in from {
                let beyond = plain.range(from..).find(|id| !plain_other.contains(id)).copied();
                prop_assert_eq!(set.first_beyond(from, &other), beyond);
                prop_assert_eq!(set.contains(from), plain.contains(&from));
            }
            let beyond = plain.difference(&plain_other).max_by_key(|id| (id.sequence, id.leader));
            prop_assert_eq!(set.last_beyond(&other), beyond.copied());
            let mut common = set.clone();
            common.intersect(&other);
            common.assert_invariants();
            prop_assert!(common.iter().eq(plain.intersection(&plain_other).copied()));
            let rest = set.without(&other);
            rest.assert_invariants();
            prop_assert!(rest.iter().eq(plain.difference(&plain_other).copied()));
            let mut ranges = IdSet::new();
            set.as_ranges().for_each(|(first, last)| ranges.insert_range(first, last));
            prop_assert_eq!(&ranges, &set);
            let mut bytes = Vec::new();
            set.encode(&mut bytes);
            prop_assert_eq!(IdSet::decode_all(&bytes).unwrap(), set.clone());
            set.extend(&other);
            set.assert_invariants();
            plain.extend(plain_other);
            prop_assert!(set.iter().eq(plain.iter().copied()));
            prop_assert_eq!(set.len(), plain.len() as u64);
            for leader in (0..3).map(MemberId) {
                let numbers = (1..).take_while(|n| plain.contains(&id(leader.0, *n)));
                prop_assert_eq!(set.contiguous(leader), numbers.count() as u64);
            }
            set.insert_up_to(&[3, 0, 7]);
            set.assert_invariants();
            plain.extend((1..4).map(|n| id(0, n)).chain((1..8).map(|n| id(2, n))));
            prop_assert!(set.iter().eq(plain.iter().copied()));
            set.remove_up_to(&[5, 0]);
            set.assert_invariants();
            plain.retain(|id| id.leader != MemberId(0) || id.sequence > 5);
            prop_assert!(set.iter().eq(plain.into_iter()));
        }
    }
}
