//! Who gathers the votes of a transaction and decides.

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidePolicy {
    /// The coordinator: every participant votes to it.
    ByCoordinator,
    /// Whom the user [chooses](crate::two_phase::Variant::tree): a tree of
    /// [validators](crate::two_phase::validator), or somebody without a tree. Whoever is asked
    /// again votes to the coordinator, which then decides as well.
    AsChosen,
}

impl DecidePolicy {
    /// Whether votes may be gathered by validators.
    #[inline]
    pub const fn may_have_validators(self) -> bool {
        matches!(self, DecidePolicy::AsChosen)
    }
}

/// Who gathers the votes of an update, where its protocol leaves that to the user. Whoever it is
/// decides alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decider {
    /// The lowest validator above all participants, in the tree of the catalog; those on the way
    /// merge votes.
    #[default]
    Tree,
    /// The coordinator, which all vote to.
    Coordinator,
    /// A validator beside one of the participants: the one on the coordinator's node, if one is,
    /// or else whose turn it is by the number of the transaction.
    Participant,
    /// A validator in the coordinator's rack, or if it has none in that of the first participant:
    /// that of the lowest inner node there. All vote to it directly.
    Relay,
}

impl Decider {
    /// Whether votes go to validators.
    #[inline]
    pub fn has_validators(self) -> bool {
        self != Decider::Coordinator
    }
}
