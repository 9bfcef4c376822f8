//! Partial Order Broadcast of Alvin (Turcu 2015, section 9.2.1 and appendix A.1).
//!
//! # The idea
//! Who takes a command *proposes* a position above all that it has seen. Each member answers with
//! that position, or with a higher one where it knows a conflicting command as high, and with the
//! conflicting commands that it knows: the command's *dependencies*. With the highest position of
//! a majority, and all dependencies that these named, the leader has a majority *accept* it; they
//! add what they have come to know meanwhile. Then it is *stable*. A stable command is delivered
//! once its dependencies are, but for those that are stable with higher positions: these wait for
//! it.
//!
//! With [decisions at once](Switches::fast) the second round trip is left out where enough members
//! answer with just the position that was proposed.
//!
//! # Why the order is one
//! Of two commands that conflict let T be the one with the lower final position. Then T is among
//! the dependencies with which the other one, T', is announced. For the majority that T was
//! proposed to and the majority that accepted T' have a member in common. If that met T first, it
//! named T when it accepted T'. If it had T' already, it answered T with a position above the one
//! that T' had; and had T' come to a higher one since, T' would have met T there. So T' waits for T
//! everywhere. Positions need to be agreed on, and dependencies do not: two leaders of one command
//! may announce different ones, but all that lie below are in both.
//!
//! Positions of one command agree as in Paxos, each command by itself: epochs, a promise before
//! anything of a later one is taken, and of what others have accepted the position of the latest
//! epoch. A position that was decided at once nobody has accepted. Who takes the command over finds
//! it in the answers of enough members, if its leader is not among those who answer; fast quorums
//! are so large ([`Quorums`]) that with the leader these are a majority, which is all that the
//! argument above needs, whether or not the position had been decided.
//!
//! # Where it departs from the paper
//! As printed several steps are wrong, and others are left open. Each rule of [`PobSwitch`] is one
//! step; the table in `docs/inside/broadcast.md` says what the paper has there, and what is found
//! without it. Besides:
//! answers are counted by member; positions may be the same, and then names decide; members that do
//! not have the command's content agree that it is to be nothing; what is lost is said again; what
//! was missed is asked for; commands are forgotten that every member has said it has delivered.
//!
//! # What is stored
//! All that a member has said of a command is in its [records](message::Record) before it says it.
//! Who is asked for what, and what was answered, is not: a member that comes back leads nothing,
//! and takes its commands over like those of others.

mod accept;
mod checkpoint;
mod collect;
mod deliver;
pub mod entry;
mod judge;
mod leading;
pub mod message;
mod propose;
mod recover;
mod stable_order;
mod switches;

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::{Nanos, Rejection};

use crate::broadcast::{Broadcast, BroadcastSettings};
use crate::command::{Command, CommandId, MemberId};
use crate::conflicts::ConflictIndex;
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
use entry::{CommandContent, CommandEpoch, KnownCommand};
use leading::LedCommand;
use message::{Message, Record};
use stable_order::StableOrder;
pub use switches::{PobSwitch, Switches};

/// What this broadcast wants done.
type Effects = BroadcastEffects<Message, Record>;

/// A member of Partial Order Broadcast.
///
/// Invariants: each command that is stable and not delivered waits for one of its dependencies;
/// commands that were delivered everywhere are not there any more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pob {
    me: MemberId,
    quorums: Quorums,
    settings: BroadcastSettings,
    switches: Switches,
    /// What this member itself proposed.
    own: OwnCommands,
    /// No position that was seen is higher.
    highest: u64,
    entries: BTreeMap<CommandId, KnownCommand>,
    /// Those of them whose content is known, and something.
    index: ConflictIndex,
    leading: LedCommands<LedCommand>,
    /// When commands that are not stable are to be taken over.
    suspected: DueTimes<CommandId>,
    /// Commands that are stable and not delivered.
    stable: StableOrder,
    /// By a command that is not delivered: those stable that wait for it.
    waiting: BTreeMap<CommandId, BTreeSet<CommandId>>,
    progress: DeliveryProgress,
    /// No position of what is forgotten was higher.
    floor: u64,
}

impl Pob {
    /// How many commands it knows, those that are delivered and may be asked for still among them.
    pub fn known(&self) -> usize {
        self.entries.len()
    }

