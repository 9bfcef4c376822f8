//! Generalized Paxos (Lamport, "Generalized Consensus and Paxos", 2005), which the dissertation
//! compares with (Turcu 2015, chapters 9 and 10).
//!
//! # The idea
//! What members agree on is an order of those commands that conflict. Who takes a command asks all
//! to *vote*: each appends it to what it has, after all that conflicts with it there, and says so
//! to the proposer and to the leader. Where a fast quorum has the same before it, it is *learned*,
//! after two message delays. Where they do not agree, the leader *orders* it: a majority accepts
//! that, and it is learned after four. Commands that depend on each other are delivered by their
//! names.
//!
//! # Ballots
//! A ballot is of all commands, and one member leads it: the first one a placed member. Each
//! member votes at most once on a command in a ballot, and the leader orders it at most once. Its
//! order counts after the votes, which are to it what answers of phase 1 are: it is a ballot of its
//! own right after the fast one, whose leader knows from a majority how they voted ("coordinated
//! recovery", Lamport 2006, Fast Paxos, 3.2). Who finds that commands do not come to their end
//! begins the next ballot: it asks all what they have, keeps what may have been chosen (`ballot/
//! choose.rs`), orders the rest of what a majority knows, and has members vote on new commands once
//! they know that.
//!
//! # Why members agree
//! Fast quorums have f members, classic ones q, of n, with 2 f + q > 2 n. So at most one set of
//! dependencies can have so many votes of a classic quorum that it may be chosen; that one is kept.
//! Of two commands that conflict one comes after the other:
//!
//! * Both were learned at once: some member has voted on both, one after the other.
//! * One was ordered. Its leader leaves out another one only if so many voted on it before that one
//!   that the other is not chosen without it, now or in this ballot; and it has not ordered that
//!   one without it (`keeps_own_order`).
//! * One was kept by the leader, as it may have been chosen. So many voted on it without the other
//!   one that this one is not chosen at once without it; and had the leader ordered this one
//!   without it before, it would not have kept it so, as then it was not chosen.
//!
//! In a new ballot all are chosen from the same majority's answers, the latest ballot first, then
//! what leaders ordered: what contradicts one that comes before it here was not chosen. Each member
//! that votes in it has a place for all of these, names them, and votes on none of them.
//!
//! # Where it departs from the paper
//! The structure that grows is not sent again and again: each command has its own vote, of the
//! commands right before it. What all have delivered is in no vote, as it comes before everything.
//! The leader need not begin a ballot to order what members do not agree on. Who knows nothing of a
//! command that others depend on says that it will not vote on it; if a majority does, it is
//! nothing, and its proposer may propose it anew. Members that did not vote in time are not waited
//! for until they are there again. Messages that are lost are said again, members that crashed come
//! back with what they had written down, what was missed is asked for, and what all have delivered
//! is forgotten.

mod ballot;
mod checkpoint;
mod collect;
mod gather;
mod judge;
mod learn;
pub mod message;
mod resolve;
mod switches;
mod vote;
mod voted;
mod watch;

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::{Nanos, Rejection};

use crate::broadcast::{Broadcast, BroadcastSettings};
use crate::command::{Command, CommandId, MemberId};
use crate::conflicts::ConflictIndex;
use crate::dependencies::OrderedAfter;
use crate::effects::BroadcastEffects;
use crate::id_set::IdSet;
use crate::member::checkpoint::CheckpointError;
use crate::member::due_times::DueTimes;
use crate::member::judge::NameJudge;
use crate::member::led::LedCommands;
use crate::member::own::OwnCommands;
use crate::member::{assert_is_of, members_alike};
use crate::progress::DeliveryProgress;
use crate::quorums::Quorums;
use crate::reports::DeliveryReports as _;
use ballot::{BallotState, PreparedAnswer};
use gather::GatheredVotes;
use message::{LearningPhase, Message, Record};
pub use switches::{GeneralizedSwitch, Switches};
use voted::VotedCommand;

