//! A state machine of a node that is neither coordinator nor participant.

use std::fmt::Debug;

use super::{Context, Protocol};
use crate::checkpoint::{Cursor, Readiness};
use crate::ids::{NodeId, Timestamp};
use crate::judgement::{Rejection, Sender, View};
use crate::options::Settings;
use crate::roles::{Address, ServiceId};
use crate::timers::{NoTimer, Timer};
use crate::wire::WireError;

/// A state machine that a protocol has beside coordinators and participants: a validator of a tree,
/// an orderer of a broadcast, a directory of owners, or one of its own kind.
///
/// Which services live on a node [the protocol says](Protocol::services), by the catalog. Where
/// repositories are kept by groups, a service is kept by its node alone.
pub trait Service<P: Protocol>: Debug {
    /// The timers that it sets.
    type Timer: Timer;
    /// The service `id` of `node`, in its life number `incarnation`, with nothing in it.
    fn new(
        id: ServiceId,
        node: NodeId,
        incarnation: u32,
        settings: &Settings,
        rules: &P::Rules,
    ) -> Self;
    /// Called once, after the last [`replay`](Self::replay): sets the timers that the role lives
    /// by.
    fn start(&mut self, cx: &mut Context<'_, P>);
    /// The placement has changed.
    fn placed(&mut self, cx: &mut Context<'_, P>);
    /// Whether a message agrees with what is known here.
    ///
    /// # Errors
    /// It does not, and is to be left out.
    fn judge(
        &self,
        from: Address,
        sender: Sender,
        message: &P::Message,
        view: View<'_>,
    ) -> Result<(), Rejection>;
    /// The largest timestamp that was issued here, or that members have told of.
    fn issued(&self) -> Timestamp;
    /// A message for this service.
    fn receive(&mut self, from: Address, message: P::Message, cx: &mut Context<'_, P>);
    /// A timer that this service set.
    fn timer(&mut self, timer: Self::Timer, cx: &mut Context<'_, P>);
    /// A link to another node is there from now on: whatever was sent to it before may be lost.
    fn linked(&mut self, node: NodeId, cx: &mut Context<'_, P>);
    /// The link to another node is gone.
    fn unlinked(&mut self, node: NodeId, cx: &mut Context<'_, P>);
    /// Applies a record of an earlier life, in log order. Nothing is sent.
    fn replay(&mut self, record: P::Record, cx: &mut Context<'_, P>);
    /// As [`Participant::begin_checkpoint`](super::Participant::begin_checkpoint). `None`: the node
    /// keeps its whole log. A service that logs nothing begins an empty one.
    fn begin_checkpoint(&self) -> Option<Cursor>;
    /// As [`Participant::checkpoint_piece`](super::Participant::checkpoint_piece).
    fn checkpoint_piece(&self, cursor: &mut Cursor, bytes: usize, out: &mut Vec<u8>) -> bool;
    /// As [`Participant::checkpoint_readiness`](super::Participant::checkpoint_readiness).
    fn checkpoint_readiness(&self, cursor: &Cursor) -> Readiness;
    /// As [`Participant::restore`](super::Participant::restore).
    ///
    /// # Errors
    /// The piece is of no checkpoint. Any bytes may be given.
    fn restore(&mut self, piece: &[u8], cx: &mut Context<'_, P>) -> Result<(), WireError>;
    /// How many transactions are here whose end is not known here.
    fn unfinished(&self) -> usize;
    /// Panics where an invariant of the service does not hold; searches ask for it once a step.
    fn assert_invariants(&self);
}

/// The service of a protocol that has none.
#[derive(Clone, Copy, Debug)]
pub enum NoService {}

impl<P: Protocol> Service<P> for NoService {
    type Timer = NoTimer;

    fn new(id: ServiceId, _: NodeId, _: u32, _: &Settings, _: &P::Rules) -> NoService {
        unreachable!("{} has no services, and is asked for {id}", P::NAME)
    }

    fn start(&mut self, _: &mut Context<'_, P>) {
        match *self {}
    }

    fn placed(&mut self, _: &mut Context<'_, P>) {
        match *self {}
    }

    fn judge(&self, _: Address, _: Sender, _: &P::Message, _: View<'_>) -> Result<(), Rejection> {
        match *self {}
    }

    fn issued(&self) -> Timestamp {
        match *self {}
    }

    fn receive(&mut self, _: Address, _: P::Message, _: &mut Context<'_, P>) {
        match *self {}
    }

    fn timer(&mut self, timer: NoTimer, _: &mut Context<'_, P>) {
        match timer {}
    }

    fn linked(&mut self, _: NodeId, _: &mut Context<'_, P>) {
        match *self {}
    }

    fn unlinked(&mut self, _: NodeId, _: &mut Context<'_, P>) {
        match *self {}
    }

    fn replay(&mut self, _: P::Record, _: &mut Context<'_, P>) {
        match *self {}
    }

    fn begin_checkpoint(&self) -> Option<Cursor> {
        match *self {}
    }

    fn checkpoint_piece(&self, _: &mut Cursor, _: usize, _: &mut Vec<u8>) -> bool {
        match *self {}
    }

    fn checkpoint_readiness(&self, _: &Cursor) -> Readiness {
        match *self {}
    }

    fn restore(&mut self, _: &[u8], _: &mut Context<'_, P>) -> Result<(), WireError> {
        match *self {}
    }

    fn unfinished(&self) -> usize {
        match *self {}
    }

    fn assert_invariants(&self) {
        match *self {}
    }
}
