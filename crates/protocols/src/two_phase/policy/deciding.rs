//! Who gathers the votes of a transaction and decides.

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidePolicy {
    /// The coordinator: every participant votes to it.
    ByCoordinator,
    /// The lowest [validator](crate::two_phase::validator) above all participants, in the tree of
    /// the catalog. Whoever is asked again votes to the coordinator, which then decides as well.
    ByValidators,
}

impl DecidePolicy {
    /// Whether votes climb a tree.
    #[inline]
    pub const fn has_validators(self) -> bool {
        matches!(self, DecidePolicy::ByValidators)
    }
}
