//! Commands that a member brings to their places.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::Nanos;

use crate::command::{CommandId, MemberId};
use crate::m2paxos::known::OrderedCommand;
use crate::m2paxos::message::{PromisedObject, WantedObject};
use crate::member::due_times::DueTimes;

/// Objects that are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::m2paxos) struct Acquisition {
    pub wanted: Vec<WantedObject>,
    pub promises: BTreeMap<MemberId, Vec<PromisedObject>>,
    pub refused: BTreeSet<MemberId>,
    /// When those were asked last who have not answered.
    pub asked: Nanos,
}

/// What becomes of a command at who brings it to its places.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::m2paxos) enum TaskPhase {
    /// Something is in the way: it goes on at this time, or when that is gone.
    Waiting(Nanos),
    /// The owner of its objects has it; after this time it is proposed here.
    Forwarded(Nanos),
    /// Its objects are asked for.
    Acquiring(Acquisition),
    /// It is to be accepted at its places.
    Accepting,
}

/// A command that a member brings to its places.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::m2paxos) struct CommandTask {
    /// Whether it may be forwarded to who owns its objects.
    pub may_forward: bool,
    pub phase: TaskPhase,
    /// How often something was in its way.
    pub attempts: u32,
}

impl CommandTask {
    pub fn new(may_forward: bool, now: Nanos) -> CommandTask {
        CommandTask { may_forward, phase: TaskPhase::Waiting(now), attempts: 0 }
    }
}

impl TaskPhase {
    /// When it is to be looked at, if nothing happens before.
    fn time(&self, retry_after: Nanos) -> Option<Nanos> {
        match self {
            TaskPhase::Waiting(until) | TaskPhase::Forwarded(until) => Some(*until),
            TaskPhase::Acquiring(acquisition) => Some(acquisition.asked + retry_after),
            TaskPhase::Accepting => None,
        }
    }
}

/// All commands that a member brings to their places.
///
/// Invariants: each is found by its objects, and by the time at which it is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::m2paxos) struct CommandTasks {
    retry_after: Nanos,
    all: BTreeMap<CommandId, CommandTask>,
    by_object: BTreeSet<(u64, CommandId)>,
    times: DueTimes<CommandId>,
}

impl CommandTasks {
    pub fn new(retry_after: Nanos) -> CommandTasks {
        CommandTasks {
            retry_after,
            all: BTreeMap::new(),
            by_object: BTreeSet::new(),
            times: DueTimes::new(),
        }
    }

    /// A command that touches these objects is to be brought to its places.
    pub fn insert(&mut self, id: CommandId, task: CommandTask, objects: &[u64]) {
        if let Some(time) = task.phase.time(self.retry_after) {
            self.times.add(id, time);
        }
        self.by_object.extend(objects.iter().map(|object| (*object, id)));
        let before = self.all.insert(id, task);
        assert!(before.is_none(), "{id} is brought to its places already");
    }

    pub fn remove(&mut self, id: CommandId, objects: &[u64]) -> Option<CommandTask> {
        let task = self.all.remove(&id)?;
        if let Some(time) = task.phase.time(self.retry_after) {
            self.times.remove(id, time);
        }
        objects.iter().for_each(|object| _ = self.by_object.remove(&(*object, id)));
        Some(task)
    }

    pub fn contains(&self, id: CommandId) -> bool {
        self.all.contains_key(&id)
    }

    pub fn get(&self, id: CommandId) -> Option<&CommandTask> {
        self.all.get(&id)
    }

    /// Objects that are asked for by a command, if it asks for some.
    pub fn acquisition(&mut self, id: CommandId) -> Option<&mut Acquisition> {
        match &mut self.all.get_mut(&id)?.phase {
            TaskPhase::Acquiring(acquisition) => Some(acquisition),
            TaskPhase::Waiting(_) | TaskPhase::Forwarded(_) | TaskPhase::Accepting => None,
        }
    }

    /// What becomes of a command from now on; what became of it until now.
    pub fn set_phase(&mut self, id: CommandId, phase: TaskPhase) -> Option<TaskPhase> {
        let task = self.all.get_mut(&id)?;
        let (before, now) = (task.phase.time(self.retry_after), phase.time(self.retry_after));
        before.into_iter().for_each(|time| self.times.remove(id, time));
        now.into_iter().for_each(|time| self.times.add(id, time));
        Some(std::mem::replace(&mut task.phase, phase))
    }

    /// Something was in a command's way once more.
    pub fn attempt(&mut self, id: CommandId) {
        if let Some(task) = self.all.get_mut(&id) {
            task.attempts += 1;
        }
    }

    /// A command is not forwarded any more.
    pub fn keep(&mut self, id: CommandId) {
        if let Some(task) = self.all.get_mut(&id) {
            task.may_forward = false;
        }
    }

    /// Members are asked for objects again, now.
    pub fn ask(&mut self, id: CommandId, now: Nanos) {
        let retry_after = self.retry_after;
        let Some(asked) = self.acquisition(id).map(|it| std::mem::replace(&mut it.asked, now))
        else {
            return;
        };
        self.times.remove(id, asked + retry_after);
        self.times.add(id, now + retry_after);
    }

    /// Those whose time has come.
    pub fn due(&self, now: Nanos) -> Vec<CommandId> {
        self.times.due(now)
    }

    /// Those that touch an object and wait.
    pub fn waiting_for(&self, object: u64) -> impl Iterator<Item = CommandId> + '_ {
        self.touching(object).filter(|id| matches!(self.all[id].phase, TaskPhase::Waiting(_)))
    }

    /// The first of those that touch an object and ask for objects.
    pub fn asking_for(&self, object: u64) -> Option<CommandId> {
        self.touching(object).find(|id| matches!(self.all[id].phase, TaskPhase::Acquiring(_)))
    }

    /// Those that touch an object.
    fn touching(&self, object: u64) -> impl Iterator<Item = CommandId> + '_ {
        let first = CommandId { leader: MemberId(0), sequence: 0 };
        let from = self.by_object.range((object, first)..);
        from.take_while(move |(it, _)| *it == object).map(|(_, id)| *id)
    }

    pub fn assert_invariants(&self, commands: &BTreeMap<CommandId, OrderedCommand>) {
        for id in self.all.keys() {
            assert!(commands.contains_key(id), "{id} is proposed, and not known");
        }
        let named = self.by_object.iter().all(|(_, id)| self.all.contains_key(id));
        assert!(named, "an object of a command that is at its places");
        let timed = self.all.iter().filter_map(|(id, task)| {
            let time = task.phase.time(self.retry_after);
            time.map(|time| (time, *id))
        });
        self.times.assert_are(timed);
    }
}
