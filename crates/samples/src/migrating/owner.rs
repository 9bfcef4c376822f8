//! The participant: a repository that owns objects, fetches those that it needs, and gives those
//! away that others need.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::parts::locator::{Hints, Holding, Holdings, Locator, Movable, Owners};
use muesli_core::parts::single_repository::{
    KnownOutcomes, NewValues, ReadVersions, RepositoryRequest, SingleRepository,
};
use muesli_core::{
    Abort, Address, Catalog, Context, Decision, LoggedRole, Nanos, Participant, Rejection,
    RepositoryId, Role, Settings, SmallBytes, SpaceId, StateMachine, Timestamp, TxnId, timers,
    wire_struct,
};

use super::directory::directory_of;
use super::{Key, Message, Migrating, Object, Record, Switches};

/// So many hints are kept.
const HINTS_MAX: usize = 4_096;
/// A request is passed on so often at most: what is longer is on a stale way, and is repeated.
const HOPS_MAX: u8 = 16;

/// What an ask is recognized by when it is repeated: who asks, and the number of the operation or
/// the transaction.
type Asker = (Address, u32, u64);

/// An object that went, and has not been received for certain.
#[derive(Clone, Debug)]
pub struct Leaving {
    to: RepositoryId,
    epoch: u64,
    object: Object,
}

wire_struct!(Leaving { to: RepositoryId, epoch: u64, object: Object });

/// The participant: it owns objects.
#[derive(Clone, Debug)]
pub struct ObjectOwner {
    id: RepositoryId,
    switches: Switches,
    /// What is here; an object that was never written need not be listed.
    pub(super) objects: BTreeMap<Key, Object>,
    pub(super) holdings: Holdings<Key>,
    pub(super) hints: Hints<Key>,
    pub(super) leaving: BTreeMap<Key, Leaving>,
    pub(super) latest: Timestamp,
    pub(super) outcomes: KnownOutcomes,
    /// What waits for objects, since when.
    waiting: BTreeMap<Asker, (RepositoryRequest, Nanos)>,
    is_armed: bool,
}

timers! {
    /// The timers of a participant.
    pub enum OwnerTimer {
        /// Asks for objects again that have not come, and gives those again that have not arrived.
        Repeat = 0,
    }
}

/// The objects that an ask needs.
fn needed(ask: &RepositoryRequest) -> BTreeSet<Key> {
    match ask {
        RepositoryRequest::Read { space, key, .. } => BTreeSet::from([(*space, key.clone())]),
        RepositoryRequest::Commit { reads, writes, .. } => {
            let reads = reads.iter().map(|(space, key, _)| (*space, key.clone()));
            reads.chain(writes.iter().map(|(space, key, _)| (*space, key.clone()))).collect()
        }
    }
}

impl ObjectOwner {
    fn owns(&self, key: &Key, catalog: &Catalog) -> bool {
        // Copies of a key at several repositories are not used: the first holder has it.
        let first = || key.first_holders(catalog).first().copied();
        let held = self.holdings.of(key);
        let owns = held.map_or_else(|| first() == Some(self.id), |held| held.holds);
        owns || self.switches.keeps_what_it_gave && held.is_some()
    }

    fn arm(&mut self, cx: &mut Context<'_, Migrating>) {
        if !self.is_armed {
            self.is_armed = true;
            cx.set_timer(OwnerTimer::Repeat, cx.settings.retry_after);
        }
    }

    /// Serves an ask if all that it needs is here, and asks for the rest.
    fn serve(&mut self, from: Address, ask: RepositoryRequest, cx: &mut Context<'_, Migrating>) {
        let asker = match &ask {
            RepositoryRequest::Read { op, .. } => (from, 0, *op),
            RepositoryRequest::Commit { txn, .. } => (from, 1, txn.sequence),
        };
        let missing: Vec<Key> =
            needed(&ask).into_iter().filter(|key| !self.owns(key, cx.catalog)).collect();
        if missing.is_empty() {
            self.waiting.remove(&asker);
            if let Some(tell) = self.answer(ask, cx) {
                cx.send(from, Message::Tell { tell });
            }
            return;
        }
        let now = cx.now();
        if self.waiting.insert(asker, (ask, now)).is_none() {
            missing.iter().for_each(|key| self.fetch(key, cx));
        }
        self.arm(cx);
    }

    fn fetch(&self, key: &Key, cx: &mut Context<'_, Migrating>) {
        let owner = self.hints.locate(key, cx.catalog).holders[0];
        if owner != self.id {
            let want = Message::Want { key: key.clone(), to: self.id, hops: 0 };
            cx.send_to_repository(owner, want);
        }
    }

    /// Logs a record and does what it says.
    fn note(&mut self, record: Record, cx: &mut Context<'_, Migrating>) {
        cx.log(|| record.clone());
        self.apply(record);
    }

