//! The coordinator of a grouped protocol: that of the protocol inside, with a guess of who leads.

use std::sync::Arc;

use muesli_core::{
    Address, Catalog, Committed, Coordinator, Effect, Failure, Here, LogPosition, NodeId, Outcome,
    Protocol, Recorder, Role, Row, Scan, SmallBytes, SpaceId, Step, Txn, TxnId, TxnOptions,
};

use crate::inside::{Context, InnerContext, Inside, send_now};
use crate::layout;
use crate::protocol::{Grouped, Message, Rules};

/// The coordinator. Repositories of its own node it reaches by messages too, for their leaders
/// answer only once they are sure to lead.
#[derive(Clone, Debug)]
pub struct Front<P: Protocol> {
    inner: P::Coordinator,
    inside: Inside<P>,
    size: u16,
    newer: Option<Arc<Catalog>>,
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

impl<P: Protocol> Front<P> {
    /// A node goes by the catalog of this epoch: whoever is behind is told.
    fn compare_epochs(&self, whom: Address, epoch: u64, cx: &mut Context<'_, P>) {
        if epoch > cx.catalog.epoch {
            send_now(Address::coordinator(whom.node), Message::AskPlacement, cx);
        } else if epoch < cx.catalog.epoch {
            tell_placement(whom, cx);
        }
    }
}

impl<P: Protocol> Coordinator<Grouped<P>> for Front<P> {
    fn new(node: NodeId, incarnation: u32, rules: &Rules<P::Rules>) -> Front<P> {
        let inner = P::Coordinator::new(node, incarnation, &rules.inner);
        Front { inner, inside: Inside::new(rules.size), size: rules.size, newer: None }
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
        sender: Address,
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
            Message::Leads { group, member, ballot, epoch } => {
                if group < layout::groups(cx.catalog, self.size) {
                    self.inside.hear_leader(group, member, ballot);
                }
                self.compare_epochs(sender, epoch, cx);
            }
            Message::AskPlacement => tell_placement(sender, cx),
            Message::Placement { epoch, homes } => {
                self.newer = cx.catalog.placed(epoch, &homes).map(Arc::new);
            }
            Message::Consensus(_)
            | Message::Confirm { .. }
            | Message::Confirmed { .. }
            | Message::Ask
            | Message::Standing(_)
            | Message::Settled
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

    fn outcome(&self, txn: TxnId) -> Outcome {
        self.inner.outcome(txn)
    }

    fn newer_catalog(&mut self) -> Option<Arc<Catalog>> {
        self.newer.take()
    }
}

/// Tells a node where the members are.
fn tell_placement<P: Protocol>(whom: Address, cx: &mut Context<'_, P>) {
    let Catalog { epoch, homes, since, .. } = cx.catalog;
    let homes = homes.iter().copied().zip(since.iter().copied()).collect();
    let placement = Message::Placement { epoch: *epoch, homes };
    send_now(Address::coordinator(whom.node), placement, cx);
}
