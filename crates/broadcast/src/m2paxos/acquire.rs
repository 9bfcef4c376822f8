//! The acquisition phase (algorithm 6): a member comes to own objects.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::Nanos;
use muesli_core::wire::encoded_bytes;

use super::coordinate::task::{Acquisition, TaskPhase};
use super::message::{
    Message, NamedCommand, ObjectEpoch, PromisedEpoch, PromisedObject, Record, SlotVote,
    WantedObject,
};
use super::object::{ObjectLog, Value};
use super::{AskedSlot, Effects, M2Paxos, M2PaxosSwitch, ObjectSlot};
use crate::command::{CommandId, MemberId};

/// So many places are told of at once to who wants to own an object; who lacks more asks for
/// commands first.
const SHOWN_MOST: usize = 2_048;

/// So many bytes of commands go with a promise; others go ahead of it, each by itself.
const NAMED_BYTES: usize = 8 << 10;

/// So many places are filled at once by who comes to own an object.
pub(super) const FILLED_MOST: u64 = 8_192;

impl M2Paxos {
    /// Asks for objects, oneself first. A member asks for an object for one command at a time.
    pub(super) fn acquire(&mut self, id: CommandId, objects: &[u64], out: &mut Effects) {
        assert!(!objects.is_empty(), "{id} wants no object");
        let is_busy = |it: &u64| self.objects.get(*it).is_some_and(|log| log.wanted_for.is_some());
        if objects.iter().any(is_busy) && self.keeps(M2PaxosSwitch::AsksOnce) {
            // It goes on when these have come here.
            return self.wait_until(id, out.now + self.settings.retry_after);
        }
        let me = self.me;
        let foreign = objects.iter().filter(|it| {
            self.objects.get(**it).and_then(ObjectLog::owner).is_some_and(|owner| owner != me)
        });
        let held = foreign.map(|it| self.held_until(*it)).max().filter(|until| *until > out.now);
        if let Some(until) = held.filter(|_| self.keeps(M2PaxosSwitch::HoldsObjects)) {
            return self.wait_to_take(id, until, out.now);
        }
        self.acquire_in(id, objects, None, out);
    }

    /// Asks for objects, in this round, or in one that is later than all that were observed.
    pub(super) fn acquire_in(
        &mut self,
        id: CommandId,
        objects: &[u64],
        round: Option<u32>,
        out: &mut Effects,
    ) {
        let me = self.me;
        let asks_once = self.keeps(M2PaxosSwitch::AsksOnce);
        let from_prefix = self.keeps(M2PaxosSwitch::AsksFromPrefix);
        let wanted: Vec<WantedObject> = (objects.iter())
            .map(|object| {
                let log = self.object(*object);
                let is_asked = log.wanted_for.replace(id).is_some() && !asks_once;
                let next = log.observed.max(log.promised).round + u32::from(!is_asked);
                let round = round.unwrap_or(next);
                let epoch = ObjectEpoch { round, member: me };
                let decided = if from_prefix { log.decided } else { log.last_decided() };
                WantedObject { object: *object, from: decided + 1, epoch }
            })
            .collect();
        let own = self.promise(&wanted, out);
        if !self.keeps(M2PaxosSwitch::OwnsByMajority) {
            wanted.iter().for_each(|it| self.object(it.object).own_unpromised());
        }
        let promises = BTreeMap::from([(me, own)]);
        let acquisition = Acquisition {
            wanted: wanted.clone(),
            promises,
            refused: BTreeSet::new(),
            asked: out.now,
        };
        self.set_phase(id, TaskPhase::Acquiring(acquisition));
        self.send_to_others(&Message::Prepare(wanted), out);
        self.finish_acquisition(id, out);
    }

