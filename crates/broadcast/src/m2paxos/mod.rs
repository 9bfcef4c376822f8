//! M²Paxos (Turcu 2015, chapters 10 and 11): whoever owns a command's objects says where it is.
//!
//! # The idea
//! Each object has an order of its own: places, filled one after the other. One member at a time
//! *owns* an object and says what is at its next places. A command whose objects one member owns is
//! *accepted* by a majority at the next place of each, and thereby decided: two message delays at
//! the owner, three where it was *forwarded* to it. Who does not own the objects of its command,
//! and finds nobody else who does, *acquires* them first, as in Paxos: a majority promises to take
//! nothing of earlier owners, and says what it has accepted of them.
//!
//! # Why the order is one
//! For each object all is as in Multi-Paxos with many leaders: an owner says one thing for a place,
//! in an epoch that is its own; a promise is for all places from one on; what others may have
//! decided, it says again, and where there are gaps, that nothing is there. So places agree.
//!
//! Places of different objects are chosen one by one, and may contradict each other: c1 before c2
//! at A, and after it at B, each decided. That cannot be undone, and the printed delivery waits for
//! ever. Here a command is *complete* once it is known where it is at all of its objects, and those
//! before it are known as well. Commands that are complete with all that come before them, and come
//! before each other, are delivered together, by their names; cycles of more than one come
//! from contention alone. What comes before a complete command never changes, so that all
//! members find the same ones.
//!
//! # Where it departs from the paper
//! Ownership is of objects and not of places; epochs are of a member each; answers are counted by
//! member, and go to the owner and to who proposed the command, not to all; a forwarded command is
//! not forwarded again; whoever sees a command decided or accepted at some of its objects alone,
//! and its proposer not come on, proposes it; what is lost is said again, what was missed is asked
//! for, and what all have delivered is forgotten. Several places of an object may be open at once.
//!
//! # What is stored
//! Promises, what was accepted and what is decided, before it is said. Ownership is not: a member
//! that comes back acquires objects anew. The promise for an object is kept for ever, so users map
//! what they order to a bounded number of objects.

mod accept;
mod acquire;
mod checkpoint;
mod collect;
mod coordinate;
mod cut;
mod deliver;
mod grants;
mod judge;
mod known;
pub mod message;
mod object;
mod switches;

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::judgement::ensure;
use muesli_core::{Nanos, Rejection};

use crate::broadcast::{Broadcast, BroadcastSettings};
use crate::command::{Command, CommandId, MemberId};
use crate::effects::BroadcastEffects;
use crate::id_set::IdSet;
use crate::member::checkpoint::CheckpointError;
use crate::member::due_times::DueTimes;
use crate::member::judge::NameJudge;
use crate::member::own::OwnCommands;
use crate::member::{assert_is_of, members_alike};
use crate::progress::DeliveryProgress;
use crate::quorums::Quorums;
use crate::reports::DeliveryReports as _;
use accept::open::OpenAccepts;
use coordinate::task::{CommandTasks, TaskPhase};
pub(crate) use cut::FrozenPart;
use grants::OwnershipGrants;
pub(crate) use grants::WantedGrant;
use known::OrderedCommand;
use message::{AskedSlot, Message, NamedCommand, ObjectSlot, Record};
use object::{ObjectLog, ObjectLogs, Value};
pub use switches::{M2PaxosSwitch, Switches};

/// What this broadcast wants done.
type Effects = BroadcastEffects<Message, Record>;

/// A member of M²Paxos.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct M2Paxos {
    me: MemberId,
    quorums: Quorums,
    settings: BroadcastSettings,
    switches: Switches,
    /// What this member itself proposed.
    own: OwnCommands,
    objects: ObjectLogs,
    /// Commands that not all members have delivered.
    commands: BTreeMap<CommandId, OrderedCommand>,
    /// Commands that this member is to bring to their places.
    tasks: CommandTasks,
    /// What members are asked to accept, and those whose answers come here, by the first place.
    open: OpenAccepts,
    /// When others are to be helped with commands that are not delivered.
    suspected: DueTimes<CommandId>,
    /// By a command that is not complete: those that wait for it.
    awaited: BTreeMap<CommandId, BTreeSet<CommandId>>,
    progress: DeliveryProgress,
    /// When all others were asked last for what is missing.
    asked_all: Option<Nanos>,
    /// Requests for objects that were ordered; `None`: members acquire objects by themselves.
    grants: Option<OwnershipGrants>,
    /// Members acquire objects by themselves though requests are ordered: for cuts alone.
    acquires: bool,
    /// It promises and accepts nothing until a cut is made.
    frozen: bool,
    /// The last command that touched everything.
    everything: Option<CommandId>,
}

impl M2Paxos {
    /// How many commands it knows, those that are delivered and may be asked for still among them.
    pub fn known(&self) -> usize {
        self.commands.len()
    }

