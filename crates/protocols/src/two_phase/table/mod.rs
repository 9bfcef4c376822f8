//! The transactions that a repository has prepared and not yet applied, and how it stands to
//! those that are over.

use std::collections::BTreeMap;
use std::sync::Arc;

use muesli_core::judgement::sequence;
use muesli_core::parts::locks::Owner;
use muesli_core::parts::versions::Handle;
use muesli_core::{Action, Decision, Nanos, NodeId, Rejection, SmallBytes, SpaceId, TxnId};

use crate::doubts::Steps;
use crate::two_phase::Variant;
use crate::two_phase::message::sizes::answers_bytes;
use crate::two_phase::message::{About, Answers, Few, Prepare, Vote};

pub(in crate::two_phase) mod sizes;

mod answers;
mod coordinators;
mod invariants;
mod silent;

/// A key that a prepared transaction will write, exclusively locked.
#[derive(Clone, Debug)]
pub(in crate::two_phase) struct LockedWrite {
    pub space: SpaceId,
    pub handle: Handle,
    pub value: Option<SmallBytes>,
}

/// A key that a delayed action of a prepared transaction will change.
#[derive(Clone, Debug)]
pub(in crate::two_phase) struct DelayedWrite {
    pub space: SpaceId,
    pub handle: Handle,
    pub action: Action,
}

/// The keys of a delayed procedure, locked.
#[derive(Clone, Debug)]
pub(in crate::two_phase) struct LockedCall {
    pub keys: Vec<(SpaceId, Handle)>,
    /// How they are.
    pub steady: bool,
}

/// A prepared transaction: it voted yes, its locks are held, it stands in the queue.
#[derive(Clone, Debug)]
pub(in crate::two_phase) struct Prepared<V: Variant> {
    /// What was asked; says who else takes part.
    pub prepare: Arc<Prepare<V>>,
    /// What the vote said.
    pub yes: V::Yes,
    /// Where it lies once it was decided to commit, and waits for its turn in the queue.
    pub decided: Option<V::Place>,
    /// Since when it waits for a decision.
    pub since: Nanos,
    pub writes: Few<LockedWrite>,
    /// In the order they are to be done.
    pub delayed: Vec<DelayedWrite>,
    /// Procedures, as those of the prepare.
    pub calls: Vec<LockedCall>,
    /// Keys locked for reading.
    pub shared: Few<(SpaceId, Handle)>,
    /// What its vote is about, where others have to be sure of that.
    pub about: Option<Box<About>>,
    /// How many bytes all of that takes, about.
    pub bytes: usize,
}

impl<V: Variant> Prepared<V> {
    /// Whether it has locked a key for reading.
    pub fn shares(&self, space: SpaceId, handle: Handle) -> bool {
        self.shared.contains(&(space, handle))
    }
}

/// How the repository stands to a transaction.
#[derive(Clone, Debug)]
enum TableEntry<V: Variant> {
    /// Voted yes, and not over.
    Prepared(Owner),
    /// No, or decided: remembered until the coordinator says that it is settled everywhere. With
    /// what stands for all who took part, where others have to be sure of that, or zero.
    Over(Vote<V>, u64),
}

impl<V: Variant> TableEntry<V> {
    fn is_prepared(&self) -> bool {
        matches!(self, TableEntry::Prepared(_))
    }

    /// Whether it stays when its coordinator begins another life.
    fn lasts(&self) -> bool {
        matches!(
            self,
            TableEntry::Prepared(_) | TableEntry::Over(Vote::Decided(Decision::Commit(_)), _)
        )
    }
}

/// A vote or decision that is remembered, with what stands for all who took part.
pub(in crate::two_phase) type Remembered<V> = (TxnId, Vote<V>, u64);

/// A coordinator, its newest life, and the number below which everything of that is settled.
pub(in crate::two_phase) type Settled = (NodeId, u32, u64);

/// Ends with what stands for all who took part.
type Ends<V> = BTreeMap<TxnId, (Vote<V>, u64)>;

