//! A member's stay on a node: whether it lives here, since when, and with which memory.
//!
//! # The problem
//! A member moves to another node while the group works. The node that it leaves may not have heard
//! of that; and what it knows there is not what the new node knows.
//!
//! # The rule
//! The catalog says where each member lives, and since which epoch. Members listen to a member only
//! from where it lives by their own catalog, which their nodes keep, so that none goes back to an
//! older one. One that lives here since another epoch than its memory is of has no memory: it joins
//! as one that lost it ([`join`](crate::agreement::join)), and all other members must have
//! answered.
//!
//! # Why that is safe
//! Each of the others answered when it went by a catalog that has the member here, and listens to
//! the place where it was before no more. So what the member promised and accepted there, it did
//! before they answered; and they know of it, as of a memory that was lost.

use std::sync::Arc;

use muesli_core::{Address, NodeId, Protocol, RepositoryId, Role};

use super::{Replica, Settled};
use crate::agreement::join::{JoinStep, Joining, Situation};
use crate::agreement::ledger::{Change, Ledger, ReplicaState};
use crate::agreement::summary::{Formed, Summary};
use crate::inside::{Context, send_now};
use crate::layout;
use crate::protocol::Message;

impl<P: Protocol> Replica<P> {
    pub(super) fn id(&self) -> RepositoryId {
        layout::member(self.group, self.place)
    }

    /// Whether this member lives here, and has not moved away.
    pub(super) fn is_home(&self, cx: &Context<'_, P>) -> bool {
        !self.group_settings.keeps_to_placement || cx.catalog.home(self.id()) == cx.me.node
    }

    /// In which epoch it came here.
    pub(super) fn since(&self, cx: &Context<'_, P>) -> u64 {
        cx.catalog.since[usize::from(self.id().0)]
    }

    /// Which other member of the group says something from this address, as long as both of them
    /// live where the catalog says.
    pub(super) fn member_at(&self, from: Address, cx: &Context<'_, P>) -> Option<u16> {
        let Role::Repository(repository) = from.role else { return None };
        let (group, place) = layout::place(repository);
        let other = group == self.group && place != self.place;
        let anywhere = !self.group_settings.keeps_to_placement;
        let is_placed_there = || anywhere || cx.catalog.home(repository) == from.node;
        (other && is_placed_there() && self.is_home(cx)).then_some(place)
    }

    /// The placement has changed: comes, goes, or stays.
    pub(super) fn come_or_go(&mut self, cx: &mut Context<'_, P>) {
        if !self.group_settings.keeps_to_placement {
            return;
        }
        let is_home = self.is_home(cx);
        self.moved = !is_home;
        self.wanted = layout::wanted(cx.catalog, self.group);
        self.forget_who_left(cx);
        let remembered = self.ledger.look(|replica_state| replica_state.since) == self.since(cx);
        if !is_home || !remembered {
            (self.leading, self.consensus, self.settled) = (None, None, Settled::No);
            (self.fetching, self.loading) = (None, None);
            self.serving.clear();
            self.parting.clear();
            self.joining = Joining::default();
            self.start_over();
        }
        if is_home && self.consensus.is_none() && self.settled == Settled::No {
            self.take_place(cx);
        }
        if !self.group_settings.ends_configurations {
            self.regroup_at_once(cx);
        }
    }

    /// Another member has told what it knows.
    pub(super) fn on_summary(&mut self, member: u16, known: Summary, cx: &mut Context<'_, P>) {
        if self.ledger.look(|replica_state| replica_state.formed == Formed::Begun) {
            self.catch_up(member, &known, cx);
        } else if self.consensus.is_none() {
            self.joining.answer(member, known);
            self.go_on_joining(cx);
        }
    }