/// What this broadcast wants done.
type Effects = BroadcastEffects<Message, Record>;

/// A member of Generalized Paxos.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Generalized {
    me: MemberId,
    quorums: Quorums,
    settings: BroadcastSettings,
    switches: Switches,
    /// What this member itself proposed.
    own: OwnCommands,
    instances: BTreeMap<CommandId, VotedCommand>,
    /// Those of them whose content is known, and something.
    index: ConflictIndex,
    /// Those of these that are learned, or ordered in this ballot.
    fixed: ConflictIndex,
    ballot: BallotState,
    gathering: LedCommands<GatheredVotes>,
    /// Who has not voted in time, and was silent since.
    silent: BTreeSet<MemberId>,
    /// When somebody is to see to commands that are not learned.
    suspected: DueTimes<CommandId>,
    /// By a command that is not learned: those that wait for it.
    awaited: BTreeMap<CommandId, BTreeSet<CommandId>>,
    progress: DeliveryProgress,
}

impl Generalized {
    /// How many commands it knows, those that are delivered and may be asked for still among them.
    pub fn known(&self) -> usize {
        self.instances.len()
    }

    /// Commands that were delivered here, or are nothing.
    pub fn delivered(&self) -> &IdSet {
        self.progress.delivered()
    }

    /// What a command says and comes after, if that is final and known. What all had delivered
    /// before it may be left out.
    pub fn learned(&self, id: CommandId) -> Option<OrderedAfter> {
        let instance = self.instances.get(&id).filter(|it| it.is_learned())?;
        Some(instance.stored.ordered())
    }

