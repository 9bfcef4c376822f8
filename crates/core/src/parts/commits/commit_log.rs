//! The commit log of a repository under vector clocks: every transaction applied there, in the
//! order of the repository's own numbers, with its commit vector and the keys that it wrote.
//!
//! It answers what a reader may see. A reader that has read elsewhere must not see a commit that
//! lies after what it saw there; [`CommitLog::visible_to`] gives the pointwise maximum of the
//! commits that it may see, which bounds what it reads here from then on. Pointwise, because a log
//! is in the order of one entry only: the last visible commit need not know of those before it.

use std::collections::BTreeMap;

use crate::bytes::SmallBytes;
use crate::checkpoint::pieces;
use crate::ids::{RepositoryId, SpaceId};
use crate::parts::vector_clock::{Number, VectorClock};
use crate::parts::watermark::Bound;
use crate::wire::{Reader, Wire, WireError};

/// A key, with its space.
pub type LoggedKey = (SpaceId, SmallBytes);

/// What was applied at a repository, by its numbers there.
///
/// Invariants: each entry stands at the number that its vector has for this repository, and
/// everything that is or was in the log lies within `most_recent`.
#[derive(Clone, Debug)]
pub struct CommitLog {
    me: RepositoryId,
    /// In the order of numbers here; those of one number, as they were applied.
    entries: BTreeMap<(Number, u64), LoggedCommit>,
    added: u64,
    /// The pointwise maximum of all that was ever applied.
    most_recent: VectorClock,
    /// The same of what was collected: everybody sees it.
    collected: VectorClock,
    /// The largest number collected.
    collected_to: Number,
}

#[derive(Clone, Debug)]
struct LoggedCommit {
    vector: VectorClock,
    keys: Vec<LoggedKey>,
}

impl CommitLog {
    /// The empty log of `me`.
    pub fn new(me: RepositoryId) -> CommitLog {
        CommitLog {
            me,
            entries: BTreeMap::new(),
            added: 0,
            most_recent: VectorClock::default(),
            collected: VectorClock::default(),
            collected_to: Number::ZERO,
        }
    }

    /// A transaction was applied, at its commit vector.
    pub fn add(&mut self, vector: VectorClock, keys: Vec<LoggedKey>) {
        self.most_recent.join(&vector);
        self.added += 1;
        self.entries.insert((vector.get(self.me), self.added), LoggedCommit { vector, keys });
    }

    /// The pointwise maximum of everything applied here.
    #[inline]
    pub fn most_recent(&self) -> &VectorClock {
        &self.most_recent
    }

    /// The commit vector of the transaction applied last.
    pub fn last(&self) -> &VectorClock {
        self.entries.last_key_value().map_or(&self.collected, |(_, entry)| &entry.vector)
    }

    /// The pointwise maximum of what a reader at `clock` may see that has read at `answered`.
    pub fn visible_to(&self, clock: &VectorClock, answered: &[RepositoryId]) -> VectorClock {
        let sees = |vector: &VectorClock| sees(clock, answered, vector);
        if sees(&self.most_recent) {
            return self.most_recent.clone();
        }
        let mut visible = self.collected.clone();
        for entry in self.entries.values().filter(|entry| sees(&entry.vector)) {
            visible.join(&entry.vector);
        }
        visible
    }

    /// The commit vector of the last of them, as the paper may be read.
    pub fn last_visible_to(&self, clock: &VectorClock, answered: &[RepositoryId]) -> VectorClock {
        let mut newest_first = self.entries.values().rev();
        let found = newest_first.find(|entry| sees(clock, answered, &entry.vector));
        found.map_or_else(|| self.collected.clone(), |entry| entry.vector.clone())
    }

    /// The commit vector of whoever wrote the version of `key` whose number has this counter;
    /// `None` if it was collected, and everybody sees it.
    pub fn writer_of(
        &self,
        space: SpaceId,
        key: &SmallBytes,
        counter: u64,
    ) -> Option<&VectorClock> {
        let from = (Number { counter, ..Number::ZERO }, 0);
        let to = (Number { counter: counter.saturating_add(1), ..Number::ZERO }, 0);
        let wrote = |entry: &&LoggedCommit| entry.keys.iter().any(|(s, k)| *s == space && k == key);
        self.entries.range(from..to).map(|(_, entry)| entry).find(wrote).map(|entry| &entry.vector)
    }

    /// Drops what every reader sees whose clock is at least `bound`, as far as the log holds
    /// nothing else before it; the largest number of it.
    pub fn collect(&mut self, bound: &VectorClock) -> Number {
        while let Some(first) = self.entries.first_entry() {
            if !first.get().vector.is_within(bound) {
                break;
            }
            let ((number, _), entry) = first.remove_entry();
            self.collected.join(&entry.vector);
            self.collected_to = self.collected_to.max(number);
        }
        self.collected_to
    }

    /// All of it, for a checkpoint: in pieces of about `bytes` bytes, each behind `head`.
    pub fn encode(&self, head: Vec<u8>, bytes: usize) -> Vec<Vec<u8>> {
        let entry = |entry: &LoggedCommit| (entry.vector.clone(), entry.keys.clone());
        let mut all: Vec<_> =
            pieces(head.clone(), self.entries.values().map(entry), bytes).collect();
        if all.is_empty() {
            let mut without = head;
            Vec::<(VectorClock, Vec<LoggedKey>)>::new().encode(&mut without);
            all.push(without);
        }
        for piece in &mut all {
            (self.most_recent.clone(), self.collected.clone(), self.collected_to).encode(piece);
        }
        all
    }

