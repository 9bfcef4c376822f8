//! A member of a group: it keeps the group's log, and runs or replays the participant.

mod disk;
mod regroup;
mod run;
mod stay;

use std::fmt;

use muesli_core::wire::{Wire, WireError};
use muesli_core::{
    Address, Catalog, Cursor, NodeId, Participant, Post, Protocol, RepositoryId, Role, Settings,
    SmallBytes, SpaceId, Timestamp,
};

use crate::compact::Compacting;
use crate::configuration::Configuration;
use crate::consensus::{Consensus, Outgoing};
use crate::inside::{Context, Inside, send_now};
use crate::join::{Formed, Joining};
use crate::layout;
use crate::lead::Leading;
use crate::ledger::{Change, Entry, Ledger, Standing};
use crate::protocol::{Grouped, Message, Record, Rules};
use crate::written::Written;

/// The timer of the consensus's ticks; those of the participant inside come after it.
const TICK_TIMER: u32 = 0;
const INNER_TIMERS: u32 = 1;
/// A leader says that it leads once in so many ticks.
const ANNOUNCE_TICKS: u64 = 8;
/// After so many ticks without a decision, followers are told to ask for what is missing.
const STALLED_TICKS: u32 = 6;
/// A member without memory asks again after so many ticks.
const ASK_TICKS: u64 = 10;
/// A member that has not heard of a leader for so many ticks does not count as settled.
const SILENT_TICKS: u64 = 4 * ANNOUNCE_TICKS;
/// Which entries a follower leaves out where it is to make that mistake.
const LEFT_OUT: u64 = 20;
/// A message is passed on at most so often.
const HOPS_MAX: u8 = 2;

/// The member.
pub struct Replica<P: Protocol> {
    group: u16,
    place: u16,
    rules: Rules<P::Rules>,
    settings: Settings,
    inside: Inside<P>,
    ledger: Ledger,
    /// `None` as long as it has no memory, or does not vote.
    consensus: Option<Consensus>,
    joining: Joining,
    inner: P::Participant,
    /// How many entries the participant has seen, those of `lazy` included.
    applied: u64,
    /// Of a leader: entries that nothing waits for. They are appended with the next that something
    /// does wait for, or at the next tick.
    lazy: Vec<Entry>,
    leading: Option<Leading<P::Message>>,
    compacting: Option<Compacting>,
    ticks: u64,
    /// When a leader was last heard of.
    heard: Option<u64>,
    /// It lives on another node now.
    away: bool,
    /// Which places of the group are to have a member, as the placement says.
    wanted: Vec<u16>,
    /// What is to be said of configurations that have ended, with their numbers.
    parting: Vec<(u32, Outgoing)>,
    /// The configuration that the entry begins which was replayed last.
    ends_with: Option<Configuration>,
    /// When it asked last what is known of a later configuration.
    asked: Option<u64>,
    /// Whether its memory of being here is stable.
    settled: Settled,
    /// How much of what it wrote is stable.
    written: Written,
    /// Messages of the consensus before this note wait for the disk, and those after for them.
    spoke: u64,
}

/// How far the memory of a stay has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    /// There is none.
    No,
    /// It is to be logged.
    Soon,
    /// It is logged, and stable when this note arrives.
    Logged(u64),
    /// It is stable.
    Yes,
}

impl<P: Protocol> fmt::Debug for Replica<P> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Replica { group, place, consensus, applied, .. } = self;
        write!(out, "Replica({place} of group {group}, {consensus:?}, {applied} applied)")
    }
}

impl<P: Protocol> Replica<P> {
    /// Whether it leads, and answers.
    pub fn leads(&self) -> bool {
        self.leading.is_some()
    }

    /// Whether it lives here, votes in a group of just those who are to be in it, and will remember
    /// so: no other member of its group may be moved before.
    pub fn takes_part(&self) -> bool {
        self.settled == Settled::Yes && self.consensus.is_some() && self.is_as_wanted()
    }

    /// What it knows.
    pub fn look<T>(&self, look: impl FnOnce(&Standing) -> T) -> T {
        self.ledger.look(look)
    }

    fn role(&self) -> Role {
        Role::Repository(RepositoryId(self.group))
    }

