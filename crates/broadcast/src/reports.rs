//! Members say what they have delivered: what one has missed it asks for, and what all have
//! delivered is forgotten.

use muesli_core::Nanos;

use crate::command::{CommandId, MemberId};
use crate::effects::BroadcastEffects;
use crate::id_set::IdSet;
use crate::progress::DeliveryProgress;

/// What members of all broadcasts say of their progress.
pub(crate) enum ProgressReport {
    /// I have delivered these, or they are nothing.
    Delivered(IdSet),
    /// What has it that has not ended here, or was not delivered here?
    Missing(IdSet),
}

/// A member that says what it has delivered, and forgets what all have.
pub(crate) trait DeliveryReports {
    /// What members say to each other.
    type Message: From<ProgressReport> + Clone;
    /// What must survive a crash.
    type Record;

    /// What members have delivered, as far as this one knows.
    fn progress(&mut self) -> &mut DeliveryProgress;

    /// How often it says what it has delivered, and after which time what is missing is asked for
    /// again.
    fn report_times(&self) -> (Nanos, Nanos);

    /// Of how many members it is one.
    fn group_size(&self) -> usize;

    /// Whether it forgets what all members have delivered. Broken: what it has delivered itself.
    fn collects_delivered(&self) -> bool;

    /// What a member is to know of a command whose end it does not know, if it is known here.
    fn show_end(&self, id: CommandId) -> Option<Self::Message>;

    /// Writes down that all up to here is forgotten, and forgets it.
    fn store_collected(
        &mut self,
        upto: Vec<u64>,
        out: &mut BroadcastEffects<Self::Message, Self::Record>,
    );

    /// Says to the others what was delivered, if it is time.
    fn report(&mut self, out: &mut BroadcastEffects<Self::Message, Self::Record>) {
        let ((every, _), members) = (self.report_times(), self.group_size());
        let Some(delivered) = self.progress().due_report(every, out.now) else { return };
        let message = Self::Message::from(ProgressReport::Delivered(delivered));
        for to in self.progress().member().others(members) {
            out.send(to, message.clone());
        }
        self.collect(out);
    }

    fn on_delivered(
        &mut self,
        from: MemberId,
        delivered: IdSet,
        out: &mut BroadcastEffects<Self::Message, Self::Record>,
    ) {
        let (_, retry_after) = self.report_times();
        if let Some(ended) = self.progress().report(from, delivered, retry_after, out.now) {
            out.send(from, ProgressReport::Missing(ended).into());
        }
        self.collect(out);
    }

    /// Sends the ends of commands whose end another member does not know, the oldest first.
    fn on_missing(
        &mut self,
        from: MemberId,
        ended: &IdSet,
        out: &mut BroadcastEffects<Self::Message, Self::Record>,
    ) {
        let missed = self.progress().missed(ended);
        let shown = missed.into_iter().filter_map(|id| self.show_end(id));
        shown.for_each(|message| out.send(from, message));
        let delivered = self.progress().delivered().clone();
        out.send(from, ProgressReport::Delivered(delivered).into());
    }

    /// Forgets what all members have delivered.
    fn collect(&mut self, out: &mut BroadcastEffects<Self::Message, Self::Record>) {
        let upto = match self.collects_delivered() {
            true => self.progress().collectable(),
            false => Some(self.progress().upto()),
        };
        if let Some(upto) = upto {
            self.store_collected(upto, out);
        }
    }
}