    /// All places of which it knows what is decided there.
    pub fn decided(&self) -> impl Iterator<Item = (ObjectSlot, Option<CommandId>)> + '_ {
        self.objects.iter().flat_map(|(object, log)| {
            log.slots
                .iter()
                .filter_map(move |(slot, it)| Some((ObjectSlot { object, slot }, it.decided?)))
        })
    }

    /// Commands that were delivered here.
    pub fn delivered(&self) -> &IdSet {
        self.progress.delivered()
    }

    /// Which commands others may name.
    pub(crate) fn names(&self) -> NameJudge<'_> {
        NameJudge { members: self.quorums.members, own: &self.own }
    }

    /// Which member it is.
    pub(crate) fn member_id(&self) -> MemberId {
        self.me
    }

    /// After this while members are asked again that have not answered.
    pub(crate) fn retry_after(&self) -> Nanos {
        self.settings.retry_after
    }

    /// How many members are more than half of all.
    pub(crate) fn majority(&self) -> usize {
        self.quorums.majority
    }

    /// Whether a member can have this, as far as numbers go.
    pub(crate) fn is_report(&self, part: &FrozenPart, from: MemberId) -> bool {
        let members = self.quorums.members;
        from.place() < members && judge::judge_part(members, part).is_ok()
    }

    /// Whether a command is ordered by a cut through all objects.
    fn is_cut_for(&self, command: &Command) -> bool {
        self.grants.is_some() && command.objects.is_everything()
    }

    pub(crate) fn keeps(&self, switch: M2PaxosSwitch) -> bool {
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

    /// The objects at which a command is to be.
    fn numbers<'a>(&self, command: &'a Command) -> impl Iterator<Item = u64> + use<'a> {
        let log = self.switches.one_log.map(|_| 0);
        let own = command.objects.iter().filter(move |_| log.is_none());
        // By grants what touches nothing is ordered with what touches everything, too.
        let is_nothing = command.objects.is_empty() && !command.objects.is_everything();
        let none = (self.grants.is_some() && is_nothing).then_some(u64::MAX);
        log.into_iter().chain(own.map(|it| it.number)).chain(none)
    }

    /// Whether this member owns an object.
    fn owns(&self, object: u64) -> bool {
        self.objects.get(object).is_some_and(ObjectLog::is_owned)
    }

    fn object(&mut self, object: u64) -> &mut ObjectLog {
        let last = self.everything;
        self.objects.or_insert_with(object, || ObjectLog { last, ..ObjectLog::default() })
    }

    /// A while that is longer for members that come later after a command's proposer, and each
    /// time.
    fn deferred(&self, id: CommandId, after: Nanos, attempts: u32, now: Nanos) -> Nanos {
        self.me.due(self.quorums.members, id, (after, attempts), now)
    }

    /// A command with its content, if that is known.
    fn named(&self, id: CommandId) -> Option<NamedCommand> {
        let command = self.commands.get(&id)?.command.clone()?;
        Some(NamedCommand { id, command })
    }

    /// A value with its content. Whoever has accepted a command knows what it says.
    fn named_value(&self, value: Value) -> Option<NamedCommand> {
        let value = self.still(value);
        value.map(|id| self.named(id).expect("what is said of a command comes with its content"))
    }

    /// A command that all members have delivered is nothing at any further place: it was there
    /// before, at each of them.
    fn still(&self, value: Value) -> Value {
        value.filter(|id| !self.progress.is_collected(*id))
    }

    /// Writes down, and does, what is to be done again after a crash.
    fn store(&mut self, record: Record, out: &mut Effects) {
        let is_stored = match &record {
            Record::Promised(_) => self.keeps(M2PaxosSwitch::StoresEpochs),
            Record::Accepted { .. } => self.keeps(M2PaxosSwitch::StoresVotes),
            Record::Known(_) | Record::Decided { .. } | Record::Collected { .. } => true,
        };
        if is_stored {
            out.log(record.clone());
        }
        self.apply(record, out);
    }

    /// Does what a record says.
    fn apply(&mut self, record: Record, out: &mut Effects) {
        match record {
            Record::Known(named) => self.know(&named, out),
            Record::Promised(promised) => self.apply_promise(&promised),
            Record::Accepted { value, slots } => self.apply_accept(value.as_ref(), &slots, out),
            Record::Decided { value, slots } => self.apply_decision(value, &slots, out),
            Record::Collected { upto } => self.apply_collection(&upto),
        }
    }
}

impl Broadcast for M2Paxos {
    const NAME: &'static str = "m2paxos";
    type Message = Message;
    type Record = Record;
    type Switches = Switches;

