//! What a host knows of strangers: the numbers they have, and what became of their messages.

/// The first number of strangers, which no node has, and which no other number becomes by one byte:
/// what others say does not turn into a stranger's own word by chance.
pub(in crate::world) const FIRST_STRANGER: u32 = 0x9d5b_37a1;

/// What became of strangers' messages of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StrangerCount {
    /// Taken.
    pub taken: u64,
    /// Left out.
    pub rejected: u64,
}

impl std::ops::AddAssign for StrangerCount {
    fn add_assign(&mut self, other: StrangerCount) {
        self.taken += other.taken;
        self.rejected += other.rejected;
    }
}