/// Prepared transactions by lock owner and by id, and the votes and decisions remembered.
///
/// Invariants (`assert_invariants`):
/// * a slot is free or holds a transaction that is prepared, which is found by its id, and each
///   prepared transaction by one owner alone;
/// * all that is counted as it changes (transactions and bytes of each coordinator, of all clients,
///   of what is prepared) is what a look at everything counts;
/// * nothing is remembered of a transaction that its coordinator has settled, and nothing is told
///   of one that is over for everybody;
/// * what is settled and yet remembered is a commit that others were sure of.
#[derive(Clone, Debug)]
pub(in crate::two_phase) struct Table<V: Variant> {
    slots: Vec<Option<Prepared<V>>>,
    free: Vec<u32>,
    entries: BTreeMap<TxnId, TableEntry<V>>,
    /// What delayed actions gave, of those among them that were asked.
    answers: BTreeMap<TxnId, Answers>,
    /// What is known of each coordinator.
    settled: BTreeMap<NodeId, KnownCoordinator>,
    /// Commits of clients that are settled, as their clients say: another participant may ask all
    /// the same. Those that became so lately, and those before.
    retired: [Ends<V>; 2],
    retired_since: Nanos,
    /// How many transactions of clients are in the table, and how many clients are known.
    of_clients: usize,
    /// How many bytes of answers are kept.
    answer_bytes: usize,
    prepared_bytes: PreparedBytes,
    /// The time of what is done now.
    now: Nanos,
    /// Up to where commits had come here when a client was forgotten last.
    lower_bound: u64,
    steps: Steps,
}

/// How many bytes those take that are prepared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::two_phase) struct PreparedBytes {
    pub all: usize,
    /// Of these, those that leave no more than there was.
    pub adding_nothing: usize,
}

impl PreparedBytes {
    /// Those of one transaction.
    fn of<V: Variant>(prepared: &Prepared<V>) -> PreparedBytes {
        let (all, adds) = (prepared.bytes, prepared.prepare.adds());
        PreparedBytes { all, adding_nothing: if adds { 0 } else { all } }
    }
}

/// A coordinator, as a repository knows it.
#[derive(Clone, Copy, Debug, Default)]
struct KnownCoordinator {
    /// Its newest life.
    incarnation: u32,
    /// Everything of that below this number is settled.
    below: u64,
    /// How many of its transactions are in the table, of all its lives.
    entries: usize,
    /// How many of these are prepared or committed: they stay when it begins another life.
    lasting: usize,
    /// How many of these are prepared.
    prepared: usize,
    /// Whether it is known to be a client.
    is_client: bool,
    /// How many bytes of answers are kept for it.
    answers: usize,
    /// When it was last heard of.
    seen_at: Nanos,
    /// What it asks for below may have been forgotten.
    lower_bound: u64,
    /// Of its newest life, the number below which refusals were forgotten: what is not known there
    /// may be one.
    refused_below: u64,
    /// When something was put in last of incarnations before its newest, or became so.
    earlier_put: Nanos,
}

impl<V: Variant> Default for Table<V> {
    fn default() -> Table<V> {
        Table {
            slots: Vec::new(),
            free: Vec::new(),
            entries: BTreeMap::new(),
            answers: BTreeMap::new(),
            settled: BTreeMap::new(),
            retired: [Ends::new(), Ends::new()],
            retired_since: Nanos(0),
            of_clients: 0,
            answer_bytes: 0,
            prepared_bytes: PreparedBytes::default(),
            now: Nanos(0),
            lower_bound: 0,
            steps: Steps::default(),
        }
    }
}

impl<V: Variant> Table<V> {
    /// How many bytes it takes, as far as others fill it.
    pub fn bytes(&self) -> usize {
        let entries = self.entries.len() * (size_of::<TxnId>() + size_of::<TableEntry<V>>());
        entries + self.answer_bytes + self.prepared_bytes.all
    }

    /// How many of these are of what is prepared.
    pub fn prepared_bytes(&self) -> PreparedBytes {
        self.prepared_bytes
    }

    /// What is put in stays as long as after a sign of life of the coordinator, which may be cut
    /// off from here and ask for just that in the end.
    fn put(&mut self, txn: TxnId, entry: TableEntry<V>) {
        let (lasts, is_prepared) = (entry.lasts(), entry.is_prepared());
        let replaced = self.entries.insert(txn, entry);
        let known = self.known_mut(txn.node);
        known.lasting += usize::from(lasts);
        known.prepared += usize::from(is_prepared);
        match replaced {
            Some(replaced) => {
                known.lasting -= usize::from(replaced.lasts());
                known.prepared -= usize::from(replaced.is_prepared());
            }
            None => {
                known.entries += 1;
                let is_client = known.is_client;
                self.of_clients += usize::from(is_client);
            }
        }
        let (known, now) = (self.settled.get_mut(&txn.node).expect("just seen"), self.now);
        let KnownCoordinator { entries, lasting, prepared, .. } = *known;
        assert!(prepared <= lasting && lasting <= entries, "what is kept of {:?}", txn.node);
        known.seen_at = known.seen_at.max(now);
        if txn.incarnation < known.incarnation {
            known.earlier_put = now;
        }
    }

