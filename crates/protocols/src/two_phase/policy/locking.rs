//! When keys are locked that a transaction writes.

use std::fmt::Debug;

/// When keys can be locked.
pub trait LockPolicy: Copy + Debug + 'static {
    /// Whether keys may be locked as they are written, before the commit, where the user
    /// [chooses](crate::two_phase::Variant::locks_at_writes) that.
    const MAY_LOCK_AT_WRITES: bool;
}

/// When the commit prepares.
#[derive(Clone, Copy, Debug)]
pub enum AtPrepare {}

impl LockPolicy for AtPrepare {
    const MAY_LOCK_AT_WRITES: bool = false;
}

/// As they are written (encounter time), or when the commit prepares, as the user chooses.
#[derive(Clone, Copy, Debug)]
pub enum AtWriteOrPrepare {}

impl LockPolicy for AtWriteOrPrepare {
    const MAY_LOCK_AT_WRITES: bool = true;
}