    /// Whether an object that somebody else needs is kept for what waits here.
    fn is_kept(&self, key: &Key, to: RepositoryId, cx: &Context<'_, Migrating>) -> bool {
        let waits = |(ask, since): &(RepositoryRequest, Nanos)| {
            *since + cx.settings.lock_wait > cx.now() && needed(ask).contains(key)
        };
        to > self.id && self.waiting.values().any(waits)
    }

    fn on_want(&mut self, key: Key, to: RepositoryId, hops: u8, cx: &mut Context<'_, Migrating>) {
        if to == self.id || self.is_kept(&key, to, cx) {
            return; // It asks again.
        }
        if self.owns(&key, cx.catalog) && !self.leaving.contains_key(&key) {
            let epoch = self.holdings.epoch(&key) + 1;
            self.note(Record::Gave { key: key.clone(), epoch, to }, cx);
            self.give(&key, cx);
            self.arm(cx);
        } else if self.leaving.get(&key).is_none_or(|leaving| leaving.to != to) && hops < HOPS_MAX {
            let owner = self.hints.locate(&key, cx.catalog).holders[0];
            if owner != self.id {
                cx.send_to_repository(owner, Message::Want { key, to, hops: hops + 1 });
            }
        }
    }

    fn give(&self, key: &Key, cx: &mut Context<'_, Migrating>) {
        let Leaving { to, epoch, object } = self.leaving[key].clone();
        let (key, latest) = (key.clone(), self.latest);
        cx.send_to_repository(to, Message::Give { key, epoch, object, latest });
    }

    fn on_give(
        &mut self,
        from: Address,
        (key, epoch): (Key, u64),
        (object, latest): (Object, Timestamp),
        cx: &mut Context<'_, Migrating>,
    ) {
        if epoch > self.holdings.epoch(&key) {
            self.note(Record::Came { key: key.clone(), epoch, object, latest }, cx);
            let owners = Owners { epoch, holders: [self.id].into_iter().collect() };
            let owns = Message::Owns { key: key.clone(), owners };
            cx.send(directory_of(cx.catalog), owns);
        }
        let Role::Repository(giver) = from.role else { return };
        cx.send_to_repository(giver, Message::Got { key, epoch });
        self.serve_waiting(cx);
    }

    fn serve_waiting(&mut self, cx: &mut Context<'_, Migrating>) {
        let asks: Vec<(Address, RepositoryRequest)> =
            self.waiting.iter().map(|((from, ..), (ask, _))| (*from, ask.clone())).collect();
        for (from, ask) in asks {
            if needed(&ask).iter().all(|key| self.owns(key, cx.catalog)) {
                self.serve(from, ask, cx);
            }
        }
    }

    fn repeat(&mut self, cx: &mut Context<'_, Migrating>) {
        self.is_armed = false;
        // Whoever does not ask any more is gone: an ask is repeated more often than that.
        let (now, patience) = (cx.now(), Nanos(cx.settings.retry_after.0 * 64));
        self.waiting.retain(|_, (_, since)| *since + patience > now);
        let mut missing = BTreeSet::new();
        for (ask, _) in self.waiting.values() {
            missing.extend(needed(ask).into_iter().filter(|key| !self.owns(key, cx.catalog)));
        }
        for key in &missing {
            cx.send(directory_of(cx.catalog), Message::WhereIs { key: key.clone() });
            self.fetch(key, cx);
        }
        let leaving: Vec<Key> = self.leaving.keys().cloned().collect();
        leaving.iter().for_each(|key| self.give(key, cx));
        if !missing.is_empty() || !leaving.is_empty() {
            self.arm(cx);
        }
    }
}

impl SingleRepository<Migrating> for ObjectOwner {
    fn outcomes(&mut self) -> &mut KnownOutcomes {
        &mut self.outcomes
    }

    fn read(&self, space: SpaceId, key: SmallBytes) -> (Timestamp, Option<SmallBytes>) {
        let object = self.objects.get(&(space, key)).cloned().unwrap_or_default();
        (object.version, object.value)
    }

    fn decide(&self, _: TxnId, reads: ReadVersions) -> Decision {
        let is_new = |(space, key, version)| self.read(space, key).0 == version;
        match self.switches.skips_validation || reads.into_iter().all(is_new) {
            true => Decision::Commit(self.latest.after(1, self.id)),
            false => Decision::Abort(Abort::StaleRead),
        }
    }

    fn record(txn: TxnId, decision: Decision, writes: NewValues) -> Record {
        Record::Ended { txn, decision, writes }
    }