    fn take(&mut self, txn: TxnId) {
        if let Some(entry) = self.entries.remove(&txn) {
            let known = self.settled.get_mut(&txn.node).expect("put counted it");
            assert!(known.entries > 0, "{txn} was not counted");
            known.entries -= 1;
            known.lasting -= usize::from(entry.lasts());
            known.prepared -= usize::from(entry.is_prepared());
            self.of_clients -= usize::from(known.is_client);
        }
    }

    /// A client says that its transaction is settled. It may say so before that is true, and to
    /// one copy of a key alone; so a commit is known for a while to those who ask.
    fn retire(&mut self, txn: TxnId, end: (Vote<V>, u64)) {
        if end.1 != 0 && matches!(end.0, Vote::Decided(Decision::Commit(_))) {
            self.retired[0].insert(txn, end);
        }
    }

    /// Forgets the commits of clients that have been settled for `after`, or twice as long.
    pub fn forget_retired(&mut self, now: Nanos, after: Nanos) {
        if self.retired_since + after <= now {
            let [lately, before] = &mut self.retired;
            *before = std::mem::take(lately);
            self.retired_since = now;
        }
    }

    fn retired(&self, txn: TxnId) -> Option<&(Vote<V>, u64)> {
        self.retired.iter().find_map(|ends| ends.get(&txn))
    }

    /// How this repository stands to `txn`, if it has voted.
    pub fn known_vote(&self, txn: TxnId) -> Option<Vote<V>> {
        match self.entries.get(&txn) {
            Some(TableEntry::Prepared(owner)) => Some(Vote::Yes(self.get(*owner).yes.clone())),
            Some(TableEntry::Over(vote, _)) => Some(vote.clone()),
            None => self.retired(txn).map(|(vote, _)| vote.clone()),
        }
    }

    /// Whether it stands to a transaction in some way.
    pub fn knows(&self, txn: TxnId) -> bool {
        self.entries.contains_key(&txn) || self.retired(txn).is_some()
    }

    /// What that is about, where others have to be sure of it.
    pub fn about(&self, txn: TxnId) -> Option<Box<About>> {
        let participants = match self.entries.get(&txn) {
            Some(TableEntry::Prepared(owner)) => return self.get(*owner).about.clone(),
            Some(TableEntry::Over(_, participants)) => *participants,
            None => self.retired(txn)?.1,
        };
        let is_known = participants != 0;
        is_known.then(|| Box::new(About { participants, ..About::default() }))
    }

    /// The owner that the next insertion will have.
    pub fn next_owner(&self) -> Owner {
        Owner(self.free.last().copied().unwrap_or(self.slots.len() as u32))
    }

    pub fn insert(&mut self, prepared: Prepared<V>) -> Owner {
        let (owner, txn) = (self.next_owner(), prepared.prepare.txn);
        assert!(self.owner(txn).is_none(), "{txn} is prepared twice");
        assert!(prepared.decided.is_none(), "{txn} is decided as it prepares");
        self.put(txn, TableEntry::Prepared(owner));
        let PreparedBytes { all, adding_nothing } = PreparedBytes::of(&prepared);
        self.prepared_bytes.all += all;
        self.prepared_bytes.adding_nothing += adding_nothing;
        match self.free.pop() {
            Some(slot) => {
                let before = self.slots[slot as usize].replace(prepared);
                assert!(before.is_none(), "slot {slot} was free and taken");
            }
            None => self.slots.push(Some(prepared)),
        }
        owner
    }

    /// # Panics
    /// If there is no such owner.
    pub fn get(&self, owner: Owner) -> &Prepared<V> {
        self.slots[owner.0 as usize].as_ref().expect("a known owner")
    }

    /// # Panics
    /// If there is no such owner.
    pub fn get_mut(&mut self, owner: Owner) -> &mut Prepared<V> {
        self.slots[owner.0 as usize].as_mut().expect("a known owner")
    }

