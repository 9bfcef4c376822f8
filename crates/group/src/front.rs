//! The coordinator of a grouped protocol: that of the protocol inside, with a guess of who leads.
//!
//! Leaders say that they lead to the coordinators that the catalog names. Others are
//! *unregistered*: clients that run their transactions themselves, come and go. Coordinators of the
//! catalog know them by their links, and repeat to them what is news: who leads a group from now
//! on, and that members have moved. An unregistered client whose link begins is told everything, so
//! nothing that was lost with a link before is missed.

use std::collections::BTreeSet;
use std::sync::Arc;

use muesli_core::{
    Address, Coordinator, Effect, Here, LogPosition, Nanos, NodeId, Operation, Outcome, Protocol,
    Recorder, Rejection, Role, SmallBytes, StateMachine, Step, Timestamp, Txn, TxnId, View,
};

use crate::agreement::ballot::Ballot;
use crate::inside::{Context, InnerContext, Inside, send_now};
use crate::judge::judge_by;
use crate::layout;
use crate::protocol::{GroupSettings, Grouped, Message, between_members};
use crate::timers;

/// The coordinator. Repositories of its own node it reaches by messages too, for their leaders
/// answer only once they are sure to lead.
#[derive(Clone, Debug)]
pub struct Front<P: Protocol> {
    inner: P::Coordinator,
    inside: Inside<P>,
    switches: P::Switches,
    unregistered: BTreeSet<NodeId>,
    /// The epoch of the placement that unregistered clients were told.
    announced: u64,
}

impl<P: Protocol> Front<P> {
    fn run<T>(
        &mut self,
        cx: &mut Context<'_, P>,
        run: impl FnOnce(&mut P::Coordinator, Here<'_, P>, &mut InnerContext<'_, P>) -> T,
    ) -> T {
        let inner = &mut self.inner;
        let (answer, messages) =
            self.inside.run(Role::Coordinator, cx, |cx| run(inner, Here::new(&mut []), cx));
        for effect in messages {
            match effect {
                Effect::Send { envelope, .. } => self.inside.send(envelope, cx),
                Effect::Complete { op, result, .. } => {
                    cx.complete_after(op, result, LogPosition(0));
                }
                Effect::SetTimer { timer, after, .. } => {
                    let timer: <P::Coordinator as StateMachine<P>>::Timer = timers::inner(timer);
                    cx.set_timer(timer, after);
                }
                Effect::Log { .. } => unreachable!("a coordinator logs nothing"),
            }
        }
        answer
    }
}

impl<P: Protocol> Front<P> {
    /// Whether the coordinator inside is told of links to a node: it knows by that node's name the
    /// services there, and of groups no more than who leads them, which is found out otherwise.
    fn has_services(&mut self, node: NodeId, cx: &Context<'_, P>) -> bool {
        let inner = self.inside.catalog(cx.catalog);
        !P::services(&self.switches, node, &inner).is_empty()
    }

    /// A node goes by the placement of this epoch: whoever is behind is told.
    fn compare_epochs(&self, whom: Address, epoch: u64, cx: &mut Context<'_, P>) {
        if epoch > cx.catalog.placement {
            send_now(Address::coordinator(whom.node), Message::AskPlacement, cx);
        } else if epoch < cx.catalog.placement {
            tell_placement(whom, cx);
        }
    }

    /// Repeats to unregistered clients that a member leads its group.
    fn tell_leader<'a>(
        &self,
        unregistered: impl IntoIterator<Item = &'a NodeId>,
        (group, member, ballot): (u16, u16, Ballot),
        cx: &mut Context<'_, P>,
    ) {
        let epoch = cx.catalog.placement;
        for &unregistered in unregistered {
            let message = Message::Leads { group, member, ballot, epoch };
            send_now(Address::coordinator(unregistered), message, cx);
        }
    }

    /// Tells unregistered clients where members live, if that has changed since they were told.
    fn tell_of_moves(&mut self, cx: &mut Context<'_, P>) {
        if self.announced < cx.catalog.placement {
            self.announced = cx.catalog.placement;
            for &unregistered in &self.unregistered {
                tell_placement(Address::coordinator(unregistered), cx);
            }
        }
    }
}

impl<P: Protocol> StateMachine<Grouped<P>> for Front<P> {
    type Timer = <P::Coordinator as StateMachine<P>>::Timer;

    fn judge(&self, message: &Message<P::Message>, view: View<'_>) -> Result<(), Rejection> {
        judge_by(&self.inner, &self.inside, message, view).unwrap_or(Ok(()))
    }

    fn issued(&self) -> Timestamp {
        self.inner.issued()
    }

    fn linked(&mut self, node: NodeId, cx: &mut Context<'_, P>) {
        if self.has_services(node, cx) {
            self.run(cx, |inner, _, cx| inner.linked(node, cx));
        }
        if !cx.catalog.is_client(node) || cx.catalog.is_client(cx.me.node) {
            return;
        }
        self.unregistered.insert(node);
        tell_placement(Address::coordinator(node), cx);
        for leader in self.inside.leaders() {
            self.tell_leader(&[node], leader, cx);
        }
    }