    /// Remembers what follows from the others' answers, and takes part if that is enough.
    fn go_on_joining(&mut self, cx: &mut Context<'_, P>) {
        if self.fetching.is_some() {
            return;
        }
        let since = self.since(cx);
        let configuration = self.configuration();
        let situation = Situation {
            me: self.place,
            mine: self.ledger.look(|replica_state| replica_state.formed),
            first: &configuration,
            had_formed: since > 0 || self.joining.had_begun(),
            asked_all: cx.catalog.coordinators.iter().all(|it| self.joining.has_answered(*it)),
            accepts_loss: self.group_settings.accepts_loss,
        };
        let next = match self.joining.step(situation) {
            JoinStep::Wait | JoinStep::Lost => return,
            JoinStep::AskAll => return self.ask_all(cx),
            JoinStep::Note(formed) => {
                let known = self.ledger.look(ReplicaState::summary);
                Summary { formed, since, configuration, ..known }
            }
            JoinStep::Adopt(member, known) if known.formed == Formed::Begun => {
                return self.start_fetching(member, Some(known), cx);
            }
            // Nobody has any entries yet.
            JoinStep::Adopt(_, known) => Summary { since, decided: 0, ..known },
        };
        let formed = next.formed;
        self.ledger.make(vec![Change::Adopted(Box::new(next))]);
        if formed == Formed::Begun {
            self.begin(cx);
        } else {
            self.joining.has_news();
            self.go_on_joining(cx);
        }
    }

    /// Asks all who may know whether the group had begun, and have not said so yet.
    pub(super) fn ask_all(&mut self, cx: &mut Context<'_, P>) {
        let coordinators = Arc::clone(&cx.catalog.coordinators);
        for node in coordinators.iter().filter(|node| !self.joining.has_answered(**node)) {
            send_now(Address::coordinator(*node), Message::AskBegun(self.group), cx);
        }
    }

    /// A node has said whether it knows the group to have begun.
    pub(super) fn on_begun(&mut self, node: NodeId, begun: bool, cx: &mut Context<'_, P>) {
        let is_asking = self.consensus.is_none() && self.settled == Settled::No;
        if is_asking && !self.joining.has_answered(node) {
            self.joining.note_begun(node, begun);
            self.go_on_joining(cx);
        }
    }

    /// Tells the others how far this member has come in forming the group, after that was logged.
    pub(super) fn tell_news(&mut self, cx: &mut Context<'_, P>) {
        if self.joining.take_news() {
            let known = self.ledger.look(ReplicaState::summary);
            for other in self.others(cx) {
                if let Some(to) = self.address_of(other, cx) {
                    cx.send(to, Message::Knows(Box::new(known.clone())));
                }
            }
        }
    }

    /// Takes part if it remembers its being here; otherwise it asks first.
    pub(super) fn take_place(&mut self, cx: &mut Context<'_, P>) {
        if self.ledger.look(|replica_state| replica_state.since) != self.since(cx) {
            self.ledger = Ledger::default(); // A memory of an earlier stay, which others replaced.
            self.start_over();
        }
        self.ledger.replays_all_decided();
        let remembers = self.ledger.look(|replica_state| replica_state.formed == Formed::Begun);
        if remembers || !self.group_settings.asks_before_voting {
            self.begin(cx);
        } else {
            self.tell_others(&Message::Ask, cx);
        }
    }

    /// Takes part from now on.
    pub(super) fn begin(&mut self, cx: &mut Context<'_, P>) {
        self.fetching = None;
        self.joining = Joining::default();
        self.settled = Settled::Soon;
        self.written.begin();
        if self.ledger.look(|replica_state| replica_state.configuration.number) == 0 {
            // Only where it is to make the mistake of not asking.
            let known = self.ledger.look(ReplicaState::summary);
            let known = Summary { configuration: self.configuration(), ..known };
            self.ledger.make(vec![Change::Adopted(Box::new(known))]);
        }
        let configuration = self.configuration();
        let votes = configuration.has(self.place);
        self.consensus = votes.then(|| self.new_consensus(&configuration));
        self.replay_decided(cx);
    }
}
