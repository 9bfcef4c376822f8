//! A group gets more members, or fewer: from one [configuration](crate::agreement::configuration)
//! to the next.
//!
//! Where the placement wants other members than vote, and the new ones are ready, whoever leads
//! appends the entry that ends the configuration, and nothing after it. Whoever finds that
//! entry decided writes down that the next one has begun, and takes part in that, if it is to.
//! Whoever led stands for election in it at once, and goes on with its participant if it is elected
//! and nobody else has decided anything. Whoever hears of a later configuration asks for all that
//! is known there, and goes on with that.
//!
//! A new member learns first, and says so ([`Message::At`]); only then is it counted. So a group
//! that grows can do without as many members as before, all the time.
//!
//! Whoever leads goes by its own placement, which may be old: a configuration says which epoch it
//! was chosen by, and is followed only by one of a later epoch. So the members of a group change as
//! the placement does, and not back.

use muesli_core::{Address, LogPosition, Protocol};

use super::{ASK_TICKS, Replica, Settled};
use crate::agreement::configuration::Configuration;
use crate::agreement::consensus::Consensus;
use crate::agreement::entry::Entry;
use crate::agreement::ledger::Change;
use crate::agreement::summary::{Formed, Summary};
use crate::inside::{Context, send_now};
use crate::layout;
use crate::protocol::Message;

impl<P: Protocol> Replica<P> {
    /// Who votes, as far as this member knows; in a group that forms, who is to.
    pub(super) fn configuration(&self) -> Configuration {
        let known = self.ledger.look(|replica_state| replica_state.configuration.clone());
        if known.number == 0 { Configuration::first(self.wanted.clone()) } else { known }
    }

    /// The number of that.
    pub(super) fn configuration_number(&self) -> u32 {
        self.ledger.look(|replica_state| replica_state.configuration.number).max(1)
    }

    /// Whether the log has an entry that ends the configuration. Nothing is appended after it.
    pub(super) fn is_ending(&self) -> bool {
        self.ledger.look(|replica_state| replica_state.next().is_some())
    }

    /// Whether the group consists of just those who are to be in it.
    pub(super) fn is_as_wanted(&self) -> bool {
        self.ledger.look(|replica_state| {
            replica_state.configuration.places == self.wanted && replica_state.next().is_none()
        })
    }

    /// Whether it is to go, and the group has done without it since.
    pub(super) fn is_left_out(&self) -> bool {
        let known = self.ledger.look(|replica_state| replica_state.configuration.number > 0);
        known && !self.wanted.contains(&self.place) && !self.configuration().has(self.place)
    }

    /// Ends the configuration if there are to be other members and this one leads.
    pub(super) fn regroup(&mut self, cx: &mut Context<'_, P>) {
        let configuration = self.configuration();
        let (Some(consensus), Some(leading)) = (&self.consensus, &self.leading) else { return };
        let leads = consensus.leading() == Some(leading.ballot);
        let is_news = cx.catalog.placement > configuration.epoch;
        let is_wanted = self.wanted != configuration.places && self.wanted.len() >= layout::LEAST;
        let since = |it: u16| cx.catalog.since[usize::from(layout::member(self.group, it).0)];
        let is_ready = |it: &u16| {
            configuration.has(*it) || leading.ready.get(it).is_some_and(|at| *at == since(*it))
        };
        if !leads || !is_news || !is_wanted || !self.wanted.iter().all(is_ready) {
            return;
        }
        if self.is_ending() {
            return;
        }
        self.append_lazy();
        if !self.lazy.is_empty() {
            return; // Too much is undecided.
        }
        let next = configuration.next(cx.catalog.placement, self.wanted.clone());
        if let Some(consensus) = &mut self.consensus {
            consensus.append(Entry::that_begins(&next));
        }
        self.applied += 1;
        self.inside.positions.logged = LogPosition(self.applied);
    }

    /// The configuration has ended with so many entries, and this one begins.
    pub(super) fn reconfigure(&mut self, upto: u64, next: Configuration) {
        if let Some(consensus) = &mut self.consensus {
            let number = consensus.configuration().number;
            // What it says of the one that ended helps others to hear of its end.
            self.parting.extend(consensus.outgoing().into_iter().map(|it| (number, it)));
        }
        self.ledger.make(vec![Change::Configured(upto, next.clone())]);
        self.consensus = None;
        if next.has(self.place) {
            // That it has begun is to be stable before this member counts as one of it.
            self.settled = Settled::Soon;
            let mut consensus = self.new_consensus(&next);
            if self.leading.is_some() {
                consensus.stand();
            }
            self.consensus = Some(consensus);
        } else if self.leading.take().is_some() {
            self.start_over();
        }
    }

