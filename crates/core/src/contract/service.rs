//! A state machine of a node that is neither coordinator nor participant.

use super::{Context, LoggedRole, Protocol, StateMachine};
use crate::checkpoint::{Cursor, Readiness};
use crate::ids::{NodeId, Timestamp};
use crate::judgement::{Rejection, View};
use crate::options::Settings;
use crate::roles::{Address, ServiceId};
use crate::timers::NoTimer;
use crate::wire::WireError;

/// A state machine that a protocol has beside coordinators and participants: a validator of a tree,
/// an orderer of a broadcast, a directory of owners, or one of its own kind.
///
/// Which services live on a node [the protocol says](Protocol::services), by the catalog. Where
/// repositories are kept by groups, a service is kept by its node alone.
pub trait Service<P: Protocol>: LoggedRole<P> {
    /// The service `id` of `node`, in its incarnation number `incarnation`, with nothing in it.
    fn new(
        id: ServiceId,
        node: NodeId,
        incarnation: u32,
        settings: &Settings,
        switches: &P::Switches,
    ) -> Self;

    /// What it has counted since its node started, for operators: names, and how many of each.
    fn figures(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// The service of a protocol that has none.
#[derive(Clone, Copy, Debug)]
pub enum NoService {}

impl<P: Protocol> StateMachine<P> for NoService {
    type Timer = NoTimer;

    fn judge(&self, _: &P::Message, _: View<'_>) -> Result<(), Rejection> {
        match *self {}
    }

    fn issued(&self) -> Timestamp {
        match *self {}
    }

    fn linked(&mut self, _: NodeId, _: &mut Context<'_, P>) {
        match *self {}
    }

    fn unlinked(&mut self, _: NodeId, _: &mut Context<'_, P>) {
        match *self {}
    }

    fn unfinished(&self) -> usize {
        match *self {}
    }

    fn assert_invariants(&self) {
        match *self {}
    }
}

impl<P: Protocol> LoggedRole<P> for NoService {
    fn start(&mut self, _: &mut Context<'_, P>) {
        match *self {}
    }

    fn placed(&mut self, _: &mut Context<'_, P>) {
        match *self {}
    }

    fn receive(&mut self, _: Address, _: P::Message, _: &mut Context<'_, P>) {
        match *self {}
    }

    fn timer(&mut self, timer: NoTimer, _: &mut Context<'_, P>) {
        match timer {}
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
}

impl<P: Protocol> Service<P> for NoService {
    fn new(id: ServiceId, _: NodeId, _: u32, _: &Settings, _: &P::Switches) -> NoService {
        unreachable!("{} has no services, and is asked for {id}", P::NAME)
    }
}
