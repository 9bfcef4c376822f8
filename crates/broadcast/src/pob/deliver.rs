//! The delivery phase (algorithm 11, from line 7 on).
//!
//! A stable command that cannot be delivered waits for one other. If some of its dependencies are
//! not stable, that is the one proposed last, as the others will mostly be stable before it; else
//! it is the one right before it in the order. It looks again when that one is stable, or
//! delivered. Dependencies are looked through by ranges, and the order by objects, so what a
//! delivery costs does not grow with how many wait.

use std::collections::BTreeSet;

use super::entry::{CommandContent, CommandStatus};
use super::message::{Message, Record, Stable};
use super::{Effects, Pob, PobSwitch};
use crate::command::{CommandId, MemberId};
use crate::effects::{BroadcastEffect, DeliveredCommand};
use crate::id_set::IdSet;

/// No command comes before it.
const FIRST: CommandId = CommandId { leader: MemberId(0), sequence: 1 };

impl Pob {
    pub(super) fn on_stable(&mut self, stable: Stable, out: &mut Effects) {
        let id = stable.id;
        if self.progress.is_collected(id) {
            return;
        }
        let in_any_epoch = self.keeps(PobSwitch::StableInAnyEpoch);
        let entry = self.entry(id, out.now);
        if entry.is_stable() || (!in_any_epoch && !entry.epoch.is_first()) {
            return;
        }
        self.leading.remove(id);
        self.store(Record::Stable(stable), out);
    }

    /// A member is sent the end of a command about which it asks.
    pub(super) fn show_stable(&self, to: MemberId, id: CommandId, out: &mut Effects) {
        let entry = self.entries.get(&id).expect("a command that is stable is known");
        if self.keeps(PobSwitch::ShowsEnds) {
            out.send(to, Message::Stable(entry.stable(id)));
        }
    }

    pub(super) fn apply_stable(&mut self, stable: Stable, out: &mut Effects) {
        let Stable { id, command, position, mut dependencies } = stable;
        dependencies.remove(id);
        let entry = self.entry(id, out.now);
        let is_nothing = command.is_none();
        let before = std::mem::replace(&mut entry.stored.content, CommandContent::chosen(command));
        entry.stored.status = CommandStatus::Stable;
        entry.stored.accepted = Some(entry.epoch);
        entry.stored.position = position;
        entry.stored.dependencies = dependencies;
        let suspected = entry.suspected;
        self.suspected.remove(id, suspected);
        if is_nothing && !self.keeps(PobSwitch::PassesNothing) {
            return;
        }
        self.progress.end(id);
        self.place(id, position);
        self.order_stable(id);
        if is_nothing {
            if let Some(before) = before.command() {
                self.index.remove(id, &before.objects);
            }
            self.progress.end_as_nothing(id);
            if self.own.end(id) {
                out.effects.push(BroadcastEffect::GivenUp(id));
            }
        }
        let waiting = self.waiting.remove(&id).unwrap_or_default();
        let due = waiting.into_iter().chain((!is_nothing).then_some(id)).collect();
        self.deliver_all(due, out);
    }

    /// A command that is stable has its place in the order.
    pub(super) fn order_stable(&mut self, id: CommandId) {
        let stored = &self.entries[&id].stored;
        if let CommandContent::Command(command) = &stored.content {
            self.stable.insert(id, &command.objects, stored.position);
        }
    }

    /// Delivers what can be of these, and of those that wait for them.
    fn deliver_all(&mut self, mut due: Vec<CommandId>, out: &mut Effects) {
        while let Some(id) = due.pop() {
            if self.progress.is_delivered(id) {
                continue;
            }
            match self.next_awaited(id) {
                Some(dependency) => {
                    self.entry(dependency, out.now); // If nobody speaks of it, it is taken over.
                    self.waiting.entry(dependency).or_default().insert(id);
                }
                None => {
                    self.deliver(id, out);
                    due.extend(self.waiting.remove(&id).unwrap_or_default());
                }
            }
        }
    }

    /// For what a stable command waits: one of its dependencies that is not stable, or one that is,
    /// and comes right before it.
    pub(super) fn next_awaited(&self, id: CommandId) -> Option<CommandId> {
        let entry = self.entries.get(&id).expect("a command that waits is known");
        assert!(entry.is_stable(), "{id} waits before its end: {entry:?}");
        let open = entry.stored.dependencies.last_beyond(self.progress.ended());
        if open.is_some() && self.keeps(PobSwitch::AwaitsDependencies) {
            return open;
        }
        if !self.keeps(PobSwitch::AwaitsLower) {
            return None;
        }
        let position = entry.stored.position;
        let before = match self.keeps(PobSwitch::TieBreak) {
            true => (position, id),
            false => (position + 1, FIRST),
        };
        let command = entry.stored.content.command()?;
        self.stable.right_before(id, &command.objects, before)
    }

    fn deliver(&mut self, id: CommandId, out: &mut Effects) {
        let entry = self.entries.get(&id).expect("a command that is delivered is known");
        let command = entry.stored.content.command().expect("nothing is not delivered").clone();
        // A member that has forgotten more than this one may have left some of them out.
        let before = match self.keeps(PobSwitch::NamesDelivered) {
            true => self.index.of(id, &command.objects).ids,
            false => entry.stored.dependencies.clone(),
        };
        let predecessors = self.progress.recent(before);
        self.stable.remove(id, &command.objects, entry.stored.position);
        let is_new = self.progress.deliver(id);
        assert!(is_new, "{id} is delivered once");
        self.own.end(id);
        out.effects.push(BroadcastEffect::Deliver(DeliveredCommand { id, command, predecessors }));
    }

    pub(super) fn assert_waiting(&self) {
        let all: IdSet = self.waiting.values().flatten().copied().collect();
        let count: usize = self.waiting.values().map(BTreeSet::len).sum();
        assert_eq!(all.len(), count as u64, "one waits for two at once: {:?}", self.waiting);
        for (dependency, waiting) in &self.waiting {
            assert!(
                !self.progress.is_delivered(*dependency),
                "{dependency} is awaited and delivered"
            );
            for id in waiting {
                let entry = self.entries.get(id).expect("a command that waits is known");
                let is_stable = self.progress.ended().contains(*dependency);
                let depends = is_stable || entry.stored.dependencies.contains(*dependency);
                assert!(depends, "{id} waits for {dependency}, which is none of {entry:?}");
                assert_eq!(self.next_awaited(*id), Some(*dependency), "{id} waits for another");
            }
        }
        for (id, entry) in &self.entries {
            let is_open = entry.is_stable() && !self.progress.is_delivered(*id);
            assert_eq!(is_open, all.contains(*id), "{id} waits for nothing: {entry:?}");
        }
    }
}
