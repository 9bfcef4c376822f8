//! Policies: what a protocol of the family, or its user, chooses.
//!
//! A protocol names its [`Policies`] as a constant: what [reads](reading) see, which repositories
//! [take part](participation), when keys are [locked](locking), for which locks prepares
//! [wait](waiting), how reads are [validated](validation), in which [order](order) decided
//! transactions are applied, where their versions are [installed](installing), who
//! [decides](deciding), and whether keys [move](moving). It names those in which it departs from
//! SCORe. They are known when the code is compiled, so what a protocol does not do is not in its
//! code. What a user may choose is in the [`Switches`]. What can be broken, and by tests alone, is
//! a [`FamilySwitch`]; validation by a tree has [rules of its own](tree_switches), which are broken
//! where it is run as printed.

pub mod deciding;
pub mod installing;
pub mod locking;
pub mod moving;
pub mod order;
pub mod participation;
pub mod reading;
mod switches;
pub mod tree_switches;
pub mod validation;
pub mod waiting;

pub use deciding::{DecidePolicy, Decider};
pub use installing::InstallPolicy;
pub use locking::LockPolicy;
pub use moving::MovePolicy;
pub use muesli_core::sabotage::{Breakable, Sabotage};
pub use order::ApplyOrder;
pub use participation::ParticipationPolicy;
pub use reading::ReadPolicy;
pub use switches::{FamilySwitch, LockWaits, Switches, UserChoice};
pub use tree_switches::{Exclusion, TreeChoice, TreeSwitch};
pub use validation::Validation;
pub use waiting::WaitPolicy;

/// What a protocol does at each of the points at which the family differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policies {
    /// What reads see.
    pub reading: ReadPolicy,
    /// Which repositories take part in an update.
    pub participation: ParticipationPolicy,
    /// When keys that are written may be locked.
    pub locking: LockPolicy,
    /// For which locks a prepare waits.
    pub waiting: WaitPolicy,
    /// What of a transaction is validated when it commits.
    pub validation: Validation,
    /// In which order decided transactions are applied.
    pub order: ApplyOrder,
    /// Where their versions are installed.
    pub installing: InstallPolicy,
    /// Who gathers the votes and decides.
    pub deciding: DecidePolicy,
    /// Whether keys move.
    pub moving: MovePolicy,
}

impl Policies {
    /// SCORe's, from which the others depart.
    pub const SCORE: Policies = Policies {
        reading: ReadPolicy::AtTimestamp,
        participation: ParticipationPolicy::Genuine,
        locking: LockPolicy::AtPrepare,
        waiting: WaitPolicy::ForWrites,
        validation: Validation::Updates,
        order: ApplyOrder::ByTimestamp,
        installing: InstallPolicy::AtCommitTimestamp,
        deciding: DecidePolicy::ByCoordinator,
        moving: MovePolicy::Never,
    };
}