    /// Commands that were delivered here, or are nothing.
    pub fn delivered(&self) -> &IdSet {
        self.progress.delivered()
    }

    /// The final position of a command, if it is known; that of nothing, too.
    pub fn final_position(&self, id: CommandId) -> Option<(u64, Option<&Command>)> {
        let entry = self.entries.get(&id).filter(|entry| entry.is_stable())?;
        Some((entry.stored.position, entry.stored.content.command()))
    }

    /// Which commands others may name.
    fn names(&self) -> NameJudge<'_> {
        NameJudge { members: self.quorums.members, own: &self.own }
    }

    fn keeps(&self, switch: PobSwitch) -> bool {
        self.switches.keeps(switch)
    }

    fn others(&self) -> impl Iterator<Item = MemberId> + use<> {
        self.me.others(self.quorums.members)
    }

    fn send_to_others(&self, message: &Message, out: &mut Effects) {
        for to in self.others() {
            out.send(to, message.clone());
        }
    }

    /// When a command is to be taken over that is heard of now: by one member after the other, as
    /// they come after its leader, and later each time.
    fn suspicion(&self, id: CommandId, attempts: u32, now: Nanos) -> Nanos {
        let attempts = if self.keeps(PobSwitch::BacksOff) { attempts } else { 0 };
        let after = (self.settings.suspect_after, attempts);
        let by = if self.keeps(PobSwitch::RanksMembers) { self.me } else { id.leader };
        by.due(self.quorums.members, id, after, now)
    }

    /// The entry of a command that not all members have delivered.
    fn entry(&mut self, id: CommandId, now: Nanos) -> &mut KnownCommand {
        assert!(!self.progress.is_collected(id), "{id} was delivered everywhere");
        let suspected = self.suspicion(id, 0, now);
        self.entries.entry(id).or_insert_with(|| {
            self.suspected.add(id, suspected);
            KnownCommand::new(id, suspected)
        })
    }

    /// Writes down, and does, what is to be done again after a crash.
    fn store(&mut self, record: Record, out: &mut Effects) {
        if self.writes(&record) {
            out.log(record.clone());
        }
        self.apply(record, out);
    }

    /// Whether a record is written down: each is, unless a test leaves it out.
    fn writes(&self, record: &Record) -> bool {
        match record {
            Record::Promised { .. } => self.keeps(PobSwitch::WritesEpochs),
            Record::Proposed { .. } => self.keeps(PobSwitch::WritesProposals),
            Record::Accepted(_) => self.keeps(PobSwitch::WritesAccepted),
            Record::Stable(_) => self.keeps(PobSwitch::WritesStable),
            Record::Collected { .. } => true,
        }
    }

    /// Does what a record says.
    fn apply(&mut self, record: Record, out: &mut Effects) {
        match record {
            Record::Promised { id, epoch } => self.apply_promise(id, epoch, out.now),
            Record::Proposed { answer, position } => {
                self.apply_proposal(answer, position, out.now);
            }
            Record::Accepted(accept) => self.apply_accept(accept, out.now),
            Record::Stable(stable) => self.apply_stable(stable, out),
            Record::Collected { upto, floor } => self.apply_collection(&upto, floor),
        }
    }

    /// A command that is led here, for an answer that was given in this epoch.
    fn led_in(&mut self, id: CommandId, epoch: CommandEpoch) -> Option<&mut LedCommand> {
        let any = !self.keeps(PobSwitch::CountsOneEpoch);
        self.leading.get_mut(id).filter(|leading| any || leading.epoch == epoch)
    }

    /// A command has come on, and is left to its leader for another while.
    fn come_on(&mut self, id: CommandId, epoch: CommandEpoch, now: Nanos) -> &mut KnownCommand {
        self.postpone(id, now);
        let entry = self.entry(id, now);
        entry.epoch = entry.epoch.max(epoch);
        entry
    }

    /// A command that is not stable is left to its leader for another while.
    fn postpone(&mut self, id: CommandId, now: Nanos) {
        let attempts = self.entry(id, now).attempts;
        let suspected = self.suspicion(id, attempts, now);
        let entry = self.entry(id, now);
        let before = std::mem::replace(&mut entry.suspected, suspected);
        self.suspected.remove(id, before);
        self.suspected.add(id, suspected);
    }

    /// What a command says is known from now on, and where it is at present.
    fn place(&mut self, id: CommandId, position: u64) {
        self.highest = self.highest.max(position);
        let entry = self.entries.get(&id).expect("a command that has come somewhere");
        match &entry.stored.content {
            CommandContent::Command(command) => self.index.insert(id, &command.objects, position),
            CommandContent::Nothing | CommandContent::Unknown => {}
        }
    }
}

