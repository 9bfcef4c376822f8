//! What the users of two-phase commit choose.

use crate::two_phase::policy::UserChoice;

/// What a prepare does where what it writes is locked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteLocks {
    /// It is refused, as in the thesis.
    #[default]
    Tried,
    /// It waits, for `lock_wait` at most.
    WaitedFor,
}

/// What its users choose: what a prepare does where what it writes is locked.
pub type Switches = UserChoice<WriteLocks>;

impl Switches {
    /// Prepares wait for locks.
    pub fn waiting() -> Switches {
        Switches { choice: WriteLocks::WaitedFor, ..Switches::default() }
    }
}
