//! Transactions of timestamp mode in the order in which they will be done.
//!
//! Each stands at a timestamp below which it will not be done: at its place, if that is known, else
//! at what was proposed here. Whoever waits for votes stands in the *lane* of one voter that it
//! misses. What is known of all later votes of that voter holds for the whole lane at once (see
//! [`streams`](crate::granola::participant::votes::implicit)), so an implicit vote moves nobody in
//! the queue.

use std::collections::BTreeSet;
use std::fmt;

use muesli_core::{RepositoryId, Timestamp};

use super::out_of_order::Passing;
use super::{Lane, Stand};

/// The queue.
#[derive(Clone, Default)]
pub(in super::super) struct Queue {
    placed: BTreeSet<Stand>,
    /// Lanes that have been used; few, and perhaps empty now.
    waiting: Vec<(Option<RepositoryId>, BTreeSet<Stand>)>,
    /// Who may pass whom, if anybody may.
    pub passing: Option<Passing>,
}

impl Queue {
    /// An empty one, in which some may pass others, or nobody may.
    pub fn new(passes: bool) -> Queue {
        Queue { passing: passes.then(Passing::default), ..Queue::default() }
    }

    /// Puts a transaction in.
    pub fn insert(&mut self, lane: Lane, stand: Stand) {
        if let Some(passing) = &mut self.passing {
            passing.come(lane, stand);
        }
        self.put(lane, stand);
    }

    fn put(&mut self, lane: Lane, stand: Stand) {
        let Lane::Behind(voter) = lane else {
            self.placed.insert(stand);
            return;
        };
        match self.waiting.iter_mut().find(|(known, _)| *known == voter) {
            Some((_, all)) => drop(all.insert(stand)),
            None => self.waiting.push((voter, BTreeSet::from([stand]))),
        }
    }

    /// Takes a transaction out, if it is in.
    pub fn remove(&mut self, lane: Lane, stand: &Stand) {
        if let Some(passing) = &mut self.passing {
            passing.go(*stand);
        }
        self.take(lane, stand);
    }

    /// A transaction that is in has its place now.
    pub fn rise(&mut self, lane: Lane, from: Stand, to: Stand) {
        if let Some(passing) = &mut self.passing {
            passing.rise(from, to);
        }
        self.take(lane, &from);
        self.put(Lane::Placed, to);
    }

    /// What a transaction that is in waits for has changed.
    pub fn change_lane(&mut self, was: Lane, lane: Lane, stand: Stand) {
        self.take(was, &stand);
        self.put(lane, stand);
    }

    fn take(&mut self, lane: Lane, stand: &Stand) {
        let Lane::Behind(voter) = lane else {
            self.placed.remove(stand);
            return;
        };
        if let Some((_, all)) = self.waiting.iter_mut().find(|(known, _)| *known == voter) {
            all.remove(stand);
        }
    }

    /// Takes out everything.
    pub fn clear(&mut self) {
        self.placed.clear();
        self.waiting.clear();
        self.passing = self.passing.take().map(|_| Passing::default());
    }

    /// Whether nobody is in.
    pub fn is_empty(&self) -> bool {
        self.placed.is_empty() && self.is_all_placed()
    }

    /// Whether who is not first may pass who is.
    pub fn is_passed(&self) -> bool {
        self.passing.is_some()
    }

    /// Who may pass whom, if anybody may.
    pub fn passing(&mut self) -> Option<&mut Passing> {
        self.passing.as_mut()
    }

    /// Somebody is to be looked at who may pass.
    pub fn has_hope(&self) -> bool {
        self.passing.as_ref().is_some_and(Passing::has_hope)
    }

    /// It is to be looked at again whether somebody may pass.
    pub fn look_again(&mut self, stand: Stand) {
        if let Some(passing) = &mut self.passing {
            passing.look_again(stand);
        }
    }

    /// Whether a transaction is in whose place is known to be there.
    pub fn is_placed(&self, stand: &Stand) -> bool {
        self.placed.contains(stand)
    }

