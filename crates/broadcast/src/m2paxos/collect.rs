//! What all members have delivered, is forgotten; what one has missed, it asks for.

use muesli_core::Nanos;

use super::message::{FilledSlot, Message, NamedCommand, ObjectSlot, Record};
use super::object::SlotState;
use super::{Effects, M2Paxos, M2PaxosSwitch};
use crate::command::CommandId;
use crate::progress::DeliveryProgress;
use crate::reports::DeliveryReports;

/// So many places before a command's are said to have nothing.
pub(super) const NOTHING_MOST: u64 = 4_096;

impl DeliveryReports for M2Paxos {
    type Message = Message;
    type Record = Record;

    fn progress(&mut self) -> &mut DeliveryProgress {
        &mut self.progress
    }

    fn report_times(&self) -> (Nanos, Nanos) {
        (self.settings.report_every, self.settings.retry_after)
    }

    fn group_size(&self) -> usize {
        self.quorums.members
    }

    fn collects_delivered(&self) -> bool {
        self.keeps(M2PaxosSwitch::CollectsDelivered)
    }

    fn show_end(&self, id: CommandId) -> Option<Message> {
        let command = self.named(id).filter(|_| self.keeps(M2PaxosSwitch::RepeatsDecisions))?;
        let slots = self.commands[&id].decided.iter().map(|place| {
            let slots = &self.objects[place.object].slots;
            let before = slots.before(place.slot);
            let nothing = before.take_while(|(_, slot)| slot.decided == Some(None));
            let nothing_before = nothing.take(NOTHING_MOST as usize).count() as u64;
            FilledSlot { object: place.object, slot: place.slot, nothing_before }
        });
        Some(Message::Filled { command, slots: slots.collect() })
    }

    fn store_collected(&mut self, upto: Vec<u64>, out: &mut Effects) {
        self.store(Record::Collected { upto }, out);
    }
}

impl M2Paxos {
    pub(super) fn on_filled(
        &mut self,
        command: &NamedCommand,
        slots: &[FilledSlot],
        out: &mut Effects,
    ) {
        self.learn(command, out);
        let at = |object, slot| ObjectSlot { object, slot };
        let empty = slots.iter().flat_map(|it| {
            (it.slot - it.nothing_before..it.slot).map(move |slot| at(it.object, slot))
        });
        self.decide(None, empty.collect(), out);
        let filled = slots.iter().map(|it| at(it.object, it.slot));
        self.decide(Some(command.id), filled.collect(), out);
    }

    pub(super) fn apply_collection(&mut self, upto: &[u64]) {
        for (first, last) in self.progress.going(upto) {
            let gone: Vec<CommandId> =
                self.commands.range(first..=last).map(|(id, _)| *id).collect();
            self.open.forget(first, last);
            for id in gone {
                let entry = self.commands.remove(&id).expect("found above");
                let is_first = |it: &ObjectSlot| entry.places.get(&it.object) == Some(&it.slot);
                let forgets = !self.keeps(M2PaxosSwitch::KeepsRepetitions);
                for place in &entry.decided {
                    match is_first(place) || forgets {
                        true => self.forget(*place),
                        false => self.forget_repetition(*place),
                    }
                }
            }
        }
        self.own.collect(upto);
        self.progress.collect(upto);
    }

    /// Forgets where a command is, and the places right before it at which nothing is: who has
    /// delivered it knows all of them.
    fn forget(&mut self, place: ObjectSlot) {
        let Some(log) = self.objects.get_mut(place.object) else { return };
        log.slots.remove(place.slot);
        loop {
            let Some((slot, before)) = log.slots.before(place.slot).next() else { return };
            if before.decided != Some(None) {
                return;
            }
            log.slots.remove(slot);
        }
    }

    /// A command is at a further place, which nobody needs for its delivery: some members may not
    /// know of it. It holds nothing from now on.
    fn forget_repetition(&mut self, place: ObjectSlot) {
        let Some(log) = self.objects.get_mut(place.object) else { return };
        log.slots.or_insert_with(place.slot, SlotState::default).decided = Some(None);
    }
}
