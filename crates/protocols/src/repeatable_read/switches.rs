//! What the users of repeatable read choose.

use crate::two_phase::policy::UserChoice;

/// When keys are locked that a transaction writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockTime {
    /// With each write, while the transaction runs (encounter time).
    #[default]
    Write,
    /// When the commit prepares.
    Commit,
}

/// What its users choose: when keys are locked.
pub type Switches = UserChoice<LockTime>;

impl Switches {
    /// Locks are taken at the commit.
    pub fn at_commit() -> Switches {
        Switches { choice: LockTime::Commit, ..Switches::default() }
    }
}
