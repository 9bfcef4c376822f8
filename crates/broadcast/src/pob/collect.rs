//! What all members have delivered, is forgotten; what one has missed, it asks for.
//!
//! The paper forgets what lies below the oldest position of which somebody has heard (section
//! 9.2.3). A member that has never heard of a command has nothing to say of it.

use muesli_core::Nanos;

use super::message::{Message, Record};
use super::{Effects, Pob, PobSwitch};
use crate::command::CommandId;
use crate::progress::DeliveryProgress;
use crate::reports::DeliveryReports;

impl DeliveryReports for Pob {
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
        self.keeps(PobSwitch::CollectsDelivered)
    }

    fn show_end(&self, id: CommandId) -> Option<Message> {
        let entry = self.entries.get(&id)?;
        Some(Message::Stable(entry.stable(id)))
    }

    fn store_collected(&mut self, upto: Vec<u64>, out: &mut Effects) {
        let mut floor = self.floor;
        for (first, last) in self.progress.going(&upto) {
            let gone = self.entries.range(first..=last);
            floor = gone.map(|(_, entry)| entry.stored.position).fold(floor, u64::max);
        }
        self.store(Record::Collected { upto, floor }, out);
    }
}

impl Pob {
    pub(super) fn apply_collection(&mut self, upto: &[u64], floor: u64) {
        for (first, last) in self.progress.going(upto) {
            let gone: Vec<_> = self.entries.range(first..=last).map(|(id, _)| *id).collect();
            for id in gone {
                let entry = self.entries.remove(&id).expect("found above");
                if let Some(command) = entry.stored.content.command() {
                    self.index.remove(id, &command.objects);
                }
            }
        }
        self.own.collect(upto);
        self.progress.collect(upto);
        self.floor = floor.max(self.floor);
        self.highest = self.highest.max(floor);
    }
}
