//! A service of a grouped protocol: that of the protocol inside, kept by its node alone.
//!
//! It names repositories as the protocol inside does, and what it says to one goes to whoever leads
//! the group. What it logs stands in the log of its node, beside those of members.

use muesli_core::{
    Address, Cursor, Effect, LoggedRole, NodeId, Protocol, Readiness, Rejection, Role, Service,
    ServiceId, Settings, StateMachine, Timestamp, View, WireError,
};

use crate::inside::{Context, InnerContext, Inside};
use crate::judge::judge_by;
use crate::layout;
use crate::protocol::{GroupSettings, Grouped, Message, Record};
use crate::timers;

/// A service.
#[derive(Clone, Debug)]
pub struct NodeService<P: Protocol> {
    inner: P::Service,
    role: Role,
    inside: Inside<P>,
}

impl<P: Protocol> NodeService<P> {
    fn run<T>(
        &mut self,
        cx: &mut Context<'_, P>,
        run: impl FnOnce(&mut P::Service, &mut InnerContext<'_, P>) -> T,
    ) -> T {
        let inner = &mut self.inner;
        let positions = cx.effects.positions.clone();
        let (answer, sent, positions) =
            self.inside.run_at(self.role, positions, cx, |cx| run(inner, cx));
        for effect in sent {
            match effect {
                Effect::Send { envelope, after } => self.inside.deliver_after(envelope, after, cx),
                Effect::Complete { op, result, after } => cx.complete_after(op, result, after),
                Effect::SetTimer { timer, after, .. } => {
                    let timer: <P::Service as StateMachine<P>>::Timer = timers::inner(timer);
                    cx.set_timer(timer, after);
                }
                Effect::Log { record, .. } => cx.log_lazily(|| Record::Service(record)),
            }
        }
        assert_eq!(cx.logged(), positions.of(self.role).logged, "records in the same order");
        cx.wait_for_log_up_to(positions.of(self.role).gate);
        answer
    }
}

impl<P: Protocol> StateMachine<Grouped<P>> for NodeService<P> {
    type Timer = <P::Service as StateMachine<P>>::Timer;

    fn judge(&self, message: &Message<P::Message>, view: View<'_>) -> Result<(), Rejection> {
        judge_by(&self.inner, &self.inside, message, view).unwrap_or(Err(Rejection::Role))
    }

    fn issued(&self) -> Timestamp {
        self.inner.issued()
    }

    fn linked(&mut self, node: NodeId, cx: &mut Context<'_, P>) {
        self.run(cx, |inner, cx| inner.linked(node, cx));
    }

    fn unlinked(&mut self, node: NodeId, cx: &mut Context<'_, P>) {
        self.run(cx, |inner, cx| inner.unlinked(node, cx));
    }

    fn unfinished(&self) -> usize {
        self.inner.unfinished()
    }

    fn assert_invariants(&self) {
        self.inner.assert_invariants();
    }
}

impl<P: Protocol> LoggedRole<Grouped<P>> for NodeService<P> {
    fn start(&mut self, cx: &mut Context<'_, P>) {
        self.run(cx, |inner, cx| inner.start(cx));
    }

    fn placed(&mut self, cx: &mut Context<'_, P>) {
        self.run(cx, |inner, cx| inner.placed(cx));
    }

    fn receive(&mut self, _: Address, message: Message<P::Message>, cx: &mut Context<'_, P>) {
        if let Message::Inside { from, message, .. } = message
            && layout::is_inner(from, cx.catalog)
        {
            self.run(cx, |inner, cx| inner.receive(from, message, cx));
        }
    }

    fn timer(&mut self, timer: Self::Timer, cx: &mut Context<'_, P>) {
        self.run(cx, |inner, cx| inner.timer(timer, cx));
    }

    fn replay(&mut self, record: Record<P::Record>, cx: &mut Context<'_, P>) {
        let Record::Service(record) = record else { unreachable!("a service logs no changes") };
        let inner = &mut self.inner;
        let positions = cx.effects.positions.clone();
        self.inside.run_at(self.role, positions, cx, |cx| inner.replay(record, cx));
    }

    fn begin_checkpoint(&self) -> Option<Cursor> {
        self.inner.begin_checkpoint()
    }

    fn checkpoint_piece(&self, cursor: &mut Cursor, bytes: usize, out: &mut Vec<u8>) -> bool {
        self.inner.checkpoint_piece(cursor, bytes, out)
    }

    fn checkpoint_readiness(&self, cursor: &Cursor) -> Readiness {
        self.inner.checkpoint_readiness(cursor)
    }

    fn restore(&mut self, piece: &[u8], cx: &mut Context<'_, P>) -> Result<(), WireError> {
        let inner = &mut self.inner;
        let positions = cx.effects.positions.clone();
        self.inside.run_at(self.role, positions, cx, |cx| inner.restore(piece, cx)).0
    }
}

impl<P: Protocol> Service<Grouped<P>> for NodeService<P> {
    fn new(
        id: ServiceId,
        node: NodeId,
        incarnation: u32,
        settings: &Settings,
        group_settings: &GroupSettings<P::Switches>,
    ) -> NodeService<P> {
        let inner = P::Service::new(id, node, incarnation, settings, &group_settings.inner);
        NodeService { inner, role: Role::Service(id), inside: Inside::new() }
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        self.inner.figures()
    }
}