    /// The owners of all that are prepared.
    pub fn owners(&self) -> impl Iterator<Item = Owner> + '_ {
        let slots = self.slots.iter().enumerate();
        slots.filter(|(_, slot)| slot.is_some()).map(|(at, _)| Owner(at as u32))
    }

    pub fn owner(&self, txn: TxnId) -> Option<Owner> {
        match self.entries.get(&txn)? {
            TableEntry::Prepared(owner) => Some(*owner),
            TableEntry::Over(..) => None,
        }
    }

    /// Takes out a transaction that is over here and remembers how it ended.
    pub fn finish(&mut self, owner: Owner, decision: Decision<V::Place>) -> Prepared<V> {
        let prepared = self.slots[owner.0 as usize].take().expect("a known owner");
        self.free.push(owner.0);
        let PreparedBytes { all, adding_nothing } = PreparedBytes::of(&prepared);
        let kept = self.prepared_bytes;
        assert!(all <= kept.all && adding_nothing <= kept.adding_nothing, "bytes of what ends");
        self.prepared_bytes.all -= all;
        self.prepared_bytes.adding_nothing -= adding_nothing;
        let txn = prepared.prepare.txn;
        let is_its_end = match &decision {
            Decision::Commit(place) => prepared.decided.as_ref() == Some(place),
            Decision::Abort(_) => prepared.decided.is_none(),
        };
        assert!(is_its_end, "{txn} ends otherwise than it was decided");
        let participants = prepared.about.as_ref().map_or(0, |about| about.participants);
        let vote = Vote::Decided(decision);
        if self.is_settled(txn) {
            self.take(txn);
            self.retire(txn, (vote, participants));
        } else {
            self.put(txn, TableEntry::Over(vote, participants));
        }
        prepared
    }

    /// Remembers a vote of no or a decision, unless nobody can ask for it any more; whether it did.
    pub fn remember(&mut self, txn: TxnId, vote: Vote<V>) -> bool {
        assert!(self.owner(txn).is_none(), "{txn} is prepared, and is to be forgotten as that");
        let is_new = !self.is_settled(txn);
        if is_new {
            self.put(txn, TableEntry::Over(vote, 0));
        }
        is_new
    }

    /// The transactions that voted yes and do not know their end, oldest id first.
    pub fn in_doubt(&self) -> impl Iterator<Item = (Owner, &Prepared<V>)> {
        let prepared = self.slots.len() - self.free.len();
        let all = self.entries.values().filter_map(|entry| match entry {
            TableEntry::Prepared(owner) => Some((*owner, self.get(*owner))),
            TableEntry::Over(..) => None,
        });
        all.take(prepared).filter(|(_, prepared)| prepared.decided.is_none())
    }

    /// All that are prepared, in the order of their ids.
    pub fn prepared(&self) -> impl Iterator<Item = &Prepared<V>> {
        self.entries.values().filter_map(|entry| match entry {
            TableEntry::Prepared(owner) => Some(self.get(*owner)),
            TableEntry::Over(..) => None,
        })
    }

    /// What is remembered, and what is settled.
    pub fn memory(&self) -> (Vec<Remembered<V>>, Vec<Settled>) {
        let over = self.entries.iter().filter_map(|(&txn, entry)| match entry {
            TableEntry::Prepared(_) => None,
            TableEntry::Over(vote, participants) => Some((txn, vote.clone(), *participants)),
        });
        let over = over.collect();
        let each =
            |(&node, known): (&NodeId, &KnownCoordinator)| (node, known.incarnation, known.below);
        (over, self.settled.iter().map(each).collect())
    }

    /// Takes over what is [settled](Self::memory) as another table knows.
    pub fn recall_settled(&mut self, settled: Vec<Settled>) {
        for (node, incarnation, below) in settled {
            let known = self.settled.entry(node).or_default();
            (known.incarnation, known.below) = (incarnation, below);
        }
    }

    /// Takes over what another table [remembered](Self::memory).
    pub fn recall(&mut self, over: Vec<Remembered<V>>) {
        for (txn, vote, participants) in over {
            assert!(!matches!(vote, Vote::Yes(_)), "{txn} is over, with a vote of yes");
            self.put(txn, TableEntry::Over(vote, participants));
        }
    }

    /// How many votes and decisions are remembered.
    pub fn remembered(&self) -> usize {
        self.entries.len() - (self.slots.len() - self.free.len())
    }
}

/// Whether coordinators can have settled so much.
pub(in crate::two_phase) fn judge_settled(settled: &[Settled]) -> Result<(), Rejection> {
    let below = |(node, incarnation, below): &Settled| TxnId {
        node: *node,
        incarnation: *incarnation,
        sequence: *below,
    };
    settled.iter().try_for_each(|it| sequence(below(it)))
}

#[cfg(test)]
mod tests;
