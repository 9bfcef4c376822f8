//! Which repositories take part in an update.

use std::fmt::Debug;

/// Who takes part.
pub trait ParticipationPolicy: Copy + Debug + 'static {
    /// Whether every repository takes part in every update.
    const ALL: bool;
}

/// Those that hold a key which the update read or wrote: genuine partial replication.
#[derive(Clone, Copy, Debug)]
pub enum Genuine {}

impl ParticipationPolicy for Genuine {
    const ALL: bool = false;
}

/// All there are.
#[derive(Clone, Copy, Debug)]
pub enum NonGenuine {}

impl ParticipationPolicy for NonGenuine {
    const ALL: bool = true;
}
