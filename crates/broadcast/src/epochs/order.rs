//! What the broadcast of an epoch wants done, and the end of an epoch.

use super::list::{GroupEpoch, MemberChange, MemberList};
use super::message::{
    DeliveredRequest, EpochEffect, EpochEffectsOf, EpochMessage, EpochRecord, ProposedRequests,
};
use super::previous::PreviousEpoch;
use super::request::{OrderedRequest, RequestBatch, RequestContent, RequestId};
use super::{EpochMember, EpochSwitch, MemberState};
use crate::broadcast::{Broadcast, EffectsOf};
use crate::command::{Command, CommandId, MemberId};
use crate::effects::{BroadcastEffect, BroadcastEffects, DeliveredCommand};

/// What the broadcast of an epoch wants done.
type OrderedEffects<B> = Vec<BroadcastEffect<<B as Broadcast>::Message, <B as Broadcast>::Record>>;

impl<B: Broadcast> EpochMember<B> {
    /// Has the broadcast of this epoch do something, and does what it wants done.
    pub(super) fn order(
        &mut self,
        out: &mut EpochEffectsOf<B>,
        run: impl FnOnce(&mut B, &mut EffectsOf<B>),
    ) {
        let Some(current) = &mut self.current else { return };
        let mut inside = BroadcastEffects::at(out.now);
        run(current, &mut inside);
        self.perform(self.list.epoch, inside.effects, None, out);
    }

    /// The same with the broadcast of the epoch before, which decides what is not known to all.
    pub(super) fn order_previous(
        &mut self,
        out: &mut EpochEffectsOf<B>,
        run: impl FnOnce(&mut B, &mut EffectsOf<B>),
    ) {
        let Some(previous) = &mut self.previous else { return };
        let mut inside = BroadcastEffects::at(out.now);
        run(&mut previous.ordered, &mut inside);
        let epoch = previous.list.epoch;
        self.perform(epoch, inside.effects, None, out);
    }

    /// Proposes what waits for that, until nothing does.
    pub(super) fn propose_waiting(&mut self, out: &mut EpochEffectsOf<B>) {
        while let Some(current) = &mut self.current
            && let Some(batch) = self.own.next(self.batches, |it| current.decided_at(it))
        {
            let mut inside = BroadcastEffects::at(out.now);
            let id = current.propose(self.own.command(&batch), &mut inside);
            let last = *batch.requests.last().expect("a batch has a request");
            self.own.propose(id, batch);
            let proposed = ProposedRequests { id, last };
            self.perform(self.list.epoch, inside.effects, Some(proposed), out);
        }
    }

    /// Does what the broadcast of an epoch wants done; its first record says what is proposed.
    pub(super) fn perform(
        &mut self,
        epoch: GroupEpoch,
        effects: OrderedEffects<B>,
        mut proposed: Option<ProposedRequests>,
        out: &mut EpochEffectsOf<B>,
    ) {
        for effect in effects {
            match effect {
                BroadcastEffect::Send { to, message } => {
                    let list = self.list_of(epoch).expect("an epoch that is not forgotten");
                    let to = list.name_at(to).expect("members speak to members");
                    out.send(to, EpochMessage::Ordered { epoch, message });
                }
                BroadcastEffect::Log(record) => {
                    let proposed = proposed.take();
                    out.log(EpochRecord::Ordered { epoch, record, proposed });
                }
                BroadcastEffect::Deliver(delivered) => self.deliver(epoch, delivered, out),
                BroadcastEffect::GivenUp(id) => {
                    if epoch == self.list.epoch {
                        let requests = self.own.end_command(id);
                        self.own.propose_anew(requests);
                    }
                }
            }
        }
    }

    fn list_of(&self, epoch: GroupEpoch) -> Option<&MemberList> {
        let previous = self.previous.as_ref().map(|previous| &previous.list);
        std::iter::once(&self.list).chain(previous).find(|list| list.epoch == epoch)
    }