    /// All other members that there are.
    fn others(&self, cx: &Context<'_, P>) -> Vec<u16> {
        layout::taken(cx.catalog, self.group).filter(|&other| other != self.place).collect()
    }

    fn new_participant(&self) -> P::Participant {
        let id = RepositoryId(self.group);
        P::Participant::new(id, &self.settings, &self.rules.inner)
    }

    /// A message of the protocol inside: for the participant if it leads, or for whoever does.
    fn on_inside(&mut self, from: Address, hops: u8, message: P::Message, cx: &mut Context<'_, P>) {
        let catalog = self.inside.catalog(cx.catalog);
        let is_known = layout::is_inner(from, cx.catalog);
        if !is_known || !P::is_about(&message, &catalog) {
            return;
        }
        if self.leading.is_some() {
            return self.step(cx, |inner, cx| inner.receive(from, message, cx));
        }
        if P::is_for_all(&message) {
            let (role, inner) = (self.role(), &mut self.inner);
            // Nothing is said about it.
            let _ = self.inside.run(role, cx, |cx| inner.receive(from, message, cx));
            return;
        }
        if P::is_for_any(&message) && self.answer_behind(&message, cx) {
            return;
        }
        let leader = self.inside.leader(self.group);
        let elsewhere = |leader| leader != self.place || !self.is_home(cx);
        if hops < HOPS_MAX && leader.is_some_and(elsewhere) {
            let to = Address { node: cx.me.node, role: self.role() };
            self.inside.pass_on(from, to, hops + 1, message, cx);
        }
    }

    /// After every input: leads or follows, writes down, speaks.
    fn turn(&mut self, cx: &mut Context<'_, P>) {
        self.check_leadership(cx);
        if self.leading.is_none() {
            self.replay_decided(cx);
            self.check_leadership(cx);
        }
        if self.leading.is_some() {
            self.end_configuration(cx);
            self.check_leadership(cx);
        }
        self.ask_round(cx);
        self.write_down(cx);
        self.tell_news(cx);
        self.speak_of_consensus(cx);
        self.release(cx);
    }

    /// Begins a round for the answers that wait for one.
    fn ask_round(&mut self, cx: &mut Context<'_, P>) {
        let (Some(consensus), Some(leading)) = (&self.consensus, &mut self.leading) else { return };
        let ballot = leading.ballot;
        if consensus.leading() != Some(ballot) {
            return; // It is between two configurations.
        }
        if let Some(round) = leading.begin_round() {
            self.tell_others(&Message::Confirm { ballot, round }, cx);
        }
    }

    fn tell_others(&self, message: &Message<P::Message>, cx: &mut Context<'_, P>) {
        for other in self.others(cx) {
            if let Some(to) = self.address_of(other, cx) {
                send_now(to, message.clone(), cx);
            }
        }
    }

    fn release(&mut self, cx: &mut Context<'_, P>) {
        let (Some(consensus), Some(leading)) = (&self.consensus, &mut self.leading) else { return };
        let decided = consensus.decided();
        while let Some(envelope) = leading.release(decided) {
            self.inside.speak(envelope, cx);
        }
    }

    /// Says to everyone that this member leads.
    fn announce(&mut self, cx: &mut Context<'_, P>) {
        let Some(leading) = &self.leading else { return };
        let (group, member, ballot) = (self.group, self.place, leading.ballot);
        self.inside.hear_leader(group, member, ballot);
        let message = Message::Leads { group, member, ballot, epoch: cx.catalog.placement };
        for &node in cx.catalog.coordinators.iter() {
            send_now(Address::coordinator(node), message.clone(), cx);
        }
        for repository in (0..cx.catalog.repositories() as u16).map(RepositoryId) {
            let home = cx.catalog.home(repository);
            let to = Address::repository(home, repository);
            if to != cx.me && home != NodeId::NOWHERE {
                send_now(to, message.clone(), cx);
            }
        }
    }

