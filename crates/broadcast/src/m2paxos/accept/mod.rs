//! The accept phase (algorithm 4) and the decision phase (algorithm 5).

pub(super) mod open;

use std::collections::BTreeSet;

use muesli_core::Nanos;

use crate::command::{CommandId, MemberId};
use crate::m2paxos::coordinate::OPEN_MOST;
use crate::m2paxos::coordinate::task::TaskPhase;
use crate::m2paxos::message::{
    AskedSlot, Message, NamedCommand, ObjectEpoch, ObjectSlot, PromisedEpoch, Record,
};
use crate::m2paxos::object::{ObjectLog, SlotState, Value};
use crate::m2paxos::{Effects, M2Paxos, M2PaxosSwitch};
use open::OpenAccept;

impl ObjectLog {
    /// Whether another place may be opened.
    pub(super) fn has_capacity(&self) -> bool {
        self.next <= self.decided + OPEN_MOST
    }
}

impl M2Paxos {
    /// Puts a command at the next place of each of these objects, all of which this member owns.
    pub(super) fn place(&mut self, id: CommandId, objects: &[u64], out: &mut Effects) {
        let one_value = self.keeps(M2PaxosSwitch::OneValue);
        let slots = objects.iter().map(|object| {
            let log = self.objects.get_mut(*object).expect("it is owned");
            assert!(log.is_owned(), "{object} is not owned: {log:?}");
            let slot = log.next.max(log.decided + 1);
            if one_value {
                log.next = slot + 1;
            }
            AskedSlot { object: *object, slot, epoch: log.promised }
        });
        let slots = slots.collect();
        self.set_phase(id, TaskPhase::Accepting);
        self.open_accept(Some(id), slots, out);
    }

    /// Asks all to accept something, oneself first.
    pub(super) fn open_accept(&mut self, value: Value, slots: Vec<AskedSlot>, out: &mut Effects) {
        if self.is_frozen() {
            return; // It is placed anew after the cut.
        }
        let first = *slots.first().expect("something is accepted somewhere");
        let (value, named) = (self.still(value), self.named_value(value));
        self.store(Record::Accepted { value: named.clone(), slots: slots.clone() }, out);
        self.open.insert(first, OpenAccept::new(value, slots.clone(), true, out.now));
        self.open.accept(first, self.me);
        self.send_to_others(&Message::Accept { value: named, slots }, out);
        self.finish_accept(first, out);
    }

    pub(super) fn on_accept(
        &mut self,
        from: MemberId,
        value: Option<NamedCommand>,
        slots: Vec<AskedSlot>,
        out: &mut Effects,
    ) {
        if self.is_frozen() {
            return;
        }
        let all_objects = self.keeps(M2PaxosSwitch::ChecksAllObjects);
        let checked = if all_objects { &slots[..] } else { &slots[..1] };
        let beaten = checked.iter().filter(|it| self.is_beaten_at(it));
        let beaten: Vec<PromisedEpoch> = beaten
            .map(|it| PromisedEpoch { object: it.object, epoch: self.promised(it.object) })
            .collect();
        if !beaten.is_empty() {
            return out.send(from, Message::Refuse(beaten));
        }
        let value = value.filter(|named| !self.progress.is_collected(named.id));
        let id = value.as_ref().map(|named| named.id);
        slots.iter().for_each(|it| self.note_move(it.object, it.epoch, out.now));
        self.store(Record::Accepted { value, slots: slots.clone() }, out);
        slots.iter().for_each(|it| self.lose(it.object, out));
        let answer = Message::AckAccept { value: id, slots: slots.clone() };
        // By grants the owner alone decides, and says so to all: then the next one acts.
        let counts = !self.is_granted();
        let proposer = id.map(|id| id.leader).filter(|proposer| counts && *proposer != from);
        if let Some(proposer) = proposer.filter(|it| *it != self.me) {
            out.send(proposer, answer.clone());
        }
        out.send(from, answer);
        if proposer == Some(self.me) {
            self.count_accept((id, slots.clone()), self.me, out);
            self.count_accept((id, slots), from, out);
        }
    }

    /// Whether nothing of an epoch is taken at a place, as its object was promised since.
    fn is_beaten_at(&self, it: &AskedSlot) -> bool {
        let all_places = self.keeps(M2PaxosSwitch::RefusesAtAllPlaces);
        let is_first = |log: &ObjectLog| it.slot == log.decided + 1;
        let holds_there = all_places || self.objects.get(it.object).is_some_and(is_first);
        holds_there && self.is_beaten(it.object, it.epoch)
    }