    /// Promises objects; what is known of them.
    fn promise(&mut self, wanted: &[WantedObject], out: &mut Effects) -> Vec<PromisedObject> {
        let epochs = wanted.iter().map(|it| PromisedEpoch { object: it.object, epoch: it.epoch });
        let epochs: Vec<PromisedEpoch> = epochs.collect();
        wanted.iter().for_each(|it| self.note_move(it.object, it.epoch, out.now));
        self.store(Record::Promised(epochs), out);
        let shows_all = self.keeps(M2PaxosSwitch::ShowsAllPlaces);
        let shows_decisions = self.keeps(M2PaxosSwitch::ShowsDecisions);
        let known = wanted.iter().map(|it| {
            let log = self.objects.get(it.object).expect("it was promised");
            let mut known = log.from(it.object, it.from, it.epoch);
            if !shows_all {
                known.votes.retain(|vote| vote.slot == it.from);
                known.decided.retain(|decided| decided.slot == it.from);
            }
            if !shows_decisions {
                known.decided.clear();
            }
            known
        });
        known.collect()
    }

    /// Whether an epoch comes before the one in which this member has promised an object.
    pub(super) fn is_beaten(&self, object: u64, epoch: ObjectEpoch) -> bool {
        let promised = self.promised(object);
        match self.keeps(M2PaxosSwitch::UniqueEpochs) {
            true => epoch < promised,
            false => epoch.round < promised.round,
        }
    }

    /// An object is about to be promised to somebody.
    pub(super) fn note_move(&mut self, object: u64, epoch: ObjectEpoch, now: Nanos) {
        let log = self.object(object);
        if log.owner() != Some(epoch.member) && log.promised < epoch {
            log.moved = Some(now);
        }
    }

    pub(super) fn apply_promise(&mut self, promised: &[PromisedEpoch]) {
        for PromisedEpoch { object, epoch } in promised {
            self.object(*object).promise(*epoch);
        }
    }

    pub(super) fn on_prepare(
        &mut self,
        from: MemberId,
        wanted: &[WantedObject],
        out: &mut Effects,
    ) {
        if self.is_frozen() {
            return;
        }
        // The same member may ask again.
        let beaten = wanted.iter().filter(|it| self.is_beaten(it.object, it.epoch));
        let beaten: Vec<PromisedEpoch> = beaten
            .map(|it| PromisedEpoch { object: it.object, epoch: self.promised(it.object) })
            .collect();
        if !beaten.is_empty() {
            return out.send(from, Message::Refuse(beaten));
        }
        let count = |it: &WantedObject| {
            self.objects.get(it.object).map_or(0, |log| log.slots.from(it.from).count())
        };
        if wanted.iter().map(count).sum::<usize>() > SHOWN_MOST {
            return; // It is far behind, and hears of that by reports.
        }
        let objects = self.promise(wanted, out);
        wanted.iter().for_each(|it| self.lose(it.object, out));
        let named = objects.iter().flat_map(|it| {
            let votes = it.votes.iter().filter_map(|vote| vote.value);
            votes.chain(it.decided.iter().filter_map(|decided| decided.value))
        });
        let named: BTreeSet<CommandId> = named.collect();
        let (mut commands, mut bytes) = (Vec::new(), 0);
        for named in named.into_iter().filter_map(|id| self.named(id)) {
            bytes += encoded_bytes(&named);
            // Whoever misses one of those that go ahead does not count the promise, and asks again.
            match bytes <= NAMED_BYTES {
                true => commands.push(named),
                false => out.send(from, Message::ShowCommand(named)),
            }
        }
        out.send(from, Message::Promise { objects, commands });
    }