    fn on_tick(&mut self, cx: &mut Context<'_, P>) {
        cx.set_timer(TICK_TIMER, self.rules.tick);
        self.ticks += 1;
        if !self.is_home(cx) {
            return;
        }
        self.append_lazy(); // Before the tick, which may have another member lead.
        let Some(consensus) = &mut self.consensus else {
            let remembers = self.ledger.look(|standing| standing.formed == Formed::Begun);
            match self.ticks.is_multiple_of(ASK_TICKS) {
                true if remembers => self.say_where(cx),
                true => self.tell_others(&Message::Ask, cx),
                false => {}
            }
            return;
        };
        consensus.tick();
        if let Some(leading) = &mut self.leading {
            leading.tick(consensus.decided(), consensus.accepted());
            let (ballot, round) = (leading.ballot, leading.round_under_way());
            let stalled =
                leading.stalled_ticks > 0 && leading.stalled_ticks.is_multiple_of(STALLED_TICKS);
            if let Some(round) = round {
                self.tell_others(&Message::Confirm { ballot, round }, cx);
            }
            if stalled {
                self.tell_others(&Message::Resync(ballot), cx);
            }
            if self.ticks.is_multiple_of(ANNOUNCE_TICKS) {
                self.announce(cx);
            }
        }
        self.regroup(cx);
        self.compact();
    }

    /// Goes on with a checkpoint, or begins one where there are many entries.
    fn compact(&mut self) {
        let Some(consensus) = &mut self.consensus else { return };
        let decided = consensus.decided();
        match &mut self.compacting {
            None => {
                let covered = self.ledger.look(|standing| standing.image.covers);
                if decided >= covered + self.rules.compact_every {
                    self.compacting = Compacting::begin::<P>(&self.inner, self.applied);
                }
            }
            Some(compacting) => {
                compacting.go_on::<P>(&self.inner, self.applied);
                if let Some((covers, pieces)) = compacting.done(decided) {
                    self.ledger.prepare_image(covers, pieces);
                    consensus.compact(covers);
                    self.compacting = None;
                }
            }
        }
    }
}

impl<P: Protocol> Participant<Grouped<P>> for Replica<P> {
    fn new(id: RepositoryId, settings: &Settings, rules: &Rules<P::Rules>) -> Replica<P> {
        let (group, place) = layout::place(id);
        let inner = P::Participant::new(RepositoryId(group), settings, &rules.inner);
        Replica {
            group,
            place,
            rules: rules.clone(),
            settings: settings.clone(),
            inside: Inside::new(),
            ledger: Ledger::default(),
            consensus: None,
            joining: Joining::default(),
            inner,
            applied: 0,
            lazy: Vec::new(),
            leading: None,
            compacting: None,
            ticks: 0,
            heard: None,
            away: false,
            wanted: Vec::new(),
            parting: Vec::new(),
            ends_with: None,
            asked: None,
            settled: Settled::No,
            written: Written::default(),
            spoke: 0,
        }
    }

    fn start(&mut self, cx: &mut Context<'_, P>) {
        cx.set_timer(TICK_TIMER, self.rules.tick);
        self.wanted = layout::wanted(cx.catalog, self.group);
        if self.is_home(cx) {
            self.take_place(cx);
        }
        self.turn(cx);
    }

    fn placed(&mut self, cx: &mut Context<'_, P>) {
        self.come_or_go(cx);
        self.turn(cx);
    }

