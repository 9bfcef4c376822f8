//! Delivery: a command follows all that come before it, and those that come before each other are
//! delivered together.
//!
//! Mostly a command is the first at each of its objects when it is complete, and nothing is to be
//! searched. Else all that come before it are looked at, from one to the one right before it. A
//! command that is not complete among them ends that, and is remembered: when it is complete, those
//! that waited for it look again.

use std::collections::BTreeSet;

use super::{Effects, M2Paxos, M2PaxosSwitch};
use crate::command::CommandId;
use crate::components::components;
use crate::effects::{BroadcastEffect, DeliveredCommand};
use crate::id_set::IdSet;

impl M2Paxos {
    /// More is known of a command: what it says, or where it is.
    pub(super) fn on_progress(&mut self, id: CommandId, out: &mut Effects) {
        if !self.commands.get(&id).is_some_and(|entry| entry.is_complete()) {
            return;
        }
        self.close_grants(id);
        self.deliver_with_those_before(id, out);
        for id in self.awaited.remove(&id).unwrap_or_default() {
            self.deliver_with_those_before(id, out);
        }
    }

    /// The commands right before one at each of its objects.
    fn right_before(&self, id: CommandId) -> impl Iterator<Item = CommandId> + '_ {
        self.commands[&id].places.iter().filter_map(|(object, slot)| {
            let waiting = &self.objects[*object].waiting;
            waiting.before(*slot).next().map(|(_, before)| *before)
        })
    }

    /// Delivers a complete command if all before it are complete, after these.
    fn deliver_with_those_before(&mut self, id: CommandId, out: &mut Effects) {
        if self.progress.is_delivered(id) {
            return;
        }
        let (mut found, mut open) = (BTreeSet::from([id]), vec![id]);
        while let Some(next) = open.pop() {
            let awaited = self.commands[&next].awaits;
            let awaited = awaited.filter(|it| !self.commands[it].is_complete());
            let incomplete = match self.commands[&next].is_complete() {
                true => awaited,
                false => Some(next),
            };
            if incomplete.is_some() && !self.keeps(M2PaxosSwitch::AwaitsAncestors) {
                found.remove(&next);
                continue;
            }
            if let Some(incomplete) = incomplete {
                self.entry(id, out.now).awaits = Some(incomplete);
                self.awaited.entry(incomplete).or_default().insert(id);
                return;
            }
            let before: Vec<CommandId> = self.right_before(next).collect();
            open.extend(before.into_iter().filter(|it| found.insert(*it)));
        }
        let is_found = |it: &CommandId| found.contains(it);
        let components = components(&found, |id| self.right_before(id).filter(is_found).collect());
        let cycles = self.keeps(M2PaxosSwitch::DeliversCycles);
        for component in components {
            if component.len() > 1 && !cycles {
                return; // As printed: each waits for the other.
            }
            if self.keeps(M2PaxosSwitch::OrdersCycles) {
                component.into_iter().for_each(|id| self.deliver(id, out));
                continue;
            }
            let mut component: Vec<CommandId> = component.into_iter().collect();
            component.sort_by_key(|id| id.leader != self.me);
            component.into_iter().for_each(|id| self.deliver(id, out));
        }
    }

    fn deliver(&mut self, id: CommandId, out: &mut Effects) {
        let entry = self.commands.get_mut(&id).expect("a command that is delivered is known");
        entry.awaits = None;
        let suspected = entry.suspected;
        self.suspected.remove(id, suspected);
        let command = entry.command.clone().expect("a complete command's content is known");
        let places = entry.places.clone();
        let mut predecessors = IdSet::new();
        for (object, slot) in &places {
            let log = self.objects.get_mut(*object).expect("a place is of an object");
            log.waiting.remove(*slot);
            if let Some(last) = log.last.replace(id) {
                predecessors.insert(last);
            }
        }
        self.progress.remove_collected(&mut predecessors);
        predecessors.remove(id);
        let is_new = self.progress.deliver(id);
        assert!(is_new, "{id} is delivered once");
        self.own.end(id);
        out.effects.push(BroadcastEffect::Deliver(DeliveredCommand { id, command, predecessors }));
        self.end_task(id);
    }
}
