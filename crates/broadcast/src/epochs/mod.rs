//! Groups whose members are exchanged: epochs over any broadcast that orders everything.
//!
//! # The problem
//! Who has lost its memory must not go on under its old name: it could deny what it has answered,
//! and two majorities would decide differently. A member that never comes back keeps all others
//! from forgetting. So members are exchanged, one by one, while commands go on.
//!
//! # The idea
//! An *epoch* is a broadcast of its own among its members. A *change* is proposed like a command,
//! and conflicts with each other one. When it is delivered, the epoch is over: what was not
//! delivered before is applied nowhere, and its owner asks for it again in the next epoch, by the
//! same name. That next epoch begins with empty hands: nobody has said anything in it.
//!
//! # Why the order is one
//! Each command of the epoch conflicts with the change, so all members deliver the same commands
//! before it, in one order of those that conflict; and apply none of those after it. All that is
//! applied in the next epoch comes after all of this one.
//!
//! # Batches
//! Requests that come while others of their member are under way may [wait](EpochSettings::batches)
//! and be proposed as one command, as [batched](crate::Batched) broadcasts do: those that are
//! decided at the same member, so many at most. Each has its own name, and touches its own objects.
//! Those that wait are written down nowhere: who crashes has not asked for them.
//!
//! # Who goes on with the epoch that is over
//! A member that has left it still answers there, from its memory of it, until it has heard that
//! all have left it. So a majority of it can still bring it to its end, and nobody needs to be told
//! by other means that it is over.
//!
//! # What a new member gets
//! A snapshot need not be of the moment at which the epoch began. It is of any moment, with the
//! names of the requests that are in it. The new member then takes part from the beginning of the
//! epoch, having said nothing: it gets all its commands from the others, as one that was slow, and
//! passes over those that are in the snapshot. The others have forgotten none of them, as it has
//! not said yet that it has delivered them.
//!
//! That is sound because what a snapshot has in it is closed: all that conflicts with one of its
//! commands and comes before that is in it, too.
//!
//! The giver keeps the state of a moment without a copy of it: [`KeptSnapshots`] does so for an
//! ordered map, whose entries are copied as they change, once a snapshot.
//!
//! # What its user sees to
//! A [name](MemberName) is of one memory: who begins with an empty disk draws a new one, that
//! nobody has had. That a founder comes back empty is noticed and refused; that one who has come by
//! a change does is not.
//!
//! # What is stored
//! What the broadcasts of the last two epochs store; that all have left the earlier one; a state
//! that is taken, piece by piece; the numbers of snapshots that were given.

mod checkpoint;
mod give;
mod judge;
mod kept;
mod list;
mod message;
mod order;
mod previous;
mod request;
mod switches;
mod take;

use muesli_core::Nanos;

use crate::batched::BatchLimits;
use crate::broadcast::{Broadcast, BroadcastSettings};
use crate::command::{Command, CommandId};
use crate::effects::BroadcastEffects;
use crate::id_set::IdSet;
use checkpoint::RestoredParts;
use give::GivenSnapshots;
pub use kept::KeptSnapshots;
pub use list::{ChangeError, GroupEpoch, ListedMember, MemberChange, MemberList, MemberName};
pub use message::{
    DeliveredRequest, EpochEffect, EpochEffects, EpochEffectsOf, EpochMessage, EpochRecord,
    ProposedRequests, SnapshotHead, SnapshotPiece,
};
use previous::PreviousEpoch;
pub use request::RequestId;
use request::{OwnRequest, OwnRequests, RequestBatch};
pub use switches::{EpochSwitch, EpochSwitches};
pub use take::PIECES_AHEAD;
use take::{SnapshotTransfer, StateGivers};

/// What somebody is to the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemberState {
    /// It has no memory, and asks for the state; it is not in the list yet, or is.
    Empty,
    /// It takes part.
    Member,
    /// Another one has taken its place.
    Replaced,
}