    /// Which commands others may name.
    fn names(&self) -> NameJudge<'_> {
        NameJudge { members: self.quorums.members, own: &self.own }
    }

    fn keeps(&self, switch: GeneralizedSwitch) -> bool {
        self.switches.keeps(switch)
    }

    fn send_to_others(&self, message: &Message, out: &mut Effects) {
        for to in self.me.others(self.quorums.members) {
            out.send(to, message.clone());
        }
    }

    /// When this member is to see to a command that is heard of now: its proposer and the leader
    /// come first.
    fn suspicion(&self, id: CommandId, attempts: u32, now: Nanos) -> Nanos {
        match id.leader == self.me {
            true => self.me.due(self.quorums.members, id, (self.settings.suspect_after, 0), now),
            false => self.leader_suspicion(attempts, now),
        }
    }

    /// When this member is to begin a ballot, if a command does not come on from now: one member
    /// after the other, as they come after the leader, and later each time.
    fn leader_suspicion(&self, attempts: u32, now: Nanos) -> Nanos {
        let after = (self.settings.suspect_after, attempts);
        let by_leader = CommandId { leader: self.ballot.current.member, sequence: 1 };
        self.me.due(self.quorums.members, by_leader, after, now)
    }

    /// The entry of a command that not all members have delivered.
    fn instance(&mut self, id: CommandId, now: Nanos) -> &mut VotedCommand {
        assert!(!self.progress.is_collected(id), "{id} was delivered everywhere");
        let suspected = self.suspicion(id, 0, now);
        let first = BallotState::first(self.switches.leader).current;
        self.instances.entry(id).or_insert_with(|| {
            self.suspected.add(id, suspected);
            VotedCommand::new(first, suspected)
        })
    }

    /// Whether somebody speaks of a command whose end is known here, and learns it.
    fn is_answered_late(&mut self, from: MemberId, id: CommandId, out: &mut Effects) -> bool {
        if self.progress.is_collected(id) {
            return true;
        }
        let value = self.learned(id);
        let is_over = value.is_some();
        if let Some(value) = value {
            out.send(from, Message::Learned { id, value });
        }
        is_over
    }

    /// A command has come on, and is left to others for another while.
    fn postpone(&mut self, id: CommandId, now: Nanos) {
        let attempts = self.instance(id, now).attempts;
        let suspected = self.suspicion(id, attempts, now);
        let instance = self.instance(id, now);
        let before = std::mem::replace(&mut instance.suspected, suspected);
        self.suspected.remove(id, before);
        self.suspected.add(id, suspected);
    }

    /// What a command says is known.
    fn know(&mut self, id: CommandId, command: &Command) {
        let instance = self.instances.get(&id).expect("a command that has come somewhere");
        if instance.stored.value.command.as_ref() != Some(command) {
            self.forget_content(id);
            self.index.insert(id, &command.objects, 0);
            let instance = self.instances.get_mut(&id).expect("found above");
            instance.stored.value.command = Some(command.clone());
            instance.stored.phase = instance.stored.phase.max(LearningPhase::Known);
        }
        self.fix(id);
    }

    /// What a command says is of no interest any more.
    fn forget_content(&mut self, id: CommandId) {
        let instance = self.instances.get_mut(&id).expect("a command that has come somewhere");
        let is_fixed = std::mem::take(&mut instance.is_fixed);
        if let Some(command) = instance.stored.value.command.take() {
            self.index.remove(id, &command.objects);
            if is_fixed {
                self.fixed.remove(id, &command.objects);
            }
        }
    }

    /// A command has a place here: this member need not wait for that before it votes.
    fn find_missing(&mut self, id: CommandId) {
        if let Some(missing) = &mut self.ballot.missing {
            missing.remove(id);
        }
    }

    /// Whether others are ordered by where a command is may have changed.
    fn fix(&mut self, id: CommandId) {
        let instance = self.instances.get_mut(&id).expect("a command that has come somewhere");
        let is_fixed = instance.fixes(self.ballot.current);
        if std::mem::replace(&mut instance.is_fixed, is_fixed) == is_fixed {
            return;
        }
        if let Some(command) = &instance.stored.value.command {
            match is_fixed {
                true => self.fixed.insert(id, &command.objects, 0),
                false => self.fixed.remove(id, &command.objects),
            }
        }
    }

    /// Writes down, and does, what is to be done again after a crash.
    fn store(&mut self, record: Record, out: &mut Effects) {
        let had_started = self.has_started();
        out.log(record.clone());
        self.apply(record, out);
        if !had_started && self.has_started() {
            self.vote_on_all(out);
        }
    }

    /// Does what a record says.
    fn apply(&mut self, record: Record, out: &mut Effects) {
        match record {
            Record::Known { id, command } => {
                self.own.take(id, &command);
                self.postpone(id, out.now);
                self.know(id, &command);
            }
            Record::Voted { id, ballot, value } => self.apply_vote(id, ballot, value, out),
            Record::Refused { id, ballot } => {
                self.postpone(id, out.now);
                self.instance(id, out.now).refused = Some(ballot);
            }
            Record::Accepted { id, ballot, value } => self.apply_accept(id, ballot, value, out),
            Record::Learned { id, value } => self.apply_learned(id, value, out),
            Record::Prepared { ballot } => self.join(ballot, out.now),
            Record::Started { ballot, missing } => self.apply_start(ballot, missing, out.now),
            Record::Collected { upto } => self.apply_collection(&upto),
        }
    }
}

impl Broadcast for Generalized {
    const NAME: &'static str = "generalized";
    type Message = Message;
    type Record = Record;
    type Switches = Switches;

    fn new(
        me: MemberId,
        members: usize,
        settings: &BroadcastSettings,
        switches: &Switches,
    ) -> Generalized {
        assert_is_of(me, members);
        assert!(switches.leader.place() < members, "leader {} of {members}", switches.leader.0);
        let quorums = match switches.keeps(GeneralizedSwitch::FreeVoteQuorums) {
            true => Quorums::of_free_votes(members),
            false => Quorums::printed(members),
        };
        Generalized {
            me,
            quorums,
            settings: settings.clone(),
            switches: switches.clone(),
            own: OwnCommands::new(me),
            instances: BTreeMap::new(),
            index: ConflictIndex::default(),
            fixed: ConflictIndex::default(),
            ballot: BallotState::first(switches.leader),
            gathering: LedCommands::new(),
            silent: BTreeSet::new(),
            suspected: DueTimes::new(),
            awaited: BTreeMap::new(),
            progress: DeliveryProgress::new(me, members),
        }
    }

