//! The protocol inside a group: its view of the world, and the way of its messages out of it.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use muesli_core::{
    Address, Catalog, Effect, Effects, Envelope, Environment, Links, LogPosition, Positions,
    Protocol, RepositoryId, Role, RolePositions,
};

use crate::agreement::ballot::Ballot;
use crate::layout;
use crate::protocol::{Grouped, Message};

pub(crate) type Context<'a, P> = muesli_core::Context<'a, Grouped<P>>;
pub(crate) type InnerContext<'a, P> = muesli_core::Context<'a, P>;
/// What a role of the protocol inside said.
pub(crate) type InnerEffects<P> = Vec<Effect<<P as Protocol>::Message, <P as Protocol>::Record>>;

/// What a role of the protocol inside needs around it.
#[derive(Clone, Debug)]
pub(crate) struct Inside<P> {
    /// The inner catalog with the epochs of the outer one that it is made from, and how many
    /// coordinators that has and ever had.
    catalog: Option<([u64; 4], Arc<Catalog>)>,
    /// Who leads each group, as far as was heard.
    leaders: BTreeMap<u16, (Ballot, u16)>,
    /// How many messages were for any member of a group.
    for_any: u64,
    /// Log positions as a participant sees them: numbers of entries.
    pub(crate) positions: RolePositions,
    protocol: PhantomData<P>,
}

impl<P: Protocol> Inside<P> {
    pub(crate) fn new() -> Inside<P> {
        Inside {
            catalog: None,
            leaders: BTreeMap::new(),
            for_any: 0,
            positions: RolePositions::default(),
            protocol: PhantomData,
        }
    }

    /// The catalog that the protocol inside sees.
    pub(crate) fn catalog(&mut self, outer: &Catalog) -> Arc<Catalog> {
        let epochs = epochs_of(outer);
        match &self.catalog {
            Some((known, inner)) if *known == epochs && inner.hierarchy == outer.hierarchy => {
                Arc::clone(inner)
            }
            _ => {
                let inner = layout::inner(outer);
                self.catalog = Some((epochs, Arc::clone(&inner)));
                inner
            }
        }
    }

    /// The same, for a look.
    pub(crate) fn known_catalog(&self, outer: &Catalog) -> Arc<Catalog> {
        let epochs = epochs_of(outer);
        match &self.catalog {
            Some((known, inner)) if *known == epochs && inner.hierarchy == outer.hierarchy => {
                Arc::clone(inner)
            }
            _ => layout::inner(outer),
        }
    }