    /// A command's turn has come in an epoch. What comes after a change of the same epoch comes
    /// nowhere.
    fn deliver(
        &mut self,
        epoch: GroupEpoch,
        delivered: DeliveredCommand,
        out: &mut EpochEffectsOf<B>,
    ) {
        let is_over = epoch != self.list.epoch;
        if is_over && self.switches.keeps(EpochSwitch::ChangesEndEpochs) {
            return;
        }
        let DeliveredCommand { id, command, predecessors } = delivered;
        let leader = self.list_of(epoch).and_then(|list| list.name_at(id.leader));
        let own = (leader == Some(self.me)).then(|| self.own.end_command(id));
        for OrderedRequest { sequence, objects, content } in RequestBatch::of(&command).requests {
            let Some(list) = self.list_of(epoch) else { return };
            let Some(member) = list.name_at(id.leader) else { return };
            let request = RequestId { member, sequence };
            if member == self.me {
                self.own.end(sequence);
            }
            let is_new = self.delivered.insert(CommandId { leader: id.leader, sequence });
            if !is_new && self.switches.keeps(EpochSwitch::DeliversOnce) {
                continue; // It is in the state that was taken.
            }
            let objects = objects.expect("each says what it touches");
            match content {
                RequestContent::Command(payload) => {
                    let command = Command { objects, payload };
                    let predecessors = predecessors.clone();
                    let delivered = DeliveredRequest { request, id, command, predecessors };
                    out.add(EpochEffect::Deliver(delivered));
                }
                RequestContent::Change(change) => {
                    let is_sound = objects.is_everything() && !is_over;
                    self.on_change(request, change, is_sound, out);
                }
            }
        }
        // Nothing is left, unless who says what the command was lies.
        self.own.propose_anew(own.unwrap_or_default());
    }

    /// A change was delivered.
    fn on_change(
        &mut self,
        request: RequestId,
        change: MemberChange,
        is_sound: bool,
        out: &mut EpochEffectsOf<B>,
    ) {
        match is_sound.then(|| self.list.judge(change)) {
            Some(Ok(place)) => self.end_epoch(change, place, out),
            Some(Err(_)) | None if request.member == self.me => {
                out.add(EpochEffect::ChangeVoid(request));
            }
            Some(Err(_)) | None => {}
        }
    }

    /// A change was delivered. All members have delivered the same commands then, and none of them
    /// has said anything in the next epoch.
    fn end_epoch(&mut self, change: MemberChange, place: MemberId, out: &mut EpochEffectsOf<B>) {
        let next = self.list.after(change);
        let list = std::mem::replace(&mut self.list, next);
        let mut over = vec![0; place.place()];
        over.push(CommandId::SEQUENCE_MAX);
        self.delivered.remove_up_to(&over);
        let ordered = self.current.take().expect("a change is delivered to a member");
        self.previous = Some(PreviousEpoch::new(list, ordered));
        self.giving.end_all(out);
        if self.taking.as_ref().is_some_and(|head| head.list.epoch <= self.list.epoch) {
            self.taking = None; // It has come there by itself.
            self.transfer = None;
        }
        self.begin_epoch(out);
    }

    /// Begins with the epoch of the list: it has said nothing there.
    pub(super) fn begin_epoch(&mut self, out: &mut EpochEffectsOf<B>) {
        if !self.switches.keeps(EpochSwitch::ProposesAnew) {
            self.own.clear();
        }
        self.own.begin_epoch();
        self.behind.take_if(|behind| *behind <= self.list.epoch);
        self.ahead.take_if(|(ahead, _)| *ahead <= self.list.epoch);
        match self.list.place_of(self.me) {
            Some(place) => {
                self.state = MemberState::Member;
                let members = self.list.members.len();
                self.current = Some(B::new(place, members, &self.settings, &self.choice));
                out.add(EpochEffect::EpochBegan(self.list.clone()));
            }
            None => {
                self.state = MemberState::Replaced;
                out.add(EpochEffect::Replaced);
            }
        }
    }
}