/// With what all members of a group work alike.
#[derive(Clone, Debug, Default)]
pub struct EpochSettings<C> {
    /// Times of the broadcast.
    pub broadcast: BroadcastSettings,
    /// Variants of the broadcast.
    pub choice: C,
    /// How requests of a member are ordered as one; `None`: each is ordered by itself.
    pub batches: Option<BatchLimits>,
    /// Rules that tests break.
    pub switches: EpochSwitches,
}

/// A member of a group that exchanges its members: a state machine over a broadcast.
///
/// Invariants: a member has a place in the list, and nobody else takes part; the last epoch is the
/// one before this.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EpochMember<B: Broadcast> {
    me: MemberName,
    /// So many members a group has.
    members: usize,
    settings: BroadcastSettings,
    choice: B::Switches,
    batches: Option<BatchLimits>,
    switches: EpochSwitches,
    state: MemberState,
    /// The members of the epoch in which this one is; of none, at first.
    list: MemberList,
    current: Option<B>,
    previous: Option<PreviousEpoch<B>>,
    own: OwnRequests,
    /// The requests of these members that were delivered, by place.
    delivered: IdSet,
    giving: GivenSnapshots,
    /// A state that comes, as far as it is written down.
    taking: Option<SnapshotHead>,
    transfer: Option<SnapshotTransfer>,
    /// A later epoch in which others are, and since when that is known.
    ahead: Option<(GroupEpoch, Nanos)>,
    /// A later epoch to which this member comes by a state alone.
    behind: Option<GroupEpoch>,
    givers: StateGivers,
    /// Records were replayed, and nothing was done since.
    is_replayed: bool,
    /// What of a checkpoint is still to come.
    restoring: Option<RestoredParts>,
}

impl<B: Broadcast> EpochMember<B> {
    /// One of those with which a group begins, without any memory.
    pub fn founded(
        me: MemberName,
        founders: impl IntoIterator<Item = MemberName>,
        settings: &EpochSettings<B::Switches>,
    ) -> EpochMember<B> {
        let list = MemberList::founded(founders);
        let place = list.place_of(me).expect("a founder is one of them");
        let members = list.members.len();
        let mut member = EpochMember::empty(me, members, [], settings);
        let EpochSettings { broadcast, choice, .. } = settings;
        member.state = MemberState::Member;
        member.current = Some(B::new(place, members, broadcast, choice));
        member.list = list;
        member
    }

    /// One that has no memory, and asks these for the state. It becomes a member of a group of so
    /// many when a [change](Self::change) has its name.
    pub fn empty(
        me: MemberName,
        members: usize,
        peers: impl IntoIterator<Item = MemberName>,
        settings: &EpochSettings<B::Switches>,
    ) -> EpochMember<B> {
        EpochMember {
            me,
            members,
            settings: settings.broadcast.clone(),
            choice: settings.choice.clone(),
            batches: settings.batches,
            switches: settings.switches.clone(),
            state: MemberState::Empty,
            list: MemberList::default(),
            current: None,
            previous: None,
            own: OwnRequests::default(),
            delivered: IdSet::new(),
            giving: GivenSnapshots::default(),
            taking: None,
            transfer: None,
            ahead: None,
            behind: None,
            givers: StateGivers::new(peers.into_iter().collect()),
            is_replayed: false,
            restoring: None,
        }
    }

    /// Its name.
    pub fn name(&self) -> MemberName {
        self.me
    }

    /// What it is to the group.
    pub fn state(&self) -> MemberState {
        self.state
    }

    /// The members of the epoch in which it is; of the one in which it was replaced; of none, if
    /// it has no memory.
    pub fn list(&self) -> &MemberList {
        &self.list
    }

    /// The broadcast of this epoch, if it takes part.
    pub fn ordered(&self) -> Option<&B> {
        self.current.as_ref()
    }

    /// Whether it still remembers the epoch before.
    pub fn remembers_previous(&self) -> bool {
        self.previous.is_some()
    }

    /// Whether a state is on its way here. No checkpoint is taken meanwhile.
    pub fn is_taking(&self) -> bool {
        self.taking.is_some()
    }

    /// Whether another member has delivered, or left behind, what is not delivered here.
    pub fn is_behind(&self) -> bool {
        self.ahead.is_some()
            || self.behind.is_some()
            || self.current.as_ref().is_some_and(Broadcast::is_behind)
    }