    pub(super) fn apply_accept(
        &mut self,
        value: Option<&NamedCommand>,
        slots: &[AskedSlot],
        out: &mut Effects,
    ) {
        if let Some(named) = value {
            self.know(named, out);
        }
        for AskedSlot { object, slot, epoch } in slots {
            let log = self.object(*object);
            log.promise(*epoch);
            if *slot > log.decided || log.slots.contains(*slot) {
                let state = log.slots.or_insert_with(*slot, SlotState::default);
                state.vote = Some((*epoch, value.map(|it| it.id)));
            }
        }
    }

    pub(super) fn on_ack_accept(
        &mut self,
        from: MemberId,
        value: Value,
        slots: Vec<AskedSlot>,
        out: &mut Effects,
    ) {
        let Some(first) = slots.first().copied() else { return };
        let value = self.still(value);
        let is_own = !self.is_granted() && value.is_some_and(|id| id.leader == self.me);
        let is_asked = self.open.get(first).is_some_and(|open| open.asks);
        if is_asked || is_own {
            self.count_accept((value, slots), from, out);
        }
    }

    /// A member has accepted something that this one has asked for, or has proposed.
    fn count_accept(
        &mut self,
        (value, slots): (Value, Vec<AskedSlot>),
        by: MemberId,
        out: &mut Effects,
    ) {
        let first = *slots.first().expect("something is accepted somewhere");
        if slots.iter().any(|it| self.is_over(it.object, it.slot)) {
            return; // That is over.
        }
        if self.open.get(first).is_none() {
            self.open.insert(first, OpenAccept::new(value, slots.clone(), false, out.now));
        }
        let open = self.open.get(first).expect("it is there now");
        let is_same = open.value == value || !self.keeps(M2PaxosSwitch::CountsValues);
        if is_same && open.slots == slots {
            let mut all = (0..self.quorums.members as u16).map(MemberId);
            let counted = match self.keeps(M2PaxosSwitch::CountsSenders) {
                true => by,
                false => all.find(|it| !open.accepted.contains(it)).unwrap_or(by),
            };
            self.open.accept(first, counted);
            self.finish_accept(first, out);
        }
    }

    pub(in crate::m2paxos) fn is_over(&self, object: u64, slot: u64) -> bool {
        let Some(log) = self.objects.get(object) else { return false };
        let it = log.slots.get(slot);
        slot <= log.decided || it.is_some_and(|it| it.decided.is_some())
    }

    /// How many members must accept something.
    fn accept_quorum(&self) -> usize {
        match self.switches.large_quorums {
            true => self.quorums.fast,
            false => self.quorums.majority,
        }
    }

    /// Something is decided once a majority has accepted it.
    fn finish_accept(&mut self, first: AskedSlot, out: &mut Effects) {
        let Some(open) = self.open.get(first) else { return };
        if open.accepted.len() < self.accept_quorum() {
            return;
        }
        let open = self.open.remove(first).expect("found above");
        let slot = |it: &AskedSlot| ObjectSlot { object: it.object, slot: it.slot };
        let slots: Vec<ObjectSlot> = open.slots.iter().map(slot).collect();
        if open.asks {
            let decide = Message::Decide { value: open.value, slots: slots.clone() };
            self.send_to_others(&decide, out);
        }
        self.decide(open.value, slots, out);
    }

    /// This member owns an object no more, if it was promised to somebody else; what was asked for
    /// at its other objects it asks for alone.
    pub(super) fn lose(&mut self, object: u64, out: &mut Effects) {
        let by_promise = self.keeps(M2PaxosSwitch::OwnsByPromise);
        let Some(log) = self.objects.get_mut(object) else { return };
        if !by_promise && log.owned.is_some() {
            log.owned = Some(log.promised);
        }
        if log.owned.is_none() || log.is_owned() {
            return;
        }
        log.owned = None;
        self.act_anew(object);
        let is_lost = |it: &AskedSlot| it.object == object;
        for first in self.open.asked_at(object) {
            // What was asked for again since may have come to its end at once.
            let Some(mut open) = self.open.remove(first) else { continue };
            open.slots.retain(|it| !is_lost(it));
            if !open.slots.is_empty() {
                self.open_accept(open.value, open.slots, out);
            }
            if let Some(id) = open.value {
                // Who owns it now has mostly been shown it, and says it again.
                self.wait_until(id, out.now);
                self.coordinate(id, out);
            }
        }
    }

    /// A member has promised an object to somebody else, and accepts nothing there.
    pub(super) fn refuse_accepts(&mut self, from: MemberId, object: u64, out: &mut Effects) {
        let most = self.most_refusals(self.accept_quorum());
        let drops_alone = self.keeps(M2PaxosSwitch::DropsBeatenAlone);
        let mut lost = BTreeSet::new();
        for first in self.open.asked_at(object) {
            if self.open.refuse(first, from) > most {
                lost.insert(object);
                let slots = self.open.get(first).into_iter().flat_map(|open| &open.slots);
                lost.extend(slots.map(|it| it.object).filter(|_| !drops_alone));
            }
        }
        lost.into_iter().for_each(|object| self.give_up(object, out));
    }

