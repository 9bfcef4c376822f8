//! Commands, and who proposes them.

use std::fmt;
use std::sync::Arc;

use muesli_core::Nanos;
use muesli_core::bytes::SmallBytes;
use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::wire_struct;

use crate::objects::ObjectSet;

/// One of those that order commands, by its place among them, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u16);

impl MemberId {
    /// So many members there can be.
    pub const MOST: usize = 1024;

    /// Its place among all.
    pub fn place(self) -> usize {
        usize::from(self.0)
    }

    /// All of so many but itself.
    pub(crate) fn others(self, members: usize) -> impl Iterator<Item = MemberId> {
        (0..members as u16).map(MemberId).filter(move |member| *member != self)
    }

    /// When this one of so many members does something about another's command that is to be done
    /// by one after the other, as they come after its leader, and less often each time.
    pub(crate) fn due(
        self,
        members: usize,
        id: CommandId,
        (Nanos(after), attempts): (Nanos, u32),
        Nanos(now): Nanos,
    ) -> Nanos {
        let members = members as u64;
        let rank = (members + u64::from(self.0) - u64::from(id.leader.0)) % members;
        let times = (1 + rank) << attempts.min(6);
        Nanos(now.saturating_add(after.saturating_mul(times)))
    }
}

/// A command, by who proposed it first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId {
    /// The member that proposed it, and leads it unless others take it over.
    pub leader: MemberId,
    /// Its number among the commands of that member, from 1, without gaps.
    pub sequence: u64,
}

impl CommandId {
    /// No member comes to a larger sequence number.
    pub const SEQUENCE_MAX: u64 = 1 << 62;
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}-{}", self.leader.0, self.sequence)
    }
}

impl fmt::Debug for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What is ordered: bytes that mean something to whoever applies them, and the objects by which it
/// conflicts with others. Clones are cheap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Command {
    /// What it touches.
    pub objects: Arc<ObjectSet>,
    /// What it says; nothing here looks into it.
    pub payload: SmallBytes,
}

impl Command {
    /// Whether the order of two commands matters.
    pub fn conflicts_with(&self, other: &Command) -> bool {
        self.objects.conflicts_with(&other.objects)
    }
}

impl Wire for MemberId {
    const LEAST_BYTES: usize = 2;

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, WireError> {
        u16::decode(input).map(MemberId)
    }
}

wire_struct!(CommandId { leader: MemberId, sequence: u64 });
wire_struct!(Command { objects: Arc<ObjectSet>, payload: SmallBytes });
