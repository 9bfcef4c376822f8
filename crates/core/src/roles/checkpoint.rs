//! Checkpoints of a node, taken while it goes on.
//!
//! The problem: the log of a repository grows with its work, and a start that replays all of it
//! takes longer every day. The state after some record would do instead, but it is too large to be
//! copied in one step of a loop.
//!
//! The idea is a *fuzzy* checkpoint. It stands for a log position, that of the moment it began.
//! What must be of exactly that moment (clocks, prepared transactions, remembered outcomes) is
//! small, and taken at once. The rest is handed out in bounded pieces between the node's other
//! work, and may already hold the effects of later records. Whoever restores it replays all
//! records after its position on top, and the protocol sees to it that an effect that is there
//! already is not made twice.
//!
//! Three things are asked of the driver. Pieces may hold what later records did; so a checkpoint
//! counts only once the log is stable up to [`Checkpoint::needs`], or it would bring back what
//! nobody logged. A participant may have to wait for more: a member of a replication group holds
//! effects that its group has not decided yet, and may never decide
//! ([`Readiness`]). And pieces are restored in the order they were made, before any replay.
//!
//! A piece goes into a record of a log, or into a message, so none may grow with the data. Lists
//! are cut by their bytes ([`pieces`]), the versions of one key too ([`Rest`]); what cannot be cut
//! is at most one transaction.

use std::collections::VecDeque;

use crate::bytes::SmallBytes;
use crate::ids::{SpaceId, Timestamp};
use crate::positions::LogPosition;
use crate::roles::Role;
use crate::wire::{Wire, WireError};

/// What is of one moment is cut into pieces of about so many bytes.
pub const HEAD_PIECE_BYTES: usize = 32 << 10;

/// A checkpoint of a node under way; see [`Node::begin_checkpoint`](crate::Node::begin_checkpoint).
#[derive(Clone, Debug)]
pub struct Checkpoint {
    pub(crate) covers: LogPosition,
    pub(crate) needs: Option<LogPosition>,
    pub(crate) roles: Vec<(Role, Cursor)>,
    /// Roles whose pieces were all handed out.
    pub(crate) complete: Vec<(Role, Cursor)>,
}

/// Whether a checkpoint whose pieces were all taken may be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Once everything that is logged now is stable.
    Ready,
    /// Not yet: the participant must be asked again later.
    Waits,
    /// Never: it holds effects that did not come to pass. The driver gives it up.
    Void,
}

impl Checkpoint {
    /// The log position that it stands for: records up to there need not be replayed.
    pub fn covers(&self) -> LogPosition {
        self.covers
    }

    /// Once all pieces were handed out and all participants are [ready](Readiness::Ready): how far
    /// the log must be stable before it counts.
    pub fn needs(&self) -> Option<LogPosition> {
        self.needs
    }
}

/// How far the checkpoint of one repository has come, in its protocol's own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Pieces of the moment at which it began.
    pub first: VecDeque<Vec<u8>>,
    /// What comes next.
    pub step: u32,
    /// Where in that.
    pub place: u64,
    /// The versions of the key whose turn it was, as far as there was no room for them.
    pub rest: Option<Rest>,
    /// How much was handed out, of 100.
    pub percent: u8,
    /// Pieces of a group's member around the protocol inside; they come before all others.
    pub around: VecDeque<Vec<u8>>,
    /// Of a group's member: which of its participants the pieces are of, and how many entries that
    /// had applied when the last piece was taken.
    pub taken_from: (u64, u64),
}

/// Versions of a key that are still to be handed out, as they were when its turn came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rest {
    /// The key's space.
    pub space: SpaceId,
    /// The key.
    pub key: SmallBytes,
    /// The versions, oldest first; a value of `None` is a deletion.
    pub versions: VecDeque<(Timestamp, Option<SmallBytes>)>,
}

/// A list in pieces of about `bytes` bytes, or longer by one item: `head`, and then the items as a
/// list of their own. An empty list has none.
pub fn pieces<T: Wire>(
    head: Vec<u8>,
    items: impl IntoIterator<Item = T>,
    bytes: usize,
) -> impl Iterator<Item = Vec<u8>> {
    let mut items = items.into_iter();
    std::iter::from_fn(move || {
        let (mut piece, mut count) = (head.clone(), 0_u32);
        count.encode(&mut piece);
        while piece.len() < head.len() + size_of::<u32>() + bytes
            && let Some(item) = items.next()
        {
            item.encode(&mut piece);
            count += 1;
        }
        piece[head.len()..head.len() + size_of::<u32>()].copy_from_slice(&count.to_le_bytes());
        (count > 0).then_some(piece)
    })
}