    fn apply(&mut self, record: Record) {
        match record {
            Record::Ended { txn, decision, writes } => {
                if let Decision::Commit(at) = decision {
                    assert!(at > self.latest, "{txn} commits at {at}, after {}", self.latest);
                    self.latest = at;
                    for (space, key, value) in writes {
                        self.objects.insert((space, key), Object { version: at, value });
                    }
                }
                self.outcomes.decide(txn, decision);
            }
            Record::Gave { key, epoch, to } => {
                let object = match self.switches.keeps_what_it_gave {
                    true => self.objects.get(&key).cloned(),
                    false => self.objects.remove(&key),
                };
                let object = object.unwrap_or_default();
                self.holdings.note(key.clone(), Holding { epoch, holds: false, at: self.latest });
                let owners = Owners { epoch, holders: [to].into_iter().collect() };
                self.hints.learn(key.clone(), owners);
                let before = self.leaving.insert(key, Leaving { to, epoch, object });
                assert!(before.is_none(), "an object that leaves does not leave again");
            }
            Record::Came { key, epoch, object, latest } => {
                self.latest = self.latest.max(latest);
                assert!(object.version <= self.latest, "no version is later than its owner's last");
                self.holdings.note(key.clone(), Holding { epoch, holds: true, at: self.latest });
                // It came back, so whoever had it meanwhile had received it.
                self.leaving.remove(&key);
                self.objects.insert(key, object);
            }
            Record::Arrived { key, epoch } => {
                if self.leaving.get(&key).is_some_and(|leaving| leaving.epoch == epoch) {
                    self.leaving.remove(&key);
                }
            }
        }
    }
}

impl StateMachine<Migrating> for ObjectOwner {
    type Timer = OwnerTimer;

    muesli_core::role_without_links!(Migrating);
    muesli_core::role_without_judgement!(Migrating);

    fn unfinished(&self) -> usize {
        self.leaving.len()
    }

    fn assert_invariants(&self) {
        self.holdings.assert_invariants();
        self.hints.assert_invariants();
        let newest = self.objects.values().map(|it| it.version).max();
        assert!(newest.is_none_or(|newest| newest <= self.latest), "no object is of the future");
        for key in self.leaving.keys() {
            let held = self.holdings.of(key).expect("what leaves has moved");
            assert!(!held.holds, "what leaves is not here");
            let gone = self.switches.keeps_what_it_gave || !self.objects.contains_key(key);
            assert!(gone, "what leaves is in one place");
        }
    }
}

impl LoggedRole<Migrating> for ObjectOwner {
    muesli_core::role_copied_at_once!(Migrating);
    muesli_core::role_that_stays!(Migrating);

    fn start(&mut self, cx: &mut Context<'_, Migrating>) {
        self.is_armed = false;
        self.arm(cx);
    }

    fn receive(&mut self, from: Address, message: Message, cx: &mut Context<'_, Migrating>) {
        match message {
            Message::Ask { ask } => self.serve(from, ask, cx),
            Message::Want { key, to, hops } => self.on_want(key, to, hops, cx),
            Message::Give { key, epoch, object, latest } => {
                self.on_give(from, (key, epoch), (object, latest), cx);
            }
            Message::Got { key, epoch } => {
                if self.leaving.get(&key).is_some_and(|leaving| leaving.epoch == epoch) {
                    let record = Record::Arrived { key, epoch };
                    cx.log_lazily(|| record.clone());
                    self.apply(record);
                }
            }
            Message::Owns { key, owners } => {
                self.hints.learn(key.clone(), owners);
                if !self.owns(&key, cx.catalog) {
                    self.fetch(&key, cx);
                }
            }
            Message::Tell { .. } | Message::WhereIs { .. } => {} // For others.
        }
    }

    fn timer(&mut self, timer: OwnerTimer, cx: &mut Context<'_, Migrating>) {
        match timer {
            OwnerTimer::Repeat => self.repeat(cx),
        }
    }

    fn replay(&mut self, record: Record, _: &mut Context<'_, Migrating>) {
        self.apply(record);
    }
}

impl Participant<Migrating> for ObjectOwner {
    muesli_core::participant_without_marks!(Migrating);
    muesli_core::participant_kept_by_one_node!();
    muesli_core::participant_without_sizes!();

    fn new(id: RepositoryId, _: &Settings, switches: &Switches) -> ObjectOwner {
        let (objects, holdings, leaving, outcomes, waiting) = Default::default();
        ObjectOwner {
            id,
            switches: *switches,
            objects,
            holdings,
            hints: Hints::new(HINTS_MAX),
            leaving,
            latest: Timestamp::ZERO,
            outcomes,
            waiting,
            is_armed: false,
        }
    }

    fn judge_record(&self, _: &Record, _: &Catalog) -> Result<(), Rejection> {
        Ok(())
    }

    fn answer_behind(&mut self, _: &Message, _: &mut Context<'_, Migrating>) -> bool {
        false
    }

    fn end(&mut self, _: &Settings) {}

    fn chains(&self, _: &Catalog) -> Vec<(SpaceId, SmallBytes, Vec<Timestamp>)> {
        let newest = self.objects.iter();
        newest.map(|((space, key), it)| (*space, key.clone(), vec![it.version])).collect()
    }
}