impl Broadcast for Pob {
    const NAME: &'static str = "pob";
    type Message = Message;
    type Record = Record;
    type Switches = Switches;

    fn new(me: MemberId, members: usize, settings: &BroadcastSettings, switches: &Switches) -> Pob {
        assert_is_of(me, members);
        Pob {
            me,
            quorums: switches.quorums(members),
            settings: settings.clone(),
            switches: switches.clone(),
            own: OwnCommands::new(me),
            highest: 0,
            entries: BTreeMap::new(),
            index: ConflictIndex::default(),
            leading: LedCommands::new(),
            suspected: DueTimes::new(),
            stable: StableOrder::default(),
            waiting: BTreeMap::new(),
            progress: DeliveryProgress::new(me, members),
            floor: 0,
        }
    }

    fn propose(&mut self, command: Command, out: &mut Effects) -> CommandId {
        let id = self.own.name();
        assert!(!self.entries.contains_key(&id), "{id} was proposed before");
        self.begin_proposal(id, CommandEpoch::first(id), command, out);
        id
    }

    fn orders_everything(&self) -> bool {
        true
    }

    members_alike!();

    fn judge(&self, from: MemberId, message: &Message) -> Result<(), Rejection> {
        judge::judge(self.names(), from, message)
    }

    fn receive(&mut self, from: MemberId, message: Message, out: &mut Effects) {
        match message {
            Message::Propose(propose) => self.on_propose(from, propose, out),
            Message::AckPropose { id, epoch, position, dependencies } => {
                self.on_ack_propose(from, (id, epoch), (position, dependencies), out);
            }
            Message::Accept(accept) => self.on_accept(from, accept, out),
            Message::AckAccept { id, epoch, dependencies } => {
                self.on_ack_accept(from, (id, epoch), dependencies, out);
            }
            Message::Stable(stable) => self.on_stable(stable, out),
            Message::Prepare { id, epoch } => self.on_prepare(from, (id, epoch), out),
            Message::Promise { id, epoch, stored } => {
                self.on_promise(from, (id, epoch), stored, out);
            }
            Message::Superseded { id, epoch } => self.on_superseded(id, epoch, out.now),
            Message::Delivered { delivered } => self.on_delivered(from, delivered, out),
            Message::Missing { ended } => {
                if self.keeps(PobSwitch::ShowsMissed) {
                    self.on_missing(from, &ended, out);
                }
            }
        }
    }

    fn tick(&mut self, out: &mut Effects) {
        self.ask_again(out);
        self.recover_suspected(out);
        self.report(out);
    }

    fn recover(&mut self, id: CommandId, out: &mut Effects) {
        self.take_over(id, out);
    }

    fn assert_invariants(&self) {
        for (id, entry) in &self.entries {
            entry.assert_invariants(*id);
            assert!(!self.progress.is_collected(*id), "{id} was forgotten");
            assert!(entry.stored.position <= self.highest, "{id} is higher than all: {entry:?}");
            let is_delivered = self.progress.is_delivered(*id);
            assert!(!is_delivered || entry.is_stable(), "{id} was delivered: {entry:?}");
            let is_led = self.leading.contains(*id);
            assert!(!is_led || !entry.is_stable(), "{id} is led after its end");
        }
        for (id, leading) in self.leading.iter() {
            let entry = self.entries.get(&id).expect("who leads has an entry");
            assert!(leading.epoch <= entry.epoch, "{id} is led without a promise: {leading:?}");
            assert_eq!(leading.epoch.member, self.me, "{id} is led in another's epoch");
            let answers = leading.has_answer_of(self.me) || !self.keeps(PobSwitch::OwnPromise);
            assert!(answers, "who leads {id} has not answered itself");
        }
        let open = self.entries.iter().filter(|(_, entry)| !entry.is_stable());
        self.suspected.assert_are(open.map(|(id, entry)| (entry.suspected, *id)));
        self.leading.assert_invariants();
        self.assert_waiting();
        self.own.assert_invariants();
        self.progress.assert_invariants();
    }
}
