//! EPaxos as Ryabinin, Gotsman and Sutra repaired it (EPaxos*, OPODIS 2025), of Moraru, Andersen
//! and Kaminsky's Egalitarian Paxos (SOSP 2013).
//!
//! # The idea
//! Who takes a command asks all what they know that conflicts with it. If enough members know no
//! more than it does itself, the command is *committed* with these *dependencies*, after two
//! message delays; else it goes with all that a majority named, once a majority has *accepted*
//! that. Of two commands that conflict one is a dependency of the other. A member executes a
//! command once all that it depends on is committed, directly or not: the dependencies first, and
//! commands that depend on each other by their names.
//!
//! # Why members agree
//! On the dependencies of each command they agree as in Paxos, by ballots. What was committed at
//! once nobody has accepted: who takes the command over finds enough members that have it as its
//! proposer wanted. But these are too few to be sure. So it asks those who have answered which
//! other commands conflict with it of which neither comes after the other. If there are none, its
//! dependencies are kept. One that is committed shows that the command was not; so does one whose
//! own proposer cannot have committed it at once. Else it *waits* until the other is committed.
//! Two that wait for each other tell how many members had them as wanted, by which one of them
//! gives up. A command that is given up is nothing, and its proposer may propose it anew.
//!
//! # Where it departs from the paper
//! Messages that are lost are said again, members that crashed come back with what they had
//! written down, what was missed is asked for, and what all have delivered is forgotten. Members
//! answer the proposer's own ballot for as long as they have promised no other.

mod accept;
mod checkpoint;
mod collect;
mod execute;
mod instance;
mod judge;
mod leader;
pub mod message;
mod preaccept;
mod recover;
mod switches;

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
use instance::Instance;
use leader::LedInstance;
use message::{CommandBallot, Message, Record};
pub use switches::{EpaxosSwitch, Switches};

/// What this broadcast wants done.
type Effects = BroadcastEffects<Message, Record>;

/// A member of EPaxos.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Epaxos {
    me: MemberId,
    quorums: Quorums,
    /// So many members may be slow, or dead, where commands are committed at once.
    slow: usize,
    settings: BroadcastSettings,
    switches: Switches,
    /// What this member itself proposed.
    own: OwnCommands,
    instances: BTreeMap<CommandId, Instance>,
    /// Those of them whose content is known, and something.
    index: ConflictIndex,
    /// The same by what their proposers say that they say.
    initial_index: ConflictIndex,
    leading: LedCommands<LedInstance>,
    /// By a command: those led here that wait until it is known whether it is in their way.
    blocked: BTreeMap<CommandId, BTreeSet<CommandId>>,
    /// So many members had commands that others lead, and that wait so, as their proposers wanted.
    others_waiting: BTreeMap<CommandId, u16>,
    /// When commands that are not committed are to be taken over.
    suspected: DueTimes<CommandId>,
    /// By a command that is not committed: those that wait for it.
    awaited: BTreeMap<CommandId, BTreeSet<CommandId>>,
    progress: DeliveryProgress,
}

impl Epaxos {
    /// How many commands it knows, those that are delivered and may be asked for still among them.
    pub fn known(&self) -> usize {
        self.instances.len()
    }

    /// Commands that were delivered here, or are nothing.
    pub fn delivered(&self) -> &IdSet {
        self.progress.delivered()
    }

    /// What a command says and comes after, if that is final and known.
    pub fn committed(&self, id: CommandId) -> Option<&OrderedAfter> {
        let instance = self.instances.get(&id).filter(|it| it.is_committed())?;
        Some(&instance.stored.value)
    }

