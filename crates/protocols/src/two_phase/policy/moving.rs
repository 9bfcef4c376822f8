//! Whether keys move.

/// Whether a key is always where static placement puts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MovePolicy {
    /// It is.
    Never,
    /// It has one owner at a time. Who commits a write of it may become that, as the user
    /// [chooses](crate::two_phase::Variant::moves).
    ToCommitter,
}

impl MovePolicy {
    /// Whether a key can be elsewhere than static placement puts it.
    #[inline]
    pub const fn may_move(self) -> bool {
        matches!(self, MovePolicy::ToCommitter)
    }
}
