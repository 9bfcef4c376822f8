//! The coordination phase (algorithm 3): a command is accepted, forwarded, or its objects are
//! acquired.

pub(super) mod task;

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::Nanos;

use crate::command::{CommandId, MemberId};
use crate::m2paxos::message::{Message, NamedCommand, ObjectSlot};
use crate::m2paxos::object::ObjectLog;
use crate::m2paxos::{Effects, M2Paxos, M2PaxosSwitch};
use task::{CommandTask, TaskPhase};

/// So many places of an object are open at once.
pub(super) const OPEN_MOST: u64 = 1_024;

impl M2Paxos {
    pub(super) fn on_forward(&mut self, named: NamedCommand, out: &mut Effects) {
        let id = named.id;
        if self.progress.is_delivered(id) {
            return;
        }
        self.learn(&named, out);
        if !self.tasks.contains(id) {
            let again = !self.keeps(M2PaxosSwitch::ForwardsOnce);
            self.begin_task(id, again, out);
        }
    }

    /// Brings a command on by as much as can be done now.
    pub(super) fn coordinate(&mut self, id: CommandId, out: &mut Effects) {
        let Some(task) = self.tasks.get(id) else { return };
        let may_forward = task.may_forward;
        let is_acquiring = matches!(task.phase, TaskPhase::Acquiring(_));
        let entry = self.commands.get(&id);
        let Some(command) = entry.and_then(|entry| entry.command.clone()) else { return };
        let entry = entry.expect("found above");
        let mut undecided: Vec<u64> =
            self.numbers(&command).filter(|it| !entry.is_decided_at(*it)).collect();
        if !undecided.is_empty() && !self.keeps(M2PaxosSwitch::SkipsDecided) {
            undecided = self.numbers(&command).collect();
        }
        if self.is_cut_for(&command) {
            self.want_grant(id, out.now);
        }
        if undecided.is_empty() {
            return self.end_task(id);
        }
        if self.is_frozen() {
            return self.wait_until(id, out.now + self.settings.retry_after);
        }
        if is_acquiring {
            return;
        }
        let is_sent = |object: &u64| self.open.is_asked(id, *object);
        let unsent: Vec<u64> = undecided.into_iter().filter(|it| !is_sent(it)).collect();
        if unsent.is_empty() {
            self.set_phase(id, TaskPhase::Accepting);
            return;
        }
        let foreign: Vec<u64> = unsent.iter().copied().filter(|it| !self.owns(*it)).collect();
        let is_single = self.numbers(&command).nth(1).is_none();
        let may_place = is_single || self.may_place(id);
        if foreign.is_empty() && may_place {
            let has_capacity = |object: &u64| self.objects[*object].has_capacity();
            match unsent.iter().all(has_capacity) {
                true => self.place(id, &unsent, out),
                false => self.wait(id, out.now),
            }
            return;
        }
        let may_forward = may_forward && (is_single || !self.is_granted());
        let owner = self.best_owner(&unsent, out.now).filter(|_| may_forward);
        match owner {
            Some(owner) => {
                let until = Nanos(out.now.0 + 2 * self.settings.retry_after.0);
                out.send(owner, Message::Forward(NamedCommand { id, command }));
                self.set_phase(id, TaskPhase::Forwarded(until));
            }
            None if self.is_granted() => {
                self.want_grant(id, out.now);
                self.wait_until(id, out.now + self.settings.suspect_after);
            }
            None => self.acquire(id, &foreign, out),
        }
    }

    /// The other member to which a command of these objects goes: it owns the most of them, so that
    /// the fewest are to move. Where several own as many, this member takes it, unless one of the
    /// objects has moved a short time ago: then all members choose the same one, so that what many
    /// commands touch comes together there and does not move to and fro.
    fn best_owner(&self, objects: &[u64], now: Nanos) -> Option<MemberId> {
        let mut owned = BTreeMap::new();
        for object in objects {
            let owner = self.objects.get(*object).and_then(ObjectLog::owner);
            if let Some(owner) = owner.or(self.switches.one_log) {
                *owned.entry(owner).or_insert(0_usize) += 1;
            }
        }
        let most = owned.values().max().copied()?;
        let own = owned.get(&self.me).copied().unwrap_or(0);
        let is_calm = objects.iter().all(|it| self.held_until(*it) <= now);
        let takes = is_calm || !self.keeps(M2PaxosSwitch::AgreesOnOwners);
        if own == most && takes {
            return None;
        }
        let best = owned.into_iter().rev().find(|(_, count)| *count == most);
        best.map(|(member, _)| member).filter(|member| *member != self.me)
    }

    /// Until when an object stays where it is: who owns it is to bring some commands to their ends
    /// before it goes on.
    pub(super) fn held_until(&self, object: u64) -> Nanos {
        let moved = self.objects.get(object).and_then(|log| log.moved);
        moved.map_or(Nanos(0), |moved| moved + Nanos(self.settings.retry_after.0 / 4))
    }

    /// Begins with a command anew, or for the first time.
    pub(super) fn begin_task(&mut self, id: CommandId, may_forward: bool, out: &mut Effects) {
        self.add_task(id, may_forward, out.now);
        self.coordinate(id, out);
    }

    pub(super) fn add_task(&mut self, id: CommandId, may_forward: bool, now: Nanos) {
        self.end_task(id);
        let objects = self.objects_of(id);
        self.tasks.insert(id, CommandTask::new(may_forward, now), &objects);
    }

    /// At which objects a command is to be, if what it says is known.
    pub(super) fn objects_of(&self, id: CommandId) -> Vec<u64> {
        let command = self.commands.get(&id).and_then(|entry| entry.command.as_ref());
        command.map_or(Vec::new(), |command| self.numbers(command).collect())
    }