    /// Which commands others may name.
    fn names(&self) -> NameJudge<'_> {
        NameJudge { members: self.quorums.members, own: &self.own }
    }

    fn keeps(&self, switch: EpaxosSwitch) -> bool {
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
    /// they come after its proposer, and later each time.
    fn suspicion(&self, id: CommandId, attempts: u32, now: Nanos) -> Nanos {
        let after = (self.settings.suspect_after, attempts);
        self.me.due(self.quorums.members, id, after, now)
    }

    /// The entry of a command that not all members have delivered.
    fn instance(&mut self, id: CommandId, now: Nanos) -> &mut Instance {
        assert!(!self.progress.is_collected(id), "{id} was delivered everywhere");
        let suspected = self.suspicion(id, 0, now);
        self.instances.entry(id).or_insert_with(|| {
            self.suspected.add(id, suspected);
            Instance::new(id, suspected)
        })
    }

    /// Whether a request of a ballot comes too late to be granted: the command has ended, or a
    /// later ballot is promised, and whoever asked learns it.
    fn is_answered_late(
        &mut self,
        from: MemberId,
        (id, ballot): (CommandId, CommandBallot),
        out: &mut Effects,
    ) -> bool {
        if self.progress.is_collected(id) {
            return true;
        }
        let instance = self.instance(id, out.now);
        if instance.is_committed() {
            let value = instance.stored.value.clone();
            out.send(from, Message::Commit { id, value });
            return true;
        }
        let promised = instance.ballot;
        if ballot < promised {
            out.send(from, Message::Superseded { id, ballot: promised });
        }
        ballot < promised
    }

    /// A command has come on, and is left to its leader for another while.
    fn come_on(&mut self, id: CommandId, ballot: CommandBallot, now: Nanos) -> &mut Instance {
        self.postpone(id, now);
        let instance = self.instance(id, now);
        instance.ballot = instance.ballot.max(ballot);
        instance
    }

    /// A command that is not committed is left to its leader for another while.
    fn postpone(&mut self, id: CommandId, now: Nanos) {
        let attempts = self.instance(id, now).attempts;
        let suspected = self.suspicion(id, attempts, now);
        let instance = self.instance(id, now);
        let before = std::mem::replace(&mut instance.suspected, suspected);
        self.suspected.remove(id, before);
        self.suspected.add(id, suspected);
    }

    /// What a command's proposer says that it says.
    fn set_initial(&mut self, id: CommandId, command: Option<Command>) {
        let instance = self.instances.get_mut(&id).expect("a command that has come somewhere");
        if let Some(command) = &command {
            self.initial_index.insert(id, &command.objects, 0);
        }
        let before = std::mem::replace(&mut instance.initial_command, command);
        let changed = before.filter(|before| {
            let now = instance.initial_command.as_ref();
            now.is_none_or(|now| now.objects != before.objects)
        });
        if let Some(before) = changed {
            self.initial_index.remove(id, &before.objects);
            if let Some(command) = &instance.initial_command {
                self.initial_index.insert(id, &command.objects, 0);
            }
        }
    }

    /// What is known to conflict with a command.
    fn conflicts(&self, id: CommandId, command: &Command) -> IdSet {
        let mut conflicts = self.index.of(id, &command.objects).ids;
        self.progress.remove_collected(&mut conflicts);
        conflicts
    }

    /// What a command says is another thing from now on.
    fn set_value(&mut self, id: CommandId, mut value: OrderedAfter) {
        value.dependencies.remove(id);
        let instance = self.instances.get_mut(&id).expect("a command that has come somewhere");
        let before = std::mem::replace(&mut instance.stored.value, value);
        if let Some(command) = before.command {
            self.index.remove(id, &command.objects);
        }
        if let Some(command) = &instance.stored.value.command {
            self.index.insert(id, &command.objects, 0);
        }
    }

    /// Writes down, and does, what is to be done again after a crash.
    fn store(&mut self, record: Record, out: &mut Effects) {
        out.log(record.clone());
        self.apply(record, out);
    }

    /// Does what a record says.
    fn apply(&mut self, record: Record, out: &mut Effects) {
        match record {
            Record::PreAccepted { id, value, initial } => {
                self.apply_pre_accept(id, value, initial, out.now);
            }
            Record::Promised { id, ballot } => _ = self.come_on(id, ballot, out.now),
            Record::Validated { id, value } => self.apply_validation(id, value, out.now),
            Record::Accepted { id, ballot, value } => {
                self.apply_accept(id, ballot, value, out.now);
            }
            Record::Committed { id, value } => self.apply_commit(id, value, out),
            Record::Collected { upto } => self.apply_collection(&upto),
        }
    }
}