    fn unlinked(&mut self, node: NodeId, cx: &mut Context<'_, P>) {
        self.unregistered.remove(&node);
        if self.has_services(node, cx) {
            self.run(cx, |inner, _, cx| inner.unlinked(node, cx));
        }
    }

    fn unfinished(&self) -> usize {
        self.inner.unfinished()
    }

    fn assert_invariants(&self) {
        self.inner.assert_invariants();
    }
}

impl<P: Protocol> Coordinator<Grouped<P>> for Front<P> {
    fn new(
        node: NodeId,
        incarnation: u32,
        group_settings: &GroupSettings<P::Switches>,
    ) -> Front<P> {
        let inner = P::Coordinator::new(node, incarnation, &group_settings.inner);
        let (inside, unregistered) = (Inside::new(), BTreeSet::new());
        let switches = group_settings.inner.clone();
        Front { inner, inside, switches, unregistered, announced: 0 }
    }

    fn operate(
        &mut self,
        operation: Operation,
        _: Here<'_, Grouped<P>>,
        cx: &mut Context<'_, P>,
    ) -> Step {
        self.run(cx, |inner, here, cx| inner.operate(operation, here, cx))
    }

    muesli_core::coordinator_without_peeks!(Grouped<P>);

    fn open_transactions(&self) -> Vec<Txn> {
        self.inner.open_transactions()
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
                let is_known = layout::is_inner(from, cx.catalog);
                if is_known && P::is_about(&message, &self.inside.catalog(cx.catalog)) {
                    self.run(cx, |inner, here, cx| inner.receive(from, message, here, cx));
                }
            }
            Message::Leads { group, member, ballot, epoch } => {
                if group < layout::groups(cx.catalog)
                    && self.inside.observe_leader(group, member, ballot)
                {
                    self.tell_leader(&self.unregistered, (group, member, ballot), cx);
                }
                if group < layout::groups(cx.catalog) && !cx.catalog.begun.contains(&group) {
                    cx.go_by(Arc::new(cx.catalog.with_begun(&[group])));
                }
                self.compare_epochs(sender, epoch, cx);
                self.tell_of_moves(cx);
            }
            Message::AskPlacement => tell_placement(sender, cx),
            Message::AskBegun(group) => {
                send_now(sender, Message::Begun(cx.catalog.begun.contains(&group)), cx);
            }
            Message::Placement { epoch, homes, leaving } => {
                let newer = cx.catalog.placed(epoch, &homes, &leaving);
                if let Some(newer) = newer.filter(layout::is_sound) {
                    cx.go_by(Arc::new(newer));
                }
            }
            // For members: whoever sent it here is mistaken.
            between_members!() | Message::Begun(_) | Message::Stable(_) => {}
        }
    }

    fn start(&mut self, _: Here<'_, Grouped<P>>, cx: &mut Context<'_, P>) {
        self.run(cx, |inner, here, cx| inner.start(here, cx));
    }

    fn timer(&mut self, timer: Self::Timer, _: Here<'_, Grouped<P>>, cx: &mut Context<'_, P>) {
        self.run(cx, |inner, here, cx| inner.timer(timer, here, cx));
    }

    fn leave(&mut self, cx: &mut Context<'_, P>) {
        self.run(cx, |inner, _, cx| inner.leave(cx));
    }

    fn record_running(&self, recorder: &mut Recorder) {
        self.inner.record_running(recorder);
    }

    fn oldest_snapshot(&self) -> Option<(NodeId, Option<Nanos>)> {
        self.inner.oldest_snapshot()
    }

    fn session_token(&self) -> Option<SmallBytes> {
        self.inner.session_token()
    }

    fn adopt(&mut self, session_token: &SmallBytes) {
        self.inner.adopt(session_token);
    }

    fn outcome(&self, txn: TxnId) -> Outcome {
        self.inner.outcome(txn)
    }
}

/// Tells a node where the members are.
fn tell_placement<P: Protocol>(whom: Address, cx: &mut Context<'_, P>) {
    let (homes, leaving) = (cx.catalog.stays(), cx.catalog.leaving.to_vec());
    let placement = Message::Placement { epoch: cx.catalog.placement, homes, leaving };
    send_now(Address::coordinator(whom.node), placement, cx);
}

#[cfg(test)]
mod tests {
    use muesli_core::{Catalog, Effects, Envelope, Node, RepositoryId, Sender, Settings};
    use muesli_protocols::score::Score;

    use super::*;