    /// Who stands lowest.
    pub fn first(&self) -> Option<Stand> {
        let lowest = self.waiting.iter().filter_map(|(_, all)| all.first());
        lowest.chain(self.placed.first()).min().copied()
    }

    /// The first whose place is known, if nobody can come to stand before it.
    pub fn first_ready(&self, bound: impl Fn(RepositoryId) -> Timestamp) -> Option<Stand> {
        self.ready(bound).next()
    }

    /// All whose places are known and before whom nobody stands, or can come to, who is not among
    /// them, in ascending order: whoever waits stands above them, or will, as all later votes of a
    /// voter that it misses lie above `bound`.
    pub fn ready(&self, bound: impl Fn(RepositoryId) -> Timestamp) -> impl Iterator<Item = Stand> {
        let nobody_before = move |placed: &Stand| {
            self.waiting.iter().all(|(voter, all)| {
                all.first().is_none_or(|lowest| {
                    lowest > placed || voter.is_some_and(|voter| bound(voter) > placed.0)
                })
            })
        };
        self.placed.iter().copied().take_while(nobody_before)
    }

    /// Whether the places of all are known.
    pub fn is_all_placed(&self) -> bool {
        self.waiting.iter().all(|(_, all)| all.is_empty())
    }

    /// The last whose place is known: the wrong one.
    pub fn last_placed(&self) -> Option<Stand> {
        self.placed.last().copied()
    }

    /// All, in ascending order.
    pub fn all(&self) -> Vec<Stand> {
        let waiting = self.waiting.iter().flat_map(|(_, all)| all);
        let mut all: Vec<_> = self.placed.iter().chain(waiting).copied().collect();
        all.sort_unstable();
        all
    }
}

/// Without lanes that are empty, which make no difference.
impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lanes = self.waiting.iter().filter(|(_, all)| !all.is_empty());
        let mut all = f.debug_map();
        all.entry(&"placed", &self.placed).entries(lanes.map(|(k, v)| (k, v)));
        all.entries(self.passing.iter().map(|it| ("passing", it))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muesli_core::NodeId;
    use muesli_core::TxnId;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn stand(at: u64, sequence: u64) -> Stand {
        let txn = TxnId { node: NodeId(0), incarnation: 1, sequence };
        (Timestamp(at), txn)
    }

    fn lane(number: u8) -> Lane {
        match number {
            0 => Lane::Placed,
            1 => Lane::Behind(None),
            voter => Lane::Behind(Some(RepositoryId(u16::from(voter)))),
        }
    }

    proptest! {
        /// Against a list in which everybody who waits stands where it will at least come to stand.
        #[test]
        fn the_first_is_ready_if_nobody_can_come_before_it(
            steps in prop::collection::vec((0u64..12, 0u64..6, 0u8..4, any::<bool>()), 1..40),
            bounds in prop::collection::vec(0u64..14, 2),
        ) {
            let (mut queue, mut model) = (Queue::default(), BTreeMap::new());
            let bound = |voter: RepositoryId| Timestamp(bounds[usize::from(voter.0) - 2]);
            for (at, sequence, number, goes) in steps {
                if let Some((lane, old)) = model.remove(&sequence) {
                    queue.remove(lane, &old);
                }
                if !goes {
                    model.insert(sequence, (lane(number), stand(at, sequence)));
                    queue.insert(lane(number), stand(at, sequence));
                }
                let all: BTreeSet<_> = model.values().map(|(_, stand)| *stand).collect();
                prop_assert_eq!(queue.all(), all.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(queue.first(), all.first().copied());
                prop_assert_eq!(queue.is_empty(), all.is_empty());
                let mut placed = model.values().filter(|(lane, _)| *lane == Lane::Placed);
                let first = placed.by_ref().map(|(_, stand)| *stand).min();
                let before = |first: Stand| model.values().any(|(lane, stand)| match lane {
                    Lane::Placed | Lane::Behind(None) => *stand < first,
                    Lane::Behind(Some(voter)) => *stand < first && bound(*voter) <= first.0,
                });
                prop_assert_eq!(queue.first_ready(bound), first.filter(|first| !before(*first)));
            }
        }
    }
}