    fn new(
        me: MemberId,
        members: usize,
        settings: &BroadcastSettings,
        switches: &Switches,
    ) -> M2Paxos {
        assert_is_of(me, members);
        M2Paxos {
            me,
            quorums: Quorums::of(members),
            settings: settings.clone(),
            switches: switches.clone(),
            own: OwnCommands::new(me),
            objects: ObjectLogs::new(),
            commands: BTreeMap::new(),
            tasks: CommandTasks::new(settings.retry_after),
            open: OpenAccepts::new(),
            suspected: DueTimes::new(),
            awaited: BTreeMap::new(),
            progress: DeliveryProgress::new(me, members),
            asked_all: None,
            grants: None,
            acquires: false,
            frozen: false,
            everything: None,
        }
    }

    fn propose(&mut self, command: Command, out: &mut Effects) -> CommandId {
        let may_order = self.orders_everything() || !command.objects.is_everything();
        assert!(may_order, "everything has no owner: {command:?}");
        let id = self.own.name();
        assert!(!self.commands.contains_key(&id), "{id} was proposed before");
        self.store(Record::Known(NamedCommand { id, command }), out);
        self.begin_task(id, true, out);
        id
    }

    fn orders_everything(&self) -> bool {
        self.switches.one_log.is_some() || self.grants.is_some()
    }

    /// At who owns all of its objects. Under grants several commands of an object each would be one
    /// of several objects, which needs a grant.
    fn decided_at(&self, command: &Command) -> Option<MemberId> {
        if self.is_granted() || command.objects.is_everything() {
            return None;
        }
        let owner = |object: u64| self.objects.get(object).and_then(ObjectLog::owner);
        let mut owners = self.numbers(command).map(|it| owner(it).or(self.switches.one_log));
        let first = owners.next()??;
        owners.all(|it| it == Some(first)).then_some(first)
    }

    members_alike!();

    fn judge(&self, from: MemberId, message: &Message) -> Result<(), Rejection> {
        let may_order = self.orders_everything() || !message.names_everything();
        ensure(may_order, Rejection::Range)?;
        judge::judge(self.names(), from, message)
    }

    fn receive(&mut self, from: MemberId, message: Message, out: &mut Effects) {
        match message {
            Message::Forward(command) => self.on_forward(command, out),
            Message::Prepare(objects) => self.on_prepare(from, &objects, out),
            Message::Promise { objects, commands } => {
                self.on_promise(from, objects, &commands, out);
            }
            Message::Accept { value, slots } => self.on_accept(from, value, slots, out),
            Message::AckAccept { value, slots } => self.on_ack_accept(from, value, slots, out),
            Message::Refuse(promised) => self.on_refuse(from, &promised, out),
            Message::Decide { value, slots } => self.decide(value, slots, out),
            Message::Delivered { delivered } => self.on_delivered(from, delivered, out),
            Message::Missing { ended } => self.on_missing(from, &ended, out),
            Message::Filled { command, slots } => self.on_filled(&command, &slots, out),
            Message::AskCommand(id) => self.on_ask_command(from, id, out),
            Message::ShowCommand(named) => self.learn(&named, out),
        }
    }

    fn tick(&mut self, out: &mut Effects) {
        self.go_on(out);
        self.ask_again(out);
        self.help(out);
        self.pass_over(out);
        self.report(out);
    }

    fn recover(&mut self, id: CommandId, out: &mut Effects) {
        if self.named(id).is_some() && !self.progress.is_delivered(id) {
            self.begin_task(id, false, out);
            if self.is_granted() {
                self.suspect_owners(id);
                self.want_another_grant(id, out.now);
            }
        }
    }

    fn assert_invariants(&self) {
        for (object, log) in self.objects.iter() {
            log.assert_invariants(object);
        }
        for (id, command) in &self.commands {
            assert!(!self.progress.is_collected(*id), "{id} was forgotten");
            command.assert_invariants(*id, &self.objects, self.progress.is_delivered(*id));
        }
        for (awaited, waiting) in &self.awaited {
            let is_complete = self.commands.get(awaited).is_some_and(OrderedCommand::is_complete);
            assert!(!is_complete, "{waiting:?} wait for {awaited}, which is complete");
        }
        self.open.assert_invariants();
        self.tasks.assert_invariants(&self.commands);
        let open = self.commands.iter().filter(|(id, _)| !self.progress.is_delivered(**id));
        self.suspected.assert_are(open.map(|(id, entry)| (entry.suspected, *id)));
        for (object, log) in self.objects.iter() {
            let task = log.wanted_for.map(|id| &self.tasks.get(id).expect("a task").phase);
            let asks = |phase: &TaskPhase| matches!(phase, TaskPhase::Acquiring(_));
            assert!(task.is_none_or(asks), "{object} is wanted, and nobody asks: {task:?}");
        }
        self.assert_grants();
        self.own.assert_invariants();
        self.progress.assert_invariants();
    }
}
