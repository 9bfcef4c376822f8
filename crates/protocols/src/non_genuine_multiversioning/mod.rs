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

use muesli_core::{Isolation, NoService};

use crate::two_phase::policy::{ParticipationPolicy, Policies};
use crate::two_phase::{self, Scalar, Switches, TwoPhase, Variant};

/// The protocol.
pub type NonGenuineMultiversioning = TwoPhase<Everybody>;

/// Its way: everybody takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Everybody {}

impl Variant for Everybody {
    const NAME: &'static str = "non-genuine-multiversioning";
    const POLICIES: Policies =
        Policies { participation: ParticipationPolicy::NonGenuine, ..Policies::SCORE };
    const ISOLATION: Isolation = Isolation::Serializable;
    type Service = NoService;
    type Switches = Switches;
    type ProtocolState = ();
    type Reader = ();

    two_phase::goes_by_timestamps!();
}

impl Scalar for Everybody {}
