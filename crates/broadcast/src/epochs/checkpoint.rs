//! Checkpoints of a member of epochs: its own state, and those of the broadcasts that it remembers.

use muesli_core::checkpoint::{HEAD_PIECE_BYTES, piece, pieces};
use muesli_core::wire::{Wire, WireError};
use muesli_core::{Nanos, wire_enum, wire_struct};

use super::list::{MemberList, MemberName};
use super::previous::PreviousEpoch;
use super::request::OwnRequest;
use super::{EpochMember, MemberState};
use crate::broadcast::Broadcast;
use crate::command::CommandId;
use crate::id_set::IdSet;
use crate::member::checkpoint::{CheckpointError, holds, opened, sealed};

/// What there is once.
#[derive(Clone, Debug)]
struct EpochHead {
    me: MemberName,
    state: MemberState,
    list: MemberList,
    previous: Option<MemberList>,
    last: u64,
    /// So many requests of this member are open.
    open: u64,
    delivered: IdSet,
    given: u64,
}

/// A request of this member that is open.
#[derive(Clone, Debug)]
struct OpenRequest {
    sequence: u64,
    request: OwnRequest,
}

/// What of a checkpoint is still to come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RestoredParts {
    open: u64,
    current: bool,
    previous: bool,
}

/// The kinds of pieces, in the order in which they come.
const HEAD: u8 = 0;
const OPEN: u8 = 1;
const CURRENT: u8 = 2;
const PREVIOUS: u8 = 3;
const END: u8 = 4;

impl<B: Broadcast> EpochMember<B> {
    /// The state of this member as it is now, in pieces of bounded size: what a replay of all its
    /// records would make. No [state](Self::is_taking) is on its way to it; what
    /// [waits](Self::unwritten) is not part of it.
    pub fn checkpoint(&self) -> impl Iterator<Item = Vec<u8>> {
        assert!(self.taking.is_none(), "half of a state is no checkpoint");
        let (last, open) = self.own.written();
        let open: Vec<OpenRequest> = open
            .map(|(sequence, request)| OpenRequest { sequence, request: request.clone() })
            .collect();
        let head = EpochHead {
            me: self.me,
            state: self.state,
            list: self.list.clone(),
            previous: self.previous.as_ref().map(|previous| previous.list.clone()),
            last,
            open: open.len() as u64,
            delivered: self.delivered.clone(),
            given: self.giving.last,
        };
        let with = |kind: u8| move |inner: Vec<u8>| [vec![kind], inner].concat();
        let current = self.current.iter().flat_map(Broadcast::checkpoint).map(with(CURRENT));
        let previous = self
            .previous
            .iter()
            .flat_map(|previous| previous.ordered.checkpoint())
            .map(with(PREVIOUS));
        let all = std::iter::once(piece(HEAD, &head));
        let all = all.chain(pieces(vec![OPEN], open, HEAD_PIECE_BYTES));
        let all = all.chain(current).chain(previous).chain(std::iter::once(vec![END]));
        all.map(sealed)
    }

    /// Takes a piece of a checkpoint of this member, in the order in which they were written, into
    /// one without any memory. True: that was the last one, and records after it can be replayed.
    ///
    /// # Errors
    /// It is no such piece, or the whole is no checkpoint; the member is of no use any more.
    pub fn restore(&mut self, piece: &[u8], now: Nanos) -> Result<bool, CheckpointError> {
        let bytes = opened(piece)?;
        let is_first = self.restoring.is_none();
        match bytes.split_first() {
            Some((&HEAD, head)) if is_first => self.take_head(EpochHead::decode_all(head)?)?,
            Some((&OPEN, open)) if !is_first => self.take_open(Vec::decode_all(open)?)?,
            Some((&CURRENT, inner)) if !is_first => {
                let current = self.current.as_mut();
                let current = current.ok_or(CheckpointError::Unsound("no epoch is running"))?;
                let is_last = current.restore(inner, now)?;
                self.restoring.iter_mut().for_each(|it| it.current |= is_last);
            }
            Some((&PREVIOUS, inner)) if !is_first => {
                let previous = self.previous.as_mut();
                let previous =
                    previous.ok_or(CheckpointError::Unsound("there is no last epoch"))?;
                let is_last = previous.ordered.restore(inner, now)?;
                self.restoring.iter_mut().for_each(|it| it.previous |= is_last);
            }
            Some((&END, [])) if !is_first => return self.finish_restore(),
            other => {
                let found = other.map_or(0, |(kind, _)| *kind);
                return Err(WireError::no_variant("piece of a checkpoint", 0, found).into());
            }
        }
        Ok(false)
    }

    fn take_head(&mut self, head: EpochHead) -> Result<(), CheckpointError> {
        let EpochHead { me, state, list, previous, last, open, delivered, given } = head;
        holds(me == self.me, "it is of another member")?;
        let is_sized = |list: &MemberList| list.is_sound() && list.members.len() == self.members;
        let place = list.place_of(me);
        let is_member = state == MemberState::Member;
        holds(is_member == place.is_some(), "a member that is in no list, or the other way")?;
        let is_empty = state == MemberState::Empty && list == MemberList::default();
        holds(is_empty || is_sized(&list), "a list that cannot be")?;
        holds(last <= CommandId::SEQUENCE_MAX, "a number that is too large")?;
        let is_number = |id: CommandId| {
            id.leader.place() < self.members && id.sequence <= CommandId::SEQUENCE_MAX
        };
        holds(delivered.last_of_each().all(is_number), "a request that nobody can have")?;
        let parts = RestoredParts { open, current: place.is_none(), previous: previous.is_none() };
        let new = |place| B::new(place, self.members, &self.settings, &self.choice);
        self.current = place.map(new);
        if let Some(previous) = previous {
            holds(is_sized(&previous), "a list that cannot be")?;
            holds(previous.epoch.0 + 1 == list.epoch.0, "the last epoch is another one")?;
            let place = previous.place_of(me);
            let place = place.ok_or(CheckpointError::Unsound("it was in no last epoch"))?;
            self.previous = Some(PreviousEpoch::new(previous, new(place)));
        }
        (self.state, self.list, self.delivered) = (state, list, delivered);
        self.own.restore(last);
        self.giving.last = given;
        self.restoring = Some(parts);
        Ok(())
    }

    fn take_open(&mut self, open: Vec<OpenRequest>) -> Result<(), CheckpointError> {
        for OpenRequest { sequence, request } in open {
            holds((1..=self.own.last).contains(&sequence), "an own request beyond the last one")?;
            self.own.open.insert(sequence, request);
        }
        Ok(())
    }

    fn finish_restore(&mut self) -> Result<bool, CheckpointError> {
        let parts = self.restoring.take().ok_or(CheckpointError::Damaged)?;
        let found = self.own.open.len() as u64;
        if found != parts.open {
            return Err(CheckpointError::Incomplete { expected: parts.open, found });
        }
        holds(parts.current && parts.previous, "a broadcast of which pieces are missing")?;
        self.own.resume(self.proposed_in_epoch().into_iter());
        self.is_replayed = true;
        Ok(true)
    }
}

wire_enum!(MemberState, "state of a member" {
    0 => Empty,
    1 => Member,
    2 => Replaced,
});
wire_struct!(OpenRequest { sequence: u64, request: OwnRequest });
wire_struct!(EpochHead {
    me: MemberName,
    state: MemberState,
    list: MemberList,
    previous: Option<MemberList>,
    last: u64,
    open: u64,
    delivered: IdSet,
    given: u64,
});