/// A piece: a byte that tells its kind, and what it holds.
pub fn piece<T: Wire>(kind: u8, value: &T) -> Vec<u8> {
    let mut out = vec![kind];
    value.encode(&mut out);
    out
}

/// A role whose state is small enough to be copied in one step: its checkpoints are of the moment
/// at which they begin. It says so by [`role_copied_at_once`](crate::role_copied_at_once).
pub trait CopiedAtOnce {
    /// What does not grow with the data.
    type Head: Wire;
    /// One of what does.
    type Item: Wire;
    /// What does not grow with the data.
    fn head(&self) -> Self::Head;
    /// All that does.
    fn items(&self) -> impl Iterator<Item = Self::Item>;
    /// Takes back what does not grow; the role is empty.
    fn take_head(&mut self, head: Self::Head);
    /// Takes back one of what does.
    fn take_item(&mut self, item: Self::Item);
}

/// The kinds of pieces of a role that is copied at once.
const HEAD: u8 = 0;
const ITEMS: u8 = 1;

/// The checkpoint of a role as it is now.
pub fn copy_of(role: &impl CopiedAtOnce) -> Cursor {
    let items = pieces(vec![ITEMS], role.items(), HEAD_PIECE_BYTES);
    let first = std::iter::once(piece(HEAD, &role.head())).chain(items).collect();
    Cursor { first, ..Cursor::default() }
}

/// Takes a piece of such a checkpoint into a role.
///
/// # Errors
/// It is none.
pub fn take_copy<R: CopiedAtOnce>(role: &mut R, piece: &[u8]) -> Result<(), WireError> {
    match piece.split_first() {
        Some((&HEAD, head)) => role.take_head(R::Head::decode_all(head)?),
        Some((&ITEMS, items)) => {
            Vec::decode_all(items)?.into_iter().for_each(|item| role.take_item(item));
        }
        other => {
            let found = other.map_or(0, |(kind, _)| u64::from(*kind));
            return Err(WireError::Variant { what: "piece", at: 0, found });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_cut_by_their_bytes_and_lose_nothing() {
        let items: Vec<SmallBytes> =
            (0..50_u8).map(|it| vec![it; usize::from(it)].into()).collect();
        let cut: Vec<_> = pieces(vec![7, 8], items.clone(), 100).collect();
        assert!(cut.len() > 5, "{}", cut.len());
        assert!(cut.iter().all(|it| it.starts_with(&[7, 8]) && it.len() <= 6 + 100 + 54));
        let back = cut.iter().flat_map(|it| Vec::<SmallBytes>::decode_all(&it[2..]).unwrap());
        assert_eq!(back.collect::<Vec<_>>(), items);
        assert_eq!(pieces::<u8>(vec![7], [], 100).count(), 0);
    }

    #[derive(Debug, Default, PartialEq)]
    struct Kept(u64, Vec<SmallBytes>);

    impl CopiedAtOnce for Kept {
        type Head = u64;
        type Item = SmallBytes;

        fn head(&self) -> u64 {
            self.0
        }

        fn items(&self) -> impl Iterator<Item = SmallBytes> {
            self.1.iter().cloned()
        }

        fn take_head(&mut self, head: u64) {
            self.0 = head;
        }

        fn take_item(&mut self, item: SmallBytes) {
            self.1.push(item);
        }
    }

    #[test]
    fn a_role_that_is_copied_at_once_comes_back_in_bounded_pieces() {
        let kept = Kept(7, vec![vec![5; 1 << 10].into(); 100]);
        let cursor = copy_of(&kept);
        assert!(cursor.first.len() > 3, "{}", cursor.first.len());
        assert!(cursor.first.iter().all(|it| it.len() < HEAD_PIECE_BYTES + (2 << 10)));
        let mut back = Kept::default();
        cursor.first.iter().for_each(|piece| take_copy(&mut back, piece).unwrap());
        assert_eq!(back, kept);
        let empty = copy_of(&Kept(3, Vec::new()));
        assert_eq!(empty.first.len(), 1, "the head alone");
        for foreign in [&[][..], &[2], &[ITEMS, 1, 0, 0, 0], &[HEAD, 1]] {
            assert!(take_copy(&mut back, foreign).is_err(), "{foreign:?}");
        }
    }
}