    fn receive(&mut self, from: Address, message: Message<P::Message>, cx: &mut Context<'_, P>) {
        let member = self.member_at(from, cx);
        match (message, member) {
            (Message::Inside { from, hops, message }, _) => {
                self.on_inside(from, hops, message, cx);
            }
            (Message::Leads { group, member, ballot, .. }, _) => {
                self.inside.hear_leader(group, member, ballot);
                if group == self.group {
                    self.heard = Some(self.ticks);
                    self.on_at(member, ballot.configuration, cx);
                }
            }
            (Message::Stable(note), _) => {
                if from == cx.me {
                    self.on_note(note);
                }
            }
            (Message::Consensus(configuration, bytes), Some(member)) => {
                if configuration != self.configuration_number() {
                    self.on_at(member, configuration, cx);
                } else if let Some(consensus) = &mut self.consensus {
                    consensus.receive(member, bytes.as_slice());
                }
            }
            (Message::At(configuration), Some(member)) => {
                self.on_learned(member, configuration, cx);
            }
            (Message::Confirm { ballot, round }, Some(_)) => {
                if self.consensus.as_ref().is_some_and(|it| it.ballot() == ballot) {
                    send_now(from, Message::Confirmed { ballot, round }, cx);
                }
            }
            (Message::Confirmed { ballot, round }, Some(member)) => {
                let votes = |it: &Consensus| it.configuration().has(member);
                let votes = self.consensus.as_ref().is_some_and(votes);
                if let Some(leading) = self.leading.as_mut().filter(|_| votes) {
                    leading.confirm(member, ballot, round);
                }
            }
            (Message::Begun(begun), _) => self.on_begun(from.node, begun, cx),
            (Message::Ask, Some(_)) => {
                let standing = self.ledger.look(Standing::clone);
                cx.send(from, Message::Standing(Box::new(standing)));
            }
            (Message::Standing(standing), Some(member)) => {
                self.on_standing(member, *standing, cx);
            }
            (Message::Resync(ballot), Some(_)) => {
                if let Some(it) = self.consensus.as_mut().filter(|it| it.ballot() == ballot) {
                    it.catch_up();
                }
            }
            (
                Message::Consensus(..)
                | Message::At(_)
                | Message::Confirm { .. }
                | Message::Confirmed { .. }
                | Message::Ask
                | Message::Standing(_)
                | Message::Resync(_),
                None,
            )
            // From no member, or for coordinators: whoever sent it here is mistaken.
            | (Message::AskPlacement | Message::AskBegun(_) | Message::Placement { .. }, _) => {}
        }
        self.turn(cx);
    }

    fn timer(&mut self, timer: u32, cx: &mut Context<'_, P>) {
        if timer == TICK_TIMER {
            self.on_tick(cx);
        } else if self.leading.is_some() {
            self.step(cx, |inner, cx| inner.timer(timer - INNER_TIMERS, cx));
        }
        self.turn(cx);
    }

    fn replay(&mut self, record: Record, _: &mut Context<'_, P>) {
        self.ledger.replay(record.0);
    }

    /// All of one moment: what a member knows is its image, which is there already, and entries
    /// that wait to be compacted.
    fn begin_checkpoint(&self) -> Option<Cursor> {
        let mut piece = Vec::new();
        Record(vec![Change::Adopted(self.ledger.look(Standing::clone))]).encode(&mut piece);
        Some(Cursor { first: [piece].into(), ..Cursor::default() })
    }

    fn checkpoint_piece(&self, cursor: &mut Cursor, _: usize, out: &mut Vec<u8>) -> bool {
        let piece = cursor.first.pop_front();
        out.extend_from_slice(piece.as_deref().unwrap_or_default());
        piece.is_some()
    }

    fn restore(&mut self, piece: &[u8], _: &mut Context<'_, P>) -> Result<(), WireError> {
        self.ledger.replay(Record::decode_all(piece)?.0);
        Ok(())
    }

    fn in_doubt(&self) -> usize {
        let heard = self.heard.is_some_and(|heard| heard + SILENT_TICKS >= self.ticks);
        match &self.leading {
            Some(leading) => {
                let others = usize::from(!self.is_as_wanted());
                self.inner.in_doubt() + leading.waiting() + others
            }
            None if self.away => 0,
            None if !self.wanted.contains(&self.place) => 0,
            None => usize::from(!heard || !self.takes_part()),
        }
    }

    fn post(&self) -> Post {
        match self.leading {
            _ if self.away => Post::Away,
            _ if self.joining.is_lost() => Post::Lost,
            _ if self.consensus.is_none() && self.is_left_out() => Post::Leaves,
            _ if self.consensus.is_none() || self.settled != Settled::Yes => Post::Joins,
            _ if !self.takes_part() => Post::Regroups,
            Some(_) => Post::Leads,
            None => Post::Follows,
        }
    }

    fn chains(&self, catalog: &Catalog) -> Vec<(SpaceId, SmallBytes, Vec<Timestamp>)> {
        match self.leading {
            Some(_) => self.inner.chains(&layout::inner(catalog)),
            None => Vec::new(),
        }
    }
}
