//! What a transaction reads at: a vector clock, and who has answered.
//!
//! The entry of a repository that has answered is fixed: everything that the transaction may see
//! there is known. Those of others are lower bounds: what was read so far depends on as much.

use std::fmt;

use muesli_core::judgement::{ensure, in_range};
use muesli_core::parts::vector_clock::VectorClock;
use muesli_core::parts::watermark::Bound;
use muesli_core::{Rejection, RepositoryId, Timestamp, wire_struct};

use crate::two_phase::Snapshot;

/// The paper's T.VC and T.hasRead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// What the transaction depends on.
    pub clock: VectorClock,
    /// The repositories that have answered a read, each once.
    pub answered: Vec<RepositoryId>,
}

wire_struct!(Reads { clock: VectorClock, answered: Vec<RepositoryId> });

impl Reads {
    /// Nothing was read, but this is known of.
    pub fn from_clock(clock: VectorClock) -> Reads {
        Reads { clock, answered: Vec::new() }
    }

    /// Whether what was read at `at` would have been read the same, had everything in this one been
    /// known when it was asked for. Both began at the same, and each repository that has answered
    /// fixed its entry:
    ///
    /// * `at` depends on nothing at repositories that have answered this one and that this one does
    ///   not see: their answers stand, and all that was read at `at` lies within both.
    /// * This one depends on nothing at those that have answered `at` that `at` does not see: they
    ///   would have shown no more.
    pub fn fits(&self, at: &Reads) -> bool {
        let within = |one: &Reads, other: &Reads| {
            one.answered.iter().all(|&it| other.clock.get(it) <= one.clock.get(it))
        };
        within(self, at) && within(at, self)
    }

    /// A repository has answered.
    pub fn mark(&mut self, repository: RepositoryId) {
        if !self.answered.contains(&repository) {
            self.answered.push(repository);
        }
    }
}

/// As bounds only the clocks count.
impl Bound for Reads {
    fn join(&mut self, other: &Reads) {
        self.clock.join(&other.clock);
    }

    fn meet(&mut self, other: &Reads) {
        self.clock.meet(&other.clock);
    }
}

/// A counter as a timestamp; [`Timestamp::MAX`] where that has no room for it.
pub(super) fn reach_of(counter: u64) -> Timestamp {
    let fits = counter <= Timestamp::FARTHEST.counter();
    if fits { Timestamp::new(counter, RepositoryId(0)) } else { Timestamp::MAX }
}

/// Whether a vector can be one of so many repositories; how far it reaches.
pub(super) fn judge_vector(
    vector: &VectorClock,
    repositories: usize,
) -> Result<Timestamp, Rejection> {
    ensure(vector.len() <= repositories, Rejection::Range)?;
    let reach = reach_of(vector.largest_counter());
    in_range(reach).map(|()| reach)
}

impl Snapshot for Reads {
    /// A commit's number says nothing of other repositories: the node remembers instead.
    fn from_lower_bound(_lower_bound: Timestamp) -> Reads {
        Reads::default()
    }

    fn learn(&mut self, at: &Reads) {
        self.clock.join(&at.clock);
        for &repository in &at.answered {
            self.mark(repository);
        }
        assert!(at.clock.is_within(&self.clock), "what was answered is not depended on");
    }

    fn as_lower_bound(&self) -> Reads {
        Reads::from_clock(self.clock.clone())
    }

    fn reaches(&self, other: &Reads) -> bool {
        other.clock.is_within(&self.clock)
    }

    /// It depends on more than what repositories have shown that answered before; these have shown
    /// nothing that depends on more than it shows.
    fn is_ahead_of(&self, known: &Reads) -> bool {
        let entry = |reads: &Reads, it: &RepositoryId| reads.clock.get(*it);
        known.answered.iter().any(|it| entry(self, it) > entry(known, it))
            && self.answered.iter().all(|it| entry(known, it) <= entry(self, it))
    }

    fn is_fixed_at(&self, repository: RepositoryId) -> bool {
        self.answered.contains(&repository)
    }

    fn at(&self) -> Timestamp {
        Timestamp::new(self.clock.largest_counter(), RepositoryId(0))
    }

    fn reach(&self) -> Timestamp {
        reach_of(self.clock.largest_counter())
    }

    fn judge(&self, repositories: usize) -> Result<Timestamp, Rejection> {
        let is_one = |repository: &RepositoryId| usize::from(repository.0) < repositories;
        ensure(self.answered.len() <= repositories, Rejection::Range)?;
        ensure(self.answered.iter().all(is_one), Rejection::Range)?;
        judge_vector(&self.clock, repositories)
    }
}

impl fmt::Display for Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.clock)?;
        for (place, repository) in self.answered.iter().enumerate() {
            write!(f, "{}r{}", if place == 0 { " read " } else { "," }, repository.0)?;
        }
        Ok(())
    }
}
