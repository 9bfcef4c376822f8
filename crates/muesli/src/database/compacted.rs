//! What a compaction has done.

/// What [`Db::compact`](crate::Db::compact) has done: the bytes of all files of the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// Before.
    pub before: u64,
    /// Afterwards. More were in use meanwhile: what is new is there before what is old goes.
    pub after: u64,
}
