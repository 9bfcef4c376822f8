//! What all members have delivered, is forgotten; what one has missed, it asks for.

use muesli_core::Nanos;

use super::message::{FilledSlot, Message, NamedCommand, ObjectSlot, Record};
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
        let command = self.named(id)?;
        let slots = self.commands[&id].decided.iter().map(|place| {
            let slots = &self.objects[&place.object].slots;
            let before = slots.range(..place.slot).rev();
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
                for place in entry.decided {
                    self.forget(place);
                }
            }
        }
        self.own.collect(upto);
        self.progress.collect(upto);
    }

    /// Forgets a place, and those right before it at which nothing is. A place beyond what is
    /// decided is a repetition of what was delivered: it holds nothing from now on.
    fn forget(&mut self, place: ObjectSlot) {
        let Some(log) = self.objects.get_mut(&place.object) else { return };
        if place.slot > log.decided {
            let slot = log.slots.entry(place.slot).or_default();
            slot.decided = Some(None);
            return;
        }
        log.slots.remove(&place.slot);
        loop {
            let Some((slot, before)) = log.slots.range(..place.slot).next_back() else { return };
            if before.decided != Some(None) {
                return;
            }
            let slot = *slot;
            log.slots.remove(&slot);
        }
    }
}