    fn propose(&mut self, command: Command, out: &mut Effects) -> CommandId {
        let id = self.own.name();
        assert!(!self.instances.contains_key(&id), "{id} was proposed before");
        self.begin_vote(id, command, out);
        id
    }

    fn orders_everything(&self) -> bool {
        true
    }

    members_alike!();

    fn judge(&self, from: MemberId, message: &Message) -> Result<(), Rejection> {
        judge::judge(&self.judge_of_votes(), from, message)
    }

    fn receive(&mut self, from: MemberId, message: Message, out: &mut Effects) {
        self.silent.remove(&from);
        self.observe(from);
        match message {
            Message::Propose { id, command, vote } => {
                self.on_propose(from, id, (command, vote), out);
            }
            Message::Vote { id, vote, command } => self.on_vote(from, id, (vote, command), out),
            Message::Ask { id, ballot, command } => self.on_ask(from, (id, ballot), command, out),
            Message::Refuse { id, ballot } => self.on_refuse(from, (id, ballot), out),
            Message::Accept { id, ballot, value } => {
                self.on_accept(from, (id, ballot), value, out);
            }
            Message::AckAccept { id, ballot } => self.count_accept(from, (id, ballot), out),
            Message::Learned { id, value } => self.on_learned(id, value, out),
            Message::Prepare { ballot, ended, after } => {
                self.on_prepare(from, ballot, (&ended, after), out);
            }
            Message::Prepared { ballot, after, next, collected, stored } => {
                let answer = PreparedAnswer { next, collected, stored };
                self.on_prepared(from, (ballot, after), answer, out);
            }
            Message::Start { ballot, known } => self.on_start(from, ballot, &known, out),
            Message::Started { ballot, missing } => self.on_started(from, ballot, &missing, out),
            Message::Superseded { ballot } => self.on_superseded(ballot),
            Message::Delivered { delivered } => self.on_delivered(from, delivered, out),
            Message::Missing { ended } => self.on_missing(from, &ended, out),
        }
    }

    fn tick(&mut self, out: &mut Effects) {
        self.ask_again(out);
        self.see_to_suspected(out);
        self.report(out);
    }

    fn recover(&mut self, id: CommandId, out: &mut Effects) {
        self.take_over(id, out);
    }

    fn assert_invariants(&self) {
        for (id, instance) in &self.instances {
            assert!(!self.progress.is_collected(*id), "{id} was forgotten");
            instance.assert_invariants(*id);
            assert_eq!(instance.fixes(self.ballot.current), instance.is_fixed, "{id}");
            let is_delivered = self.progress.is_delivered(*id);
            assert!(!is_delivered || instance.is_learned(), "{id} was delivered: {instance:?}");
            let waits = instance.is_learned() && !is_delivered;
            assert_eq!(waits, instance.awaits.is_some(), "{id} waits for nothing: {instance:?}");
        }
        for (awaited, waiting) in &self.awaited {
            assert!(!self.is_learned(*awaited), "{waiting:?} wait for {awaited}, which is over");
        }
        let open = self.instances.iter().filter(|(_, instance)| !instance.is_learned());
        self.suspected.assert_are(open.map(|(id, instance)| (instance.suspected, *id)));
        assert!(self.gathering.iter().all(|(id, _)| self.instances.contains_key(&id)));
        self.gathering.assert_invariants();
        self.own.assert_invariants();
        self.progress.assert_invariants();
    }
}