    type Groups = Grouped<Score>;
    type Sent = Vec<(Address, &'static str)>;

    const UNREGISTERED: NodeId = NodeId(1 << 31);
    const SECOND: NodeId = NodeId(UNREGISTERED.0 + 1);

    fn catalog() -> Catalog {
        let homes = layout::homes(2, 3, 4).unwrap();
        let nodes: Vec<_> = (0..4).map(NodeId).collect();
        Catalog::new(&homes, 1, &nodes).unwrap().with_visiting_coordinators()
    }

    /// A node's coordinator, and what it says.
    struct Harness {
        node: Node<Groups>,
        effects: Effects<Groups>,
    }

    impl Harness {
        fn new(id: NodeId) -> Harness {
            let (catalog, settings) = (Arc::new(catalog()), Arc::new(Settings::default()));
            let node = Node::new(id, 1, catalog, settings, &GroupSettings::default());
            Harness { node, effects: Effects::default() }
        }

        fn messages(&mut self) -> Sent {
            let sent = self.effects.list.drain(..).filter_map(|effect| match effect {
                Effect::Send { envelope, .. } => Some(envelope),
                _ => None,
            });
            sent.map(|it| (it.to, Groups::message_name(&it.message))).collect()
        }

        fn link(&mut self, node: NodeId) -> Sent {
            self.node.linked(node, &mut self.effects);
            self.messages()
        }

        fn deliver(&mut self, message: <Groups as Protocol>::Message) -> Sent {
            let from = Address::repository(NodeId(1), RepositoryId(1));
            let to = Address::coordinator(self.node.id());
            self.node.deliver(Envelope { from, to, message }, &mut self.effects);
            self.messages()
        }
    }

    fn leads(number: u32, member: u16) -> <Groups as Protocol>::Message {
        let ballot = Ballot { configuration: 1, number, member: u64::from(member) + 1 };
        Message::Leads { group: 0, member, ballot, epoch: 1 }
    }

    #[test]
    fn unregistered_clients_are_told_everything_when_they_come_and_then_what_is_news() {
        let mut harness = Harness::new(NodeId(0));
        let (first, second) = (Address::coordinator(UNREGISTERED), Address::coordinator(SECOND));
        assert_eq!(harness.link(UNREGISTERED), [(first, "Placement")]);
        assert_eq!(harness.deliver(leads(1, 1)), [(first, "Leads"), (first, "Placement")]);
        assert_eq!(harness.deliver(leads(1, 1)), []);
        assert_eq!(harness.link(SECOND), [(second, "Placement"), (second, "Leads")]);
        assert_eq!(harness.deliver(leads(2, 2)), [(first, "Leads"), (second, "Leads")]);
        harness.node.unlinked(UNREGISTERED, &mut harness.effects);
        assert_eq!(harness.deliver(leads(3, 1)), [(second, "Leads")]);
        let moved = catalog().moved(RepositoryId(3), NodeId(0));
        let (epoch, homes, leaving) = (moved.placement, moved.stays(), Vec::new());
        harness.deliver(Message::Placement { epoch, homes, leaving });
        assert_eq!(harness.node.catalog().placement, 2);
        let leader = Address::coordinator(NodeId(1));
        assert_eq!(harness.deliver(leads(3, 1)), [(leader, "Placement"), (second, "Placement")]);
    }

    #[test]
    fn a_placement_that_a_member_makes_up_is_left_out() {
        let mut harness = Harness::new(NodeId(0));
        let (homes, leaving) = (catalog().stays(), Vec::new());
        let from = Address::coordinator(NodeId(1));
        let mut send = |epoch| {
            let placement =
                Message::Placement { epoch, homes: homes.clone(), leaving: leaving.clone() };
            let to = Address::coordinator(NodeId(0));
            let envelope = Envelope { from, to, message: placement };
            let judged = harness.node.receive(Sender::Member, envelope, &mut harness.effects);
            (judged, harness.node.catalog().placement)
        };
        assert_eq!(send(u64::MAX), (Err(Rejection::Range), 1));
        assert_eq!(send(2), (Ok(()), 2));
    }

    #[test]
    fn nodes_of_the_catalog_and_unregistered_clients_themselves_repeat_nothing() {
        assert_eq!(Harness::new(NodeId(0)).link(NodeId(2)), []);
        let mut unregistered = Harness::new(UNREGISTERED);
        assert_eq!(unregistered.link(NodeId(2)), []);
        assert_eq!(unregistered.deliver(leads(1, 1)), []);
    }

    #[test]
    fn names_that_there_are_not_are_left_out() {
        let message = muesli_protocols::two_phase::message::Message::Ask {
            txn: TxnId { node: UNREGISTERED, incarnation: 1, sequence: 1 },
        };
        let from = Address::repository(NodeId(1), RepositoryId(60_000));
        let mut harness = Harness::new(NodeId(0));
        let inside = Message::Inside { from, hops: 0, message };
        assert_eq!(harness.deliver(inside.clone()), []);
        let to = Address::repository(NodeId(0), RepositoryId(0));
        let from = Address::coordinator(UNREGISTERED);
        harness.node.deliver(Envelope { from, to, message: inside }, &mut harness.effects);
        assert_eq!(harness.messages(), []);
    }
}