    /// Lets the participant of `role` run in its own world, where positions are numbers of entries.
    /// Returns what it answered and what it said.
    pub(crate) fn run<T>(
        &mut self,
        role: Role,
        cx: &mut Context<'_, P>,
        run: impl FnOnce(&mut InnerContext<'_, P>) -> T,
    ) -> (T, InnerEffects<P>) {
        let positions = Positions::alone(role, self.positions);
        let (answer, sent, positions) = self.run_at(role, positions, cx, run);
        self.positions = positions.of(role);
        (answer, sent)
    }

    /// Lets `role` run in its own world, at these positions of a log. Returns what it answered,
    /// what it said, and the positions afterwards.
    pub(crate) fn run_at<T>(
        &mut self,
        role: Role,
        positions: Positions,
        cx: &mut Context<'_, P>,
        run: impl FnOnce(&mut InnerContext<'_, P>) -> T,
    ) -> (T, InnerEffects<P>, Positions) {
        let catalog = self.catalog(cx.catalog);
        let node = match role {
            Role::Coordinator | Role::Service(_) => cx.me.node,
            Role::Repository(group) => catalog.home(group),
        };
        let mut effects = Effects::new(Environment {
            now: cx.now(),
            recorder: cx.effects.recorder.take(),
            accesses: cx.effects.accesses.take(),
            links: self.links(cx, &catalog),
            work: std::mem::take(&mut cx.effects.work),
            modes: cx.effects.modes,
            maintenance: cx.effects.maintenance,
            positions,
            restart: false,
            newer_catalog: None,
        });
        let me = Address { node, role };
        let mut inner = muesli_core::Context {
            me,
            catalog: &catalog,
            settings: cx.settings,
            effects: &mut effects,
        };
        let answer = run(&mut inner);
        cx.effects.recorder = effects.recorder.take();
        cx.effects.accesses = effects.accesses.take();
        (cx.effects.work, cx.effects.modes) = (effects.work, effects.modes);
        cx.effects.maintenance = effects.maintenance;
        cx.effects.restart |= effects.restart;
        (answer, effects.list, effects.environment.positions)
    }

    /// What is under way to whoever leads a group is under way to the group, as the role sees it.
    fn links(&self, cx: &Context<'_, P>, catalog: &Catalog) -> Links {
        let mut links = Links::default();
        if cx.effects.links.is_empty() {
            return links;
        }
        for (group, member, _) in self.leaders() {
            let leader = layout::address(cx.catalog, group, member);
            let since = leader.and_then(|leader| cx.effects.links.since(leader.node));
            if let Some(since) = since {
                links.set(catalog.home(RepositoryId(group)), since);
            }
        }
        links
    }

    /// Sends what was said to whoever it is for, now.
    pub(crate) fn send(&mut self, envelope: Envelope<P::Message>, cx: &mut Context<'_, P>) {
        self.deliver_after(envelope, LogPosition(0), cx);
    }

    /// Sends what was said to whoever it is for, once the node's log is stable up to `after`.
    pub(crate) fn deliver_after(
        &mut self,
        envelope: Envelope<P::Message>,
        after: LogPosition,
        cx: &mut Context<'_, P>,
    ) {
        let Envelope { from, to, message } = envelope;
        if let Some(any) = self.any_member(to.role, &message, cx) {
            return send_after(any, Message::Inside { from, hops: 0, message }, after, cx);
        }
        self.pass_on_after((from, to, 0), message, after, cx);
    }

    /// For what any member of a group may answer: the one of this node, else one after the other.
    fn any_member(
        &mut self,
        role: Role,
        message: &P::Message,
        cx: &Context<'_, P>,
    ) -> Option<Address> {
        let Role::Repository(group) = role else { return None };
        if !P::is_for_any(message) {
            return None;
        }
        self.for_any += 1;
        let members = || {
            let places = layout::taken(cx.catalog, group.0);
            places.filter_map(|place| layout::address(cx.catalog, group.0, place))
        };
        let rotation = self.for_any as usize % members().count().max(1);
        members().find(|member| member.node == cx.me.node).or_else(|| members().nth(rotation))
    }

    /// Sends a message that was passed on `hops` times, to whoever leads.
    pub(crate) fn pass_on(
        &self,
        from: Address,
        to: Address,
        hops: u8,
        message: P::Message,
        cx: &mut Context<'_, P>,
    ) {
        self.pass_on_after((from, to, hops), message, LogPosition(0), cx);
    }

    fn pass_on_after(
        &self,
        (from, to, hops): (Address, Address, u8),
        message: P::Message,
        after: LogPosition,
        cx: &mut Context<'_, P>,
    ) {
        let to = match to.role {
            Role::Coordinator | Role::Service(_) => to,
            Role::Repository(group) if P::is_for_all(&message) => {
                let catalog = cx.catalog;
                for place in layout::taken(catalog, group.0) {
                    let to = layout::address(catalog, group.0, place);
                    let inside = Message::Inside { from, hops, message: message.clone() };
                    to.into_iter().for_each(|to| send_after(to, inside.clone(), after, cx));
                }
                return;
            }
            Role::Repository(group) => {
                let known = self.leader(group.0).or(Some(0));
                let leader = known.and_then(|leader| layout::address(cx.catalog, group.0, leader));
                // Any of them passes it on.
                let any = || layout::taken(cx.catalog, group.0).next();
                let any = || any().and_then(|it| layout::address(cx.catalog, group.0, it));
                let Some(to) = leader.or_else(any) else { return };
                to
            }
        };
        send_after(to, Message::Inside { from, hops, message }, after, cx);
    }

    /// A member says that it leads; true if nobody had said so before.
    pub(crate) fn observe_leader(&mut self, group: u16, member: u16, ballot: Ballot) -> bool {
        let known = self.leaders.entry(group).or_default();
        let is_news = member < layout::PLACES && ballot > known.0;
        if is_news {
            *known = (ballot, member);
        }
        is_news
    }

    /// Who leads each group, as far as was heard: the group, the member and its ballot.
    pub(crate) fn leaders(&self) -> impl Iterator<Item = (u16, u16, Ballot)> + '_ {
        self.leaders.iter().map(|(group, (ballot, member))| (*group, *member, *ballot))
    }

    /// Who leads a group, as far as was heard.
    pub(crate) fn leader(&self, group: u16) -> Option<u16> {
        self.leaders.get(&group).map(|(_, member)| *member)
    }
}

/// What changes, or the tree, whenever the inner catalog does.
fn epochs_of(outer: &Catalog) -> [u64; 4] {
    let coordinators = [outer.coordinators.len() as u64, outer.coordinators_ever() as u64];
    [outer.epoch, outer.placement, coordinators[0], coordinators[1]]
}

/// Sends a message that depends on nothing in this node's log.
pub(crate) fn send_now<P: Protocol>(
    to: Address,
    message: Message<P::Message>,
    cx: &mut Context<'_, P>,
) {
    send_after(to, message, LogPosition(0), cx);
}

/// Sends a message once this node's log is stable up to `after`.
fn send_after<P: Protocol>(
    to: Address,
    message: Message<P::Message>,
    after: LogPosition,
    cx: &mut Context<'_, P>,
) {
    let envelope = Envelope { from: cx.me, to, message };
    cx.effects.list.push(Effect::Send { envelope, after });
}
