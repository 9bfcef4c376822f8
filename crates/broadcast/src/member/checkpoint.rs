//! Checkpoints of a member, so that its log can be cut.
//!
//! The state of a member is what is under way, what it has said of that, and what it has delivered,
//! as ranges: it is bounded by what not all members have delivered, not by all that ever was. So it
//! is written in one step, in pieces of bounded size. A log is then a checkpoint and the records
//! after it.
//!
//! A checkpoint holds just what a replay of all records before it would have made: what was counted
//! of others' answers, what was sent when, and what was heard and never written down are not in it.
//! What follows from the rest is not in it either (who waits for whom, which commands conflict),
//! and is made anew.
//!
//! The last piece holds what there is once, and how much is to be in the others. Each piece ends
//! with a sum of its bytes. A checkpoint whose sums are right is still judged as a whole: nothing
//! that it may hold makes a member fail later.

use muesli_core::checkpoint::{HEAD_PIECE_BYTES, piece, pieces};
use muesli_core::wire::{Wire, WireError};
use muesli_core::{Nanos, Rejection, wire_struct};
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

use crate::command::{Command, CommandId, MemberId};

/// Why something is no checkpoint of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CheckpointError {
    /// The sum at the end of a piece is not that of its bytes.
    #[error("a piece of a checkpoint is damaged: its sum is wrong")]
    Damaged,
    /// The bytes of a piece are not what they should be.
    #[error("a piece of a checkpoint is damaged: {0}")]
    Bytes(#[from] WireError),
    /// It was written by another member, or in a group of another size.
    #[error("the checkpoint is of member {} of {members}", member.0)]
    Foreign {
        /// By whom.
        member: MemberId,
        /// Of so many.
        members: u16,
    },
    /// Pieces are missing, or were taken twice.
    #[error("the checkpoint has {found} entries of {expected}: pieces are missing, or came twice")]
    Incomplete {
        /// So many entries were written.
        expected: u64,
        /// So many are there.
        found: u64,
    },
    /// Its parts contradict each other.
    #[error("the checkpoint contradicts itself: {0}")]
    Unsound(&'static str),
}

impl From<Rejection> for CheckpointError {
    fn from(_: Rejection) -> CheckpointError {
        CheckpointError::Unsound("a number in it cannot be")
    }
}

/// What must hold of a checkpoint.
pub(crate) fn holds(holds: bool, otherwise: &'static str) -> Result<(), CheckpointError> {
    if holds { Ok(()) } else { Err(CheckpointError::Unsound(otherwise)) }
}

/// Commands of one leader, of which all from the first to the last are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeliveredRange {
    pub first: CommandId,
    pub last: u64,
}

/// A command of the member itself that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnCommand {
    pub sequence: u64,
    pub command: Command,
}

/// What each checkpoint holds once.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CheckpointHead<H> {
    member: MemberId,
    members: u16,
    entries: u64,
    rest: H,
}

impl<H: Wire> Wire for CheckpointHead<H> {
    const LEAST_BYTES: usize = MemberId::LEAST_BYTES + 2 + 8 + H::LEAST_BYTES;

    fn encode(&self, out: &mut Vec<u8>) {
        self.member.encode(out);
        self.members.encode(out);
        self.entries.encode(out);
        self.rest.encode(out);
    }

    fn decode(input: &mut muesli_core::wire::Reader<'_>) -> Result<Self, WireError> {
        Ok(CheckpointHead {
            member: MemberId::decode(input)?,
            members: u16::decode(input)?,
            entries: u64::decode(input)?,
            rest: H::decode(input)?,
        })
    }
}

/// A member's state, as it goes into a checkpoint and comes back.
pub(crate) trait Checkpointed {
    /// What there is once.
    type Head: Wire;
    /// One of what there may be many of.
    type Entry: Wire;
    /// Who it is, of how many.
    fn member(&self) -> (MemberId, usize);
    /// What there is once.
    fn head(&self) -> Self::Head;
    /// All that there may be many of.
    fn checkpoint_entries(&self) -> impl Iterator<Item = Self::Entry>;
    /// Takes back one of them; nothing is judged before the head has come.
    fn take_entry(&mut self, entry: Self::Entry);
    /// Takes back what there is once, when all entries are there; judges the whole, and makes what
    /// follows from it.
    fn take_head(&mut self, head: Self::Head, now: Nanos) -> Result<(), CheckpointError>;
}

/// A piece, with the sum of its bytes at its end.
pub(crate) fn sealed(mut piece: Vec<u8>) -> Vec<u8> {
    xxh3_64(&piece).encode(&mut piece);
    piece
}

/// The bytes of a piece, whose sum is right.
pub(crate) fn opened(piece: &[u8]) -> Result<&[u8], CheckpointError> {
    let (bytes, sum) = piece.split_last_chunk().ok_or(CheckpointError::Damaged)?;
    let is_right = xxh3_64(bytes) == u64::from_le_bytes(*sum);
    is_right.then_some(bytes).ok_or(CheckpointError::Damaged)
}

/// The kinds of pieces.
const ENTRIES: u8 = 0;
const HEAD: u8 = 1;

/// The checkpoint of a member as it is now.
pub(crate) fn pieces_of<T: Checkpointed>(state: &T) -> impl Iterator<Item = Vec<u8>> {
    let (member, members) = state.member();
    let entries = state.checkpoint_entries().count() as u64;
    let head = CheckpointHead { member, members: members as u16, entries, rest: state.head() };
    let all = pieces(vec![ENTRIES], state.checkpoint_entries(), HEAD_PIECE_BYTES);
    all.chain(std::iter::once(piece(HEAD, &head))).map(sealed)
}

/// Takes a piece into a member without memory. True: it was the last one.
pub(crate) fn take_piece<T: Checkpointed>(
    state: &mut T,
    piece: &[u8],
    now: Nanos,
) -> Result<bool, CheckpointError> {
    match opened(piece)?.split_first() {
        Some((&ENTRIES, entries)) => {
            Vec::decode_all(entries)?.into_iter().for_each(|entry| state.take_entry(entry));
            Ok(false)
        }
        Some((&HEAD, head)) => {
            let CheckpointHead { member, members, entries, rest } =
                CheckpointHead::<T::Head>::decode_all(head)?;
            if (member, usize::from(members)) != state.member() {
                return Err(CheckpointError::Foreign { member, members });
            }
            let found = state.checkpoint_entries().count() as u64;
            if found != entries {
                return Err(CheckpointError::Incomplete { expected: entries, found });
            }
            state.take_head(rest, now)?;
            Ok(true)
        }
        other => {
            let found = other.map_or(0, |(kind, _)| *kind);
            Err(WireError::no_variant("piece of a checkpoint", 0, found).into())
        }
    }
}

wire_struct!(DeliveredRange { first: CommandId, last: u64 });
wire_struct!(OwnCommand { sequence: u64, command: Command });