    /// The user's commands of this member that are not delivered, in the order in which they were
    /// asked for; after a replay, too.
    pub fn proposed(&self) -> impl Iterator<Item = (RequestId, &Command)> {
        let all = self.own.open.iter().filter(|(_, own)| own.change.is_none());
        all.map(|(sequence, own)| (self.request(*sequence), &own.command))
    }

    /// Those of them that wait for a [batch](EpochSettings::batches), and are written down nowhere:
    /// if this member crashes, it has not asked for them.
    pub fn unwritten(&self) -> impl Iterator<Item = RequestId> {
        self.own.unwritten().iter().map(|sequence| self.request(*sequence))
    }

    fn request(&self, sequence: u64) -> RequestId {
        RequestId { member: self.me, sequence }
    }

    /// Takes a command of this member. It is delivered at last, once, at all members that live, in
    /// this epoch or a later one. `None`: this is no member.
    pub fn propose(&mut self, command: Command, out: &mut EpochEffectsOf<B>) -> Option<RequestId> {
        self.resume();
        self.current.as_ref()?;
        Some(self.ask(OwnRequest { command, change: None }, out))
    }

    /// Asks that a member is exchanged. The epoch ends when that is delivered; if another change
    /// comes before it that it contradicts, it has [no effect](EpochEffect::ChangeVoid).
    ///
    /// # Errors
    /// It cannot be; nothing was asked for.
    pub fn change(
        &mut self,
        change: MemberChange,
        out: &mut EpochEffectsOf<B>,
    ) -> Result<RequestId, ChangeError> {
        self.resume();
        let current = self.current.as_ref().ok_or(ChangeError::NoMember)?;
        if !current.orders_everything() {
            return Err(ChangeError::Unordered);
        }
        self.list.judge(change)?;
        Ok(self.ask(OwnRequest::change(change), out))
    }

    /// Whether this one has asked for a change that is not delivered yet.
    pub fn asks_for(&self, change: MemberChange) -> bool {
        self.own.open.values().any(|own| own.change == Some(change))
    }

    fn ask(&mut self, request: OwnRequest, out: &mut EpochEffectsOf<B>) -> RequestId {
        let sequence = self.own.add(request);
        self.propose_waiting(out);
        self.request(sequence)
    }

    /// A message from another one, which was [judged](Self::judge).
    pub fn receive(
        &mut self,
        from: MemberName,
        message: EpochMessage<B::Message>,
        out: &mut EpochEffectsOf<B>,
    ) {
        self.resume();
        match message {
            EpochMessage::Ordered { epoch, message } => {
                self.on_ordered(from, (epoch, message), out);
            }
            EpochMessage::Running(list) => self.on_running(list, out),
            EpochMessage::AskState { from: epoch } => self.on_ask_state(from, epoch, out),
            EpochMessage::Refused => {
                if self.state == MemberState::Empty {
                    out.add(EpochEffect::Refused);
                }
            }
            EpochMessage::State { snapshot, head } => self.on_state(from, snapshot, head, out),
            EpochMessage::AskPieces { snapshot, first, count } => {
                self.on_ask_pieces(from, snapshot, (first, count), out);
            }
            EpochMessage::Piece { snapshot, number, piece } => {
                self.on_piece(from, (snapshot, number), piece, out);
            }
            EpochMessage::NotGiven { snapshot } => self.on_not_given(from, snapshot, out),
            EpochMessage::Taken { snapshot } => self.on_taken(from, snapshot, out),
        }
        self.propose_waiting(out);
    }

    /// Time has passed.
    pub fn tick(&mut self, out: &mut EpochEffectsOf<B>) {
        self.resume();
        self.order(out, B::tick);
        self.order_previous(out, B::tick);
        self.fall_behind(out.now);
        self.seek_state(out);
        self.free_snapshots(out);
        self.forget_previous(out);
        self.propose_waiting(out);
    }

    /// Takes over a command of this epoch whose leader seems not to bring it to its end, at once.
    pub fn recover(&mut self, id: CommandId, out: &mut EpochEffectsOf<B>) {
        self.resume();
        self.order(out, |it, inside| it.recover(id, inside));
        self.propose_waiting(out);
    }