    /// Nothing more is to be done about a command.
    pub(super) fn end_task(&mut self, id: CommandId) {
        if self.tasks.contains(id) {
            let objects = self.objects_of(id);
            let task = self.tasks.remove(id, &objects).expect("found above");
            self.end_phase(&task.phase);
        }
    }

    pub(super) fn set_phase(&mut self, id: CommandId, phase: TaskPhase) {
        if let Some(last) = self.tasks.set_phase(id, phase) {
            self.end_phase(&last);
        }
    }

    /// Objects that are asked for no more may be asked for again.
    fn end_phase(&mut self, phase: &TaskPhase) {
        if let TaskPhase::Acquiring(acquisition) = phase {
            for it in &acquisition.wanted {
                self.object(it.object).wanted_for = None;
            }
        }
    }

    /// Leaves a command until this time, or until its objects have come here.
    pub(super) fn wait_until(&mut self, id: CommandId, until: Nanos) {
        self.set_phase(id, TaskPhase::Waiting(until));
    }

    /// Leaves a command for a while in whose way something is.
    pub(super) fn wait(&mut self, id: CommandId, now: Nanos) {
        let Some(task) = self.tasks.get(id) else { return };
        let until = self.deferred(id, Nanos(self.settings.retry_after.0 / 4), task.attempts, now);
        self.tasks.attempt(id);
        self.set_phase(id, TaskPhase::Waiting(until));
    }

    /// Leaves a command until objects of others may move. Two members that each lack what the other
    /// has just taken would exchange their objects for ever if they waited equally long: members of
    /// higher numbers wait longer, and more so each time.
    pub(super) fn wait_to_take(&mut self, id: CommandId, until: Nanos, now: Nanos) {
        let Some(task) = self.tasks.get(id) else { return };
        // Who is called before its time has not tried once more.
        let is_early = matches!(task.phase, TaskPhase::Waiting(earlier) if earlier > now);
        let attempts = task.attempts.saturating_sub(u32::from(is_early));
        if !is_early {
            self.tasks.attempt(id);
        }
        let times = match attempts.checked_sub(1) {
            Some(again) if self.keeps(M2PaxosSwitch::YieldsObjects) => {
                u64::from(self.me.0) << again.min(6)
            }
            _ => 0,
        };
        let longer = Nanos((self.settings.retry_after.0 / 4).saturating_mul(times));
        self.wait_until(id, until + longer);
    }

    /// Goes on with what has waited long enough.
    pub(super) fn go_on(&mut self, out: &mut Effects) {
        let forwards_once = self.keeps(M2PaxosSwitch::ForwardsOnce);
        for id in self.tasks.due(out.now) {
            match self.tasks.get(id).map(|task| &task.phase) {
                Some(TaskPhase::Forwarded(_)) if forwards_once => self.tasks.keep(id),
                Some(TaskPhase::Waiting(_) | TaskPhase::Forwarded(_)) => {}
                Some(TaskPhase::Acquiring(_) | TaskPhase::Accepting) | None => continue,
            }
            self.coordinate(id, out);
        }
    }

    /// Proposes what somebody else should have brought to its places by now.
    pub(super) fn help(&mut self, out: &mut Effects) {
        let is_granted = self.is_granted();
        for id in self.suspected.due(out.now) {
            let is_tried = self.tasks.contains(id);
            let attempts = self.commands[&id].attempts + u32::from(!is_tried || is_granted);
            let suspected = self.deferred(id, self.settings.suspect_after, attempts, out.now);
            let entry = self.commands.get_mut(&id).expect("found above");
            entry.attempts = attempts;
            let before = std::mem::replace(&mut entry.suspected, suspected);
            self.suspected.remove(id, before);
            self.suspected.add(id, suspected);
            if is_tried && !is_granted {
                continue;
            }
            if !entry.places.is_empty() || !entry.decided.is_empty() {
                self.ask_all_for_ends(out);
            }
            let entry = &self.commands[&id];
            let helps = id.leader == self.me || self.keeps(M2PaxosSwitch::HelpsOthers);
            if entry.command.is_some() && is_granted {
                if helps {
                    self.want_another_grant(id, out.now);
                }
            } else if entry.command.is_none() {
                self.send_to_others(&Message::AskCommand(id), out);
            } else if helps {
                self.begin_task(id, false, out);
                self.fill_before(id, out);
            }
        }
    }

    /// Something before a command may be missing here that nobody else speaks of. Answers are as
    /// long as what is missing, so others are not asked for each command.
    fn ask_all_for_ends(&mut self, out: &mut Effects) {
        if self.asked_all.is_none_or(|asked| out.now - asked >= self.settings.retry_after) {
            self.asked_all = Some(out.now);
            let ended = self.progress.delivered().clone();
            self.send_to_others(&Message::Missing { ended }, out);
        }
    }

    /// Where a command is decided, and something before it is not that its owner has begun and
    /// nobody goes on with: comes to own the object, and says what is there.
    fn fill_before(&mut self, id: CommandId, out: &mut Effects) {
        let entry = &self.commands[&id];
        let is_gap = |it: &&ObjectSlot| {
            let log = &self.objects[it.object];
            it.slot > log.decided && !log.is_owned()
        };
        let gaps: BTreeSet<u64> = entry.decided.iter().filter(is_gap).map(|it| it.object).collect();
        if gaps.is_empty() || self.tasks.contains(id) {
            return; // All is known, or it is brought to its other places first.
        }
        self.add_task(id, false, out.now);
        self.acquire(id, &gaps.into_iter().collect::<Vec<u64>>(), out);
    }
}