impl Broadcast for Epaxos {
    const NAME: &'static str = "epaxos";
    type Message = Message;
    type Record = Record;
    type Switches = Switches;

    fn new(
        me: MemberId,
        members: usize,
        settings: &BroadcastSettings,
        switches: &Switches,
    ) -> Epaxos {
        assert_is_of(me, members);
        let quorums = Quorums::of(members);
        Epaxos {
            me,
            quorums,
            slow: leader::slow(&quorums),
            settings: settings.clone(),
            switches: switches.clone(),
            own: OwnCommands::new(me),
            instances: BTreeMap::new(),
            index: ConflictIndex::default(),
            initial_index: ConflictIndex::default(),
            leading: LedCommands::new(),
            blocked: BTreeMap::new(),
            others_waiting: BTreeMap::new(),
            suspected: DueTimes::new(),
            awaited: BTreeMap::new(),
            progress: DeliveryProgress::new(me, members),
        }
    }

    fn propose(&mut self, command: Command, out: &mut Effects) -> CommandId {
        let id = self.own.name();
        assert!(!self.instances.contains_key(&id), "{id} was proposed before");
        self.begin_pre_accept(id, command, out);
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
            Message::PreAccept { id, command, dependencies } => {
                self.on_pre_accept(from, id, (command, dependencies), out);
            }
            Message::AckPreAccept { id, dependencies } => {
                self.on_ack_pre_accept(from, id, dependencies, out);
            }
            Message::Accept { id, ballot, value } => {
                self.on_accept(from, (id, ballot), value, out);
            }
            Message::AckAccept { id, ballot } => self.on_ack_accept(from, (id, ballot), out),
            Message::Commit { id, value } => self.on_commit(id, value, out),
            Message::Recover { id, ballot } => self.on_recover(from, (id, ballot), out),
            Message::Recovered { id, ballot, stored } => {
                self.on_recovered(from, (id, ballot), stored, out);
            }
            Message::Validate { id, ballot, value } => {
                self.on_validate(from, (id, ballot), value, out);
            }
            Message::Validated { id, ballot, invalidating } => {
                self.on_validated(from, (id, ballot), invalidating, out);
            }
            Message::Waiting { id, agreeing } => self.on_waiting(id, agreeing, out),
            Message::Superseded { id, ballot } => self.on_superseded(id, ballot, out.now),
            Message::Delivered { delivered } => self.on_delivered(from, delivered, out),
            Message::Missing { ended } => self.on_missing(from, &ended, out),
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
        for (id, instance) in &self.instances {
            assert!(!self.progress.is_collected(*id), "{id} was forgotten");
            instance.assert_invariants(*id);
            let is_delivered = self.progress.is_delivered(*id);
            assert!(!is_delivered || instance.is_committed(), "{id} was executed: {instance:?}");
            let waits = instance.is_committed() && !is_delivered;
            assert_eq!(waits, instance.awaits.is_some(), "{id} waits for nothing: {instance:?}");
        }
        for (awaited, waiting) in &self.awaited {
            let is_committed = self.instances.get(awaited).is_some_and(Instance::is_committed);
            assert!(!is_committed, "{waiting:?} wait for {awaited}, which is committed");
        }
        for (id, leading) in self.leading.iter() {
            let instance = self.instances.get(&id).expect("who leads has an entry");
            assert!(leading.ballot <= instance.ballot, "{id} is led without a promise");
            assert!(!instance.is_committed(), "{id} is led after its end");
        }
        let open = self.instances.iter().filter(|(_, instance)| !instance.is_committed());
        self.suspected.assert_are(open.map(|(id, instance)| (instance.suspected, *id)));
        self.leading.assert_invariants();
        self.own.assert_invariants();
        self.progress.assert_invariants();
    }
}