    /// Takes over a piece of what another log of this repository [gave](Self::encode); all of them,
    /// in their order, make it the same.
    ///
    /// # Errors
    /// The bytes are no log.
    pub fn restore(&mut self, input: &mut Reader<'_>) -> Result<(), WireError> {
        for (vector, keys) in Vec::<(VectorClock, Vec<LoggedKey>)>::decode(input)? {
            self.add(vector, keys);
        }
        let (most_recent, collected, collected_to): (VectorClock, VectorClock, _) =
            Wire::decode(input)?;
        if !collected.is_within(&most_recent) {
            let what = "log in which all that was collected is known";
            return Err(WireError::Variant { what, at: input.position(), found: 0 });
        }
        self.most_recent.join(&most_recent);
        self.collected.join(&collected);
        self.collected_to = self.collected_to.max(collected_to);
        Ok(())
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        for ((number, nth), entry) in &self.entries {
            assert_eq!(entry.vector.get(self.me), *number, "a commit that is not at its number");
            assert!(entry.vector.is_within(&self.most_recent), "commit {number} is not known");
            assert!(*nth <= self.added, "commit {number} is number {nth} of {}", self.added);
        }
        assert!(self.collected.is_within(&self.most_recent), "what was collected is not known");
        self.most_recent.assert_invariants();
        self.collected.assert_invariants();
    }

    /// The largest number of what was collected.
    pub fn collected_to(&self) -> Number {
        self.collected_to
    }

    /// How many commits are kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Whether a reader at `clock` that has read at `answered` may see a commit.
#[inline]
pub fn sees(clock: &VectorClock, answered: &[RepositoryId], commit: &VectorClock) -> bool {
    answered.iter().all(|&there| commit.get(there) <= clock.get(there))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::{NodeId, TxnId};

    const ME: RepositoryId = RepositoryId(0);
    const SPACE: SpaceId = SpaceId(0);

    fn vector(counters: &[u64]) -> VectorClock {
        let mut vector = VectorClock::default();
        for (place, &counter) in counters.iter().enumerate() {
            let by = TxnId { node: NodeId(0), incarnation: 1, sequence: counter };
            vector.set(RepositoryId(place as u16), Number { counter, by });
        }
        vector
    }

    fn key(name: &str) -> LoggedKey {
        (SPACE, name.into())
    }

    #[test]
    fn what_is_visible_is_a_pointwise_maximum() {
        let mut log = CommitLog::new(ME);
        log.add(vector(&[1, 5]), vec![key("a")]);
        log.add(vector(&[2, 0, 7]), vec![key("b")]);
        log.add(vector(&[3, 9]), vec![key("a")]);
        assert_eq!(*log.most_recent(), vector(&[3, 9, 7]));
        assert_eq!(log.visible_to(&vector(&[]), &[]), vector(&[3, 9, 7]));
        let reader = vector(&[0, 6]);
        assert_eq!(log.visible_to(&reader, &[RepositoryId(1)]), vector(&[2, 5, 7]));
        assert_eq!(log.writer_of(SPACE, &"a".into(), 3), Some(&vector(&[3, 9])));
        assert_eq!(log.writer_of(SPACE, &"b".into(), 3), None);
    }

    #[test]
    fn only_what_everybody_sees_is_collected() {
        let mut log = CommitLog::new(ME);
        log.add(vector(&[1, 5]), vec![key("a")]);
        log.add(vector(&[2, 8]), vec![key("a")]);
        log.add(vector(&[3, 1]), vec![key("b")]);
        assert_eq!(log.collect(&vector(&[9, 6])).counter, 1);
        assert_eq!(log.len(), 2, "the third waits for the second");
        assert_eq!(log.writer_of(SPACE, &"a".into(), 1), None);
        assert_eq!(log.collect(&vector(&[9, 9])).counter, 3);
        assert!(log.is_empty());
        assert_eq!(log.visible_to(&vector(&[0, 8]), &[RepositoryId(1)]), vector(&[3, 8]));
    }

    proptest! {
        /// Against the definition; and collecting below a bound changes nothing for whoever reads
        /// at or above it.
        #[test]
        fn visible_is_as_defined_collected_or_not(
            others in prop::collection::vec((0u64..6, 0u64..6), 1..12),
            bound in (0u64..14, 0u64..6, 0u64..6),
            above in (0u64..4, 0u64..4, 0u64..4),
            answered in prop::sample::subsequence(vec![RepositoryId(1), RepositoryId(2)], 0..=2),
        ) {
            let commits = others.iter().enumerate();
            let commits: Vec<_> =
                commits.map(|(at, (b, c))| vector(&[at as u64 + 1, *b, *c])).collect();
            let mut log = CommitLog::new(ME);
            for commit in &commits {
                log.add(commit.clone(), vec![]);
            }
            let low = vector(&[bound.0, bound.1, bound.2]);
            let reader = vector(&[bound.0 + above.0, bound.1 + above.1, bound.2 + above.2]);
            let mut wanted = VectorClock::default();
            for commit in commits.iter().filter(|commit| sees(&reader, &answered, commit)) {
                wanted.join(commit);
            }
            prop_assert_eq!(log.visible_to(&reader, &answered), wanted.clone());
            log.collect(&low);
            prop_assert_eq!(log.visible_to(&reader, &answered), wanted.clone());
            let (pieces, mut restored) = (log.encode(vec![7], 1), CommitLog::new(ME));
            prop_assert_eq!(pieces.len(), log.len().max(1));
            for piece in &pieces {
                let mut input = Reader::new(&piece[1..]);
                restored.restore(&mut input).and_then(|()| input.finish()).unwrap();
            }
            prop_assert_eq!(restored.visible_to(&reader, &answered), wanted);
            prop_assert_eq!(restored.len(), log.len());
        }
    }
}
