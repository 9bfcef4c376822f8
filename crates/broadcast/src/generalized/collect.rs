//! What all members have delivered, is forgotten; what one has missed, it asks for.

use muesli_core::Nanos;

use super::message::{Message, Record};
use super::{Effects, Generalized, GeneralizedSwitch};
use crate::command::CommandId;
use crate::progress::DeliveryProgress;
use crate::reports::DeliveryReports;

impl DeliveryReports for Generalized {
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
        self.keeps(GeneralizedSwitch::CollectsDelivered)
    }

    fn show_end(&self, id: CommandId) -> Option<Message> {
        let value = self.learned(id)?;
        Some(Message::Learned { id, value })
    }

    fn store_collected(&mut self, upto: Vec<u64>, out: &mut Effects) {
        self.store(Record::Collected { upto }, out);
    }
}

impl Generalized {
    pub(super) fn apply_collection(&mut self, upto: &[u64]) {
        for (first, last) in self.progress.going(upto) {
            let gone: Vec<CommandId> =
                self.instances.range(first..=last).map(|(id, _)| *id).collect();
            for id in gone {
                self.forget_content(id);
                self.instances.remove(&id);
                self.gathering.remove(id);
            }
        }
        self.own.collect(upto);
        self.progress.collect(upto);
    }
}
