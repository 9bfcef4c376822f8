//! The coordinator of a grouped protocol: that of the protocol inside, with a guess of who leads.

use muesli_core::{
    Address, Committed, Coordinator, Effect, Failure, Here, LogPosition, NodeId, Protocol,
    Recorder, Role, Row, Scan, SmallBytes, SpaceId, Step, Txn, TxnOptions,
};

use crate::inside::{Context, InnerContext, Inside};
use crate::layout;
use crate::protocol::{Grouped, Message, Rules};

/// The coordinator. Repositories of its own node it reaches by messages too, for their leaders
/// answer only once they are sure to lead.
#[derive(Clone, Debug)]
pub struct Front<P: Protocol> {
    inner: P::Coordinator,
    inside: Inside<P>,
    size: u16,
}

impl<P: Protocol> Front<P> {
    fn run<T>(
        &mut self,
        cx: &mut Context<'_, P>,
        run: impl FnOnce(&mut P::Coordinator, Here<'_, P>, &mut InnerContext<'_, P>) -> T,
    ) -> T {
        let inner = &mut self.inner;
        let (answer, said) =
            self.inside.run(Role::Coordinator, cx, |cx| run(inner, Here::new(&mut []), cx));
        for effect in said {
            match effect {
                Effect::Send { envelope, .. } => self.inside.speak(envelope, cx),
                Effect::Complete { op, result, .. } => {
                    cx.complete_after(op, result, LogPosition(0));
                }
                Effect::SetTimer { timer, after, .. } => cx.set_timer(timer, after),
                Effect::Log { .. } => unreachable!("a coordinator logs nothing"),
            }
        }
        answer
    }
}

impl<P: Protocol> Coordinator<Grouped<P>> for Front<P> {
    fn new(node: NodeId, incarnation: u32, rules: &Rules<P::Rules>) -> Front<P> {
        let inner = P::Coordinator::new(node, incarnation, &rules.inner);
        Front { inner, inside: Inside::new(rules.size), size: rules.size }
    }

    fn begin(
        &mut self,
        options: TxnOptions,
        _: Here<'_, Grouped<P>>,
        cx: &mut Context<'_, P>,
    ) -> Result<Txn, Failure> {
        self.run(cx, |inner, here, cx| inner.begin(options, here, cx))
    }

    fn get(
        &mut self,
        txn: Txn,
        space: SpaceId,
        key: &SmallBytes,
        _: Here<'_, Grouped<P>>,
        cx: &mut Context<'_, P>,
    ) -> Step<Option<SmallBytes>> {
        self.run(cx, |inner, here, cx| inner.get(txn, space, key, here, cx))
    }

    fn get_many(
        &mut self,
        txn: Txn,
        space: SpaceId,
        keys: Vec<SmallBytes>,
        _: Here<'_, Grouped<P>>,
        cx: &mut Context<'_, P>,
    ) -> Step<Vec<Option<SmallBytes>>> {
        self.run(cx, |inner, here, cx| inner.get_many(txn, space, keys, here, cx))
    }

    fn put(
        &mut self,
        txn: Txn,
        space: SpaceId,
        key: SmallBytes,
        value: Option<SmallBytes>,
        cx: &mut Context<'_, P>,
    ) -> Result<(), Failure> {
        self.run(cx, |inner, _, cx| inner.put(txn, space, key, value, cx))
    }

    fn scan(
        &mut self,
        txn: Txn,
        scan: Scan,
        _: Here<'_, Grouped<P>>,
        cx: &mut Context<'_, P>,
    ) -> Step<Vec<Row>> {
        self.run(cx, |inner, here, cx| inner.scan(txn, scan, here, cx))
    }

    fn commit(
        &mut self,
        txn: Txn,
        _: Here<'_, Grouped<P>>,
        cx: &mut Context<'_, P>,
    ) -> Step<Committed> {
        self.run(cx, |inner, here, cx| inner.commit(txn, here, cx))
    }

    fn rollback(&mut self, txn: Txn, _: Here<'_, Grouped<P>>, cx: &mut Context<'_, P>) {
        self.run(cx, |inner, here, cx| inner.rollback(txn, here, cx));
    }

    fn receive(
        &mut self,
        _: Address,
        message: Message<P::Message>,
        _: Here<'_, Grouped<P>>,
        cx: &mut Context<'_, P>,
    ) {
        match message {
            Message::Inside { from, message, .. } => {
                if P::is_about(&message, &self.inside.catalog(cx.catalog)) {
                    self.run(cx, |inner, here, cx| inner.receive(from, message, here, cx));
                }
            }
            Message::Leads { group, member, ballot } => {
                if group < layout::groups(cx.catalog, self.size) {
                    self.inside.hear_leader(group, member, ballot);
                }
            }
            Message::Consensus(_)
            | Message::Confirm { .. }
            | Message::Confirmed { .. }
            | Message::Ask
            | Message::Standing(_)
            | Message::Resync(_) => {} // For members: whoever sent it here is mistaken.
        }
    }

    fn timer(&mut self, timer: u32, _: Here<'_, Grouped<P>>, cx: &mut Context<'_, P>) {
        self.run(cx, |inner, here, cx| inner.timer(timer, here, cx));
    }

    fn record_running(&self, recorder: &mut Recorder) {
        self.inner.record_running(recorder);
    }

    fn unfinished(&self) -> usize {
        self.inner.unfinished()
    }
}