    pub(super) fn on_promise(
        &mut self,
        from: MemberId,
        objects: Vec<PromisedObject>,
        commands: &[NamedCommand],
        out: &mut Effects,
    ) {
        let Some(first) = objects.first().filter(|_| !self.is_frozen()) else { return };
        let wanted_for = match self.keeps(M2PaxosSwitch::AsksOnce) {
            true => self.objects.get(first.object).and_then(|log| log.wanted_for),
            false => self.tasks.asking_for(first.object),
        };
        let Some(id) = wanted_for else { return };
        let task = self.tasks.get(id).map(|task| &task.phase);
        let Some(TaskPhase::Acquiring(acquisition)) = task else { return };
        let asked = acquisition.wanted.iter().map(|it| (it.object, it.epoch));
        if !asked.eq(objects.iter().map(|it| (it.object, it.epoch))) {
            return; // Of an earlier time.
        }
        commands.iter().for_each(|named| self.learn(named, out));
        let is_known =
            |value: CommandId| self.progress.is_collected(value) || self.named(value).is_some();
        let mut voted = objects.iter().flat_map(|it| &it.votes).filter_map(|vote| vote.value);
        if !voted.all(is_known) {
            return; // Members say what the commands say that they have accepted.
        }
        let Some(acquisition) = self.tasks.acquisition(id) else { return };
        acquisition.promises.insert(from, objects);
        self.finish_acquisition(id, out);
    }

    fn finish_acquisition(&mut self, id: CommandId, out: &mut Effects) {
        let task = self.tasks.get(id).map(|task| &task.phase);
        let Some(TaskPhase::Acquiring(acquisition)) = task else { return };
        if acquisition.promises.len() < self.quorums.recovery {
            return;
        }
        let Acquisition { wanted, promises, .. } = acquisition.clone();
        self.set_phase(id, TaskPhase::Waiting(out.now));
        // Beside others that were promised since, which are lost again.
        let is_mine =
            |(_, it): &(usize, WantedObject)| self.objects[it.object].promised == it.epoch;
        let won: Vec<(usize, WantedObject)> =
            wanted.iter().copied().enumerate().filter(is_mine).collect();
        // Who promises answers what was asked for, in its order.
        let promised_of = |place: usize| promises.values().map(move |all| &all[place]);
        for (place, it) in &won {
            for decided in promised_of(*place).flat_map(|it| &it.decided) {
                let place = ObjectSlot { object: it.object, slot: decided.slot };
                if !self.is_over(place.object, place.slot) {
                    // Who asked for it has lost the object, and may not know that.
                    let (value, slots) = (self.still(decided.value), vec![place]);
                    self.send_to_others(&Message::Decide { value, slots }, out);
                }
                self.decide(decided.value, vec![place], out);
            }
        }
        let mut forced: BTreeMap<Value, Vec<AskedSlot>> = BTreeMap::new();
        let (mut is_behind, mut single) = (false, None);
        let fills = self.keeps(M2PaxosSwitch::FillsGaps);
        for (place, it) in &won {
            let votes = promised_of(*place).flat_map(|it| &it.votes);
            let latest = self.latest_votes(votes, &mut single);
            let log = self.object(it.object);
            let last = latest.keys().last().copied().unwrap_or(0).max(log.last_decided());
            if last > log.decided + FILLED_MOST {
                is_behind = true; // It catches up first, and does not own the object.
                continue;
            }
            log.owned = Some(it.epoch);
            log.next = last + 1;
            for slot in log.decided + 1..=last {
                let is_decided = log.slots.get(slot).is_some_and(|it| it.decided.is_some());
                let value = latest.get(&slot).copied();
                if is_decided || (value.is_none() && !fills) {
                    continue;
                }
                let asked = AskedSlot { object: it.object, slot, epoch: it.epoch };
                forced.entry(value.flatten()).or_default().push(asked);
            }
        }
        for (value, slots) in forced {
            self.open_accept(value, slots, out);
        }
        self.look_at_heads(id, wanted.iter().map(|it| it.object));
        match is_behind {
            true => self.give_up_acquisition(id, out.now),
            false => self.coordinate(id, out),
        }
        self.go_on_with(&wanted, out);
    }