    /// What is decided ends the configuration, if it does.
    pub(super) fn end_configuration(&mut self, cx: &mut Context<'_, P>) {
        let next = self.ledger.look(|replica_state| {
            let whole = replica_state.decided == replica_state.length()
                && replica_state.formed == Formed::Begun;
            replica_state.next().filter(|_| whole).map(|next| (replica_state.decided, next))
        });
        let Some((upto, next)) = next else { return };
        if self.fetching.is_some() {
            return self.ledger.make(vec![Change::Configured(upto, next)]);
        }
        self.release(cx);
        self.reconfigure(upto, next);
    }

    /// The part of this member in a configuration.
    pub(super) fn new_consensus(&self, configuration: &Configuration) -> Consensus {
        // What is decided while a member comes back to vote must fit.
        let most = self.group_settings.limits.window_bytes / 2;
        Consensus::new(self.place, configuration, self.ledger.clone(), most)
            .restrained(self.is_hung(), !self.has_state())
    }

    /// Another member is at this configuration.
    pub(super) fn on_at(&mut self, member: u16, number: u32, cx: &mut Context<'_, P>) {
        let mine = self.configuration_number();
        let remembers = self.ledger.look(|replica_state| replica_state.formed == Formed::Begun);
        let Some(from) = layout::address(cx.catalog, self.group, member) else { return };
        if !remembers {
            return; // It asks all others already.
        }
        if number < mine {
            cx.send(from, Message::At(mine));
        } else if number > mine && self.asked.is_none_or(|at| at + ASK_TICKS <= self.ticks) {
            self.asked = Some(self.ticks);
            send_now(from, Message::Ask, cx);
        }
    }

    /// A member that does not vote is at this configuration, and has that on its disk.
    pub(super) fn on_learned(&mut self, member: u16, number: u32, cx: &mut Context<'_, P>) {
        if number == self.configuration_number()
            && let Some(leading) = &mut self.leading
        {
            let member = layout::member(self.group, member);
            let since = cx.catalog.since[usize::from(member.0)];
            leading.ready.insert(layout::place(member).1, since);
        }
        self.on_at(member, number, cx);
    }

    /// A member that does not vote says how far it has come, once that is stable.
    pub(super) fn send_place(&self, cx: &mut Context<'_, P>) {
        if !self.has_state() {
            return;
        }
        let number = self.configuration_number();
        for other in self.others(cx) {
            if let Some(to) = layout::address(cx.catalog, self.group, other) {
                cx.send(to, Message::At(number));
            }
        }
    }

    /// Somebody knows a later configuration to have begun: fetches all that is known there.
    /// This member has not voted in it.
    pub(super) fn catch_up(&mut self, member: u16, known: &Summary, cx: &mut Context<'_, P>) {
        let is_newer = known.configuration.number > self.configuration_number();
        if known.formed != Formed::Begun || !is_newer || self.fetching.is_some() {
            return;
        }
        self.asked = None;
        self.start_fetching(member, None, cx);
    }

    /// The mistake that
    /// [`GroupSettings::ends_configurations`](crate::GroupSettings::ends_configurations) leaves
    /// out: whoever hears of other members takes them for the next configuration.
    pub(super) fn regroup_at_once(&mut self, cx: &mut Context<'_, P>) {
        let configuration = self.configuration();
        let is_news = cx.catalog.placement > configuration.epoch;
        if self.consensus.is_none() || !is_news || self.wanted == configuration.places {
            return;
        }
        if self.leading.take().is_some() {
            self.start_over();
        }
        let next = configuration.next(cx.catalog.placement, self.wanted.clone());
        let decided = self.ledger.look(|replica_state| replica_state.decided);
        self.reconfigure(decided, next);
    }

    /// Where another member is, if there is one.
    pub(super) fn address_of(&self, place: u16, cx: &Context<'_, P>) -> Option<Address> {
        layout::address(cx.catalog, self.group, place)
    }
}