    /// This member owns an object no more: others say that they have promised it to somebody else.
    fn give_up(&mut self, object: u64, out: &mut Effects) {
        let log = self.objects.get_mut(object).expect("an object that was owned");
        if log.owned.is_some() {
            log.owned = Some(ObjectEpoch::default()); // Not the one that is promised.
            self.lose(object, out);
        }
    }

    /// Asks those again who have not answered.
    pub(super) fn ask_again(&mut self, out: &mut Effects) {
        self.ask_for_objects_again(out);
        let Some(late) = out.now.0.checked_sub(self.settings.retry_after.0) else { return };
        for first in self.open.asked_until(Nanos(late)) {
            let Some(open) = self.open.get(first) else { continue };
            let open = open.clone();
            self.open.ask(first, out.now);
            if !open.refused.is_empty() {
                // The others may be dead.
                let is_beaten = |it: &&AskedSlot| self.objects[it.object].observed > it.epoch;
                let beaten: Vec<u64> =
                    open.slots.iter().filter(is_beaten).map(|it| it.object).collect();
                beaten.into_iter().for_each(|object| self.give_up(object, out));
                continue;
            }
            let value = self.named_value(open.value);
            for to in self.others().filter(|to| !open.accepted.contains(to)) {
                out.send(to, Message::Accept { value: value.clone(), slots: open.slots.clone() });
            }
        }
    }

    /// Something is decided, as far as this member hears.
    pub(super) fn decide(&mut self, value: Value, mut slots: Vec<ObjectSlot>, out: &mut Effects) {
        let value = self.still(value);
        slots.retain(|it| {
            let Some(log) = self.objects.get(it.object) else { return true };
            let slot = log.slots.get(it.slot);
            let is_gone = it.slot <= log.decided && slot.is_none();
            !is_gone && slot.is_none_or(|slot| slot.decided.is_none())
        });
        if !slots.is_empty() {
            self.store(Record::Decided { value, slots }, out);
        }
    }

    pub(super) fn apply_decision(&mut self, value: Value, slots: &[ObjectSlot], out: &mut Effects) {
        for place in slots {
            let slots = &mut self.object(place.object).slots;
            let slot = slots.or_insert_with(place.slot, SlotState::default);
            slot.decided = Some(value);
            slot.vote = None;
        }
        if let Some(id) = value {
            self.entry(id, out.now).decided.extend(slots);
            self.note_end(id);
        }
        self.close_accepts(slots, out);
        let mut objects: Vec<u64> = slots.iter().map(|it| it.object).collect();
        objects.sort_unstable();
        objects.dedup();
        for object in objects {
            self.advance(object, out);
        }
        if let Some(id) = value {
            self.coordinate(id, out);
        }
    }

    /// What is decided need not be accepted any more; what was to be at such a place, and is not,
    /// goes elsewhere.
    fn close_accepts(&mut self, decided: &[ObjectSlot], out: &mut Effects) {
        let is_here =
            |it: &AskedSlot| decided.contains(&ObjectSlot { object: it.object, slot: it.slot });
        let closed: BTreeSet<AskedSlot> =
            decided.iter().flat_map(|place| self.open.at(*place)).collect();
        for first in closed {
            let Some(mut open) = self.open.remove(first).filter(|open| open.asks) else {
                continue;
            };
            open.slots.retain(|it| !is_here(it));
            if !open.slots.is_empty() {
                self.open_accept(open.value, open.slots, out);
            }
            if let Some(id) = open.value {
                self.coordinate(id, out);
            }
        }
    }

    /// Goes up to the last place of an object before which all are decided.
    fn advance(&mut self, object: u64, out: &mut Effects) {
        let once = self.keeps(M2PaxosSwitch::DeliversOnce);
        let awaits_prefix = self.keeps(M2PaxosSwitch::AwaitsPrefix);
        loop {
            let Some(log) = self.objects.get_mut(object) else { return };
            let next = log.decided + 1;
            let found = match awaits_prefix {
                true => log.slots.get(next).and_then(|it| it.decided).map(|value| (next, value)),
                false => log.slots.from(next).find_map(|(slot, it)| Some((slot, it.decided?))),
            };
            let Some((next, value)) = found else { return };
            log.decided = next;
            log.next = log.next.max(next + 1);
            let is_over = |id: &CommandId| once && self.progress.is_delivered(*id);
            let Some(id) = value.filter(|id| !is_over(id)) else { continue };
            let entry = self.commands.get_mut(&id).expect("what is decided is known");
            if once && entry.places.contains_key(&object) {
                continue;
            }
            entry.places.insert(object, next);
            log.waiting.insert(next, id);
            if entry.is_complete() {
                self.on_progress(id, out);
            }
        }
    }
}