    /// By place of one object, the vote of the latest epoch. Where one value alone is said again,
    /// it is the first one of all objects: `single`.
    fn latest_votes<'a>(
        &self,
        votes: impl Iterator<Item = &'a SlotVote>,
        single: &mut Option<Value>,
    ) -> BTreeMap<u64, Value> {
        if !self.keeps(M2PaxosSwitch::ForcesVotes) {
            return BTreeMap::new();
        }
        let first_counts = self.keeps(M2PaxosSwitch::FirstEpochCounts);
        let forces_latest = self.keeps(M2PaxosSwitch::ForcesLatest);
        let mut latest: BTreeMap<u64, (ObjectEpoch, Value)> = BTreeMap::new();
        for vote in votes.filter(|vote| vote.epoch.round > 1 || first_counts) {
            let shown = (vote.epoch, vote.value);
            let known = latest.entry(vote.slot).or_insert(shown);
            *known = if forces_latest { shown.max(*known) } else { shown.min(*known) };
        }
        let mut latest: BTreeMap<u64, Value> =
            latest.into_iter().map(|(slot, (_, value))| (slot, value)).collect();
        if !self.keeps(M2PaxosSwitch::ForcesByPlace) {
            *single = single.or(latest.values().next().copied());
            latest.retain(|_, value| Some(*value) == *single);
        }
        latest
    }

    /// Goes on with commands that have waited for objects which were asked for.
    fn go_on_with(&mut self, wanted: &[WantedObject], out: &mut Effects) {
        let waiting = wanted.iter().flat_map(|it| self.tasks.waiting_for(it.object));
        let waiting: BTreeSet<CommandId> = waiting.collect();
        waiting.into_iter().for_each(|id| self.coordinate(id, out));
    }

    /// Others have promised objects to somebody else.
    pub(super) fn on_refuse(
        &mut self,
        from: MemberId,
        promised: &[PromisedEpoch],
        out: &mut Effects,
    ) {
        if self.is_frozen() {
            return;
        }
        for PromisedEpoch { object, epoch } in promised {
            let observes = self.keeps(M2PaxosSwitch::ObservesRefusals);
            let log = self.object(*object);
            if observes {
                log.observed = log.observed.max(*epoch);
            }
            let (wanted_for, owned) = (log.wanted_for, log.owned);
            if let Some(id) = wanted_for {
                self.refuse_acquisition(from, id, out.now);
            }
            if owned.is_some_and(|owned| owned < *epoch) {
                self.refuse_accepts(from, *object, out);
            }
        }
    }

    /// So many members may refuse something of which so many must take it.
    pub(super) fn most_refusals(&self, quorum: usize) -> usize {
        match self.keeps(M2PaxosSwitch::AwaitsRefusals) {
            true => self.quorums.members - quorum,
            false => 0,
        }
    }

    fn refuse_acquisition(&mut self, from: MemberId, id: CommandId, now: Nanos) {
        let most = self.most_refusals(self.quorums.recovery);
        let Some(acquisition) = self.tasks.acquisition(id) else { return };
        acquisition.refused.insert(from);
        if acquisition.refused.len() <= most {
            return;
        }
        self.give_up_acquisition(id, now);
    }

    /// Objects did not come here: they are asked for again.
    fn give_up_acquisition(&mut self, id: CommandId, now: Nanos) {
        self.void_grants(id);
        self.wait(id, now);
    }

    /// Asks those again who have not answered. Where some have refused, the others may be dead: it
    /// tries again with a later epoch.
    pub(super) fn ask_for_objects_again(&mut self, out: &mut Effects) {
        for id in self.tasks.due(out.now) {
            let Some(acquisition) = self.tasks.acquisition(id) else { continue };
            if !acquisition.refused.is_empty() {
                self.give_up_acquisition(id, out.now);
                continue;
            }
            let (promises, wanted) = (&acquisition.promises, acquisition.wanted.clone());
            let others = self.me.others(self.quorums.members);
            let open: Vec<MemberId> = others.filter(|to| !promises.contains_key(to)).collect();
            self.tasks.ask(id, out.now);
            open.into_iter().for_each(|to| out.send(to, Message::Prepare(wanted.clone())));
        }
    }
}
