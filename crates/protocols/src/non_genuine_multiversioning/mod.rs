//! NGM, non-genuine multiversioning: the base of comparison in GMU's evaluation (Peluso and others,
//! 2012, section VI) that shows what genuine partial replication is good for.
//!
//! # The idea
//! One clock, replicated everywhere, orders all updates: every repository takes part in every
//! update's commit, whether it holds a key of it or not, and a snapshot is a moment of that clock.
//! Otherwise it is SCORe, whose argument holds unchanged: it allows more to take part than must.
//!
//! # What it costs
//! An update costs two messages to each of all repositories, and stands in the queues of all, so
//! that every node carries the updates of all others: throughput falls as nodes are added.
//!
//! # Deviations
//! * The clock is not a service of its own: it is what the repositories agree on for each update,
//!   by the largest proposal.

use muesli_core::{Isolation, Timestamp};

use crate::two_phase::policy::{order, validation};
use crate::two_phase::{Rules, Scalar, ScalarTime, TwoPhase, Variant};

/// The protocol.
pub type NonGenuineMultiversioning = TwoPhase<Everybody>;

/// Its way: everybody takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Everybody {}

impl Variant for Everybody {
    const NAME: &'static str = "non-genuine-multiversioning";
    const ISOLATION: Isolation = Isolation::Serializable;
    type Rules = Rules;
    type Keeper = ();
    type Reader = ();
    type Snapshot = Timestamp;
    type Yes = Timestamp;
    type Place = Timestamp;
    type Time = ScalarTime;
    type Validation = validation::Updates;
    type Order = order::ByTimestamp;

    const EVERYBODY_TAKES_PART: bool = true;

    fn rules(rules: &Rules) -> Rules {
        *rules
    }

    fn keeper(_rules: &Rules, _hash_seed: u64) {}

    /// It keeps nothing.
    fn assert_keeper((): &()) {}
}

impl Scalar for Everybody {}