    /// After a replay: what is open and not proposed is to be, and a state that was on its way
    /// comes anew.
    fn resume(&mut self) {
        if !std::mem::take(&mut self.is_replayed) {
            return;
        }
        self.taking = None;
        self.giving.forget();
        self.own.resume(self.proposed_in_epoch().into_iter());
    }

    /// The commands by which requests of this member are proposed in this epoch.
    fn proposed_in_epoch(&self) -> Vec<(CommandId, RequestBatch)> {
        let all = self.current.iter().flat_map(Broadcast::proposed);
        all.map(|(id, command)| (id, RequestBatch::of(command))).collect()
    }

    /// Takes a record of an earlier incarnation, in the order in which they were written. The
    /// effects have the same for the user as in that, and nothing is sent or written.
    pub fn replay(&mut self, record: EpochRecord<B::Record>, out: &mut EpochEffectsOf<B>) {
        self.is_replayed = true;
        self.apply(record, out);
    }

    /// Writes down, and does, what is to be done again after a crash.
    fn store(&mut self, record: EpochRecord<B::Record>, out: &mut EpochEffectsOf<B>) {
        out.log(record.clone());
        self.apply(record, out);
    }

    fn apply(&mut self, record: EpochRecord<B::Record>, out: &mut EpochEffectsOf<B>) {
        match record {
            EpochRecord::Ordered { epoch, record, proposed } => {
                self.replay_ordered(epoch, record, proposed, out);
            }
            EpochRecord::PreviousForgotten => self.previous = None,
            EpochRecord::Given { snapshot } => self.giving.last = snapshot,
            EpochRecord::TakingBegan(head) => {
                self.taking = Some(head);
                out.add(EpochEffect::BeginTaking);
            }
            EpochRecord::PieceTaken(bytes) => out.add(EpochEffect::TakePiece(bytes)),
            EpochRecord::AllTaken => self.install(out),
            EpochRecord::Replaced(list) => {
                self.list = list;
                self.current = None;
                self.previous = None;
                (self.taking, self.transfer) = (None, None);
                self.giving.end_all(out);
                self.begin_epoch(out);
            }
        }
    }

    fn replay_ordered(
        &mut self,
        epoch: GroupEpoch,
        record: B::Record,
        proposed: Option<ProposedRequests>,
        out: &mut EpochEffectsOf<B>,
    ) {
        let mut inside = BroadcastEffects::at(out.now);
        if epoch == self.list.epoch {
            let Some(current) = &mut self.current else { return };
            current.replay(record, &mut inside);
            if let Some(ProposedRequests { id, last }) = proposed {
                let last = match self.switches.keeps(EpochSwitch::RemembersNumbers) {
                    true => last,
                    false => 0,
                };
                self.own.take(id, last, current.proposed_command(id).map(RequestBatch::of));
            }
        } else if let Some(previous) =
            self.previous.as_mut().filter(|previous| previous.list.epoch == epoch)
        {
            previous.ordered.replay(record, &mut inside);
        }
        self.perform(epoch, inside.effects, None, out);
    }

    /// Checks what this says of its own state.
    ///
    /// # Panics
    /// Something of that does not hold.
    pub fn assert_invariants(&self) {
        let place = self.list.place_of(self.me);
        let is_member = self.state == MemberState::Member;
        assert_eq!(is_member, self.current.is_some(), "who takes part: {:?}", self.state);
        assert_eq!(is_member, place.is_some(), "{} is in {:?}", self.me, self.list);
        assert!(self.state == MemberState::Empty || self.list.is_sound(), "{:?}", self.list);
        if let Some(previous) = &self.previous {
            assert_eq!(previous.list.epoch.0 + 1, self.list.epoch.0, "the last epoch");
            previous.ordered.assert_invariants();
        }
        self.current.iter().for_each(Broadcast::assert_invariants);
        assert!(self.transfer.is_none() || self.taking.is_some(), "a state that nobody takes");
        if !self.is_replayed {
            self.own.assert_invariants();
        }
        self.delivered.assert_invariants();
    }
}
