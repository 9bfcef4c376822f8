//! Which repositories take part in an update.

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParticipationPolicy {
    /// Those that hold a key which the update read or wrote: genuine partial replication.
    Genuine,
    /// All there are.
    NonGenuine,
}

impl ParticipationPolicy {
    /// Whether every repository takes part in every update.
    #[inline]
    pub const fn is_all(self) -> bool {
        matches!(self, ParticipationPolicy::NonGenuine)
    }
}
