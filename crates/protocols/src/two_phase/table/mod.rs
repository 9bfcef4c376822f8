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
use crate::two_phase::message::{About, Answers, Few, Prepare, Vote, answers_bytes};

pub(in crate::two_phase) mod sizes;

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
enum Entry<V: Variant> {
    /// Voted yes, and not over.
    Prepared(Owner),
    /// No, or decided: remembered until the coordinator says that it is settled everywhere. With
    /// what stands for all who took part, where others have to be sure of that, or zero.
    Over(Vote<V>, u64),
}

impl<V: Variant> Entry<V> {
    fn is_prepared(&self) -> bool {
        matches!(self, Entry::Prepared(_))
    }

    /// Whether it stays when its coordinator begins another life.
    fn lasts(&self) -> bool {
        matches!(self, Entry::Prepared(_) | Entry::Over(Vote::Decided(Decision::Commit(_)), _))
    }
}

/// A vote or decision that is remembered, with what stands for all who took part.
pub(in crate::two_phase) type Remembered<V> = (TxnId, Vote<V>, u64);

/// A coordinator, its newest life, and the number below which everything of that is settled.
pub(in crate::two_phase) type Settled = (NodeId, u32, u64);

/// Ends with what stands for all who took part.
type Ends<V> = BTreeMap<TxnId, (Vote<V>, u64)>;

/// Prepared transactions by lock owner and by id, and the votes and decisions remembered.
#[derive(Clone, Debug)]
pub(in crate::two_phase) struct Table<V: Variant> {
    slots: Vec<Option<Prepared<V>>>,
    free: Vec<u32>,
    standings: BTreeMap<TxnId, Entry<V>>,
    /// What delayed actions gave, of those among them that were asked.
    answers: BTreeMap<TxnId, Answers>,
    /// What is known of each coordinator.
    settled: BTreeMap<NodeId, Known>,
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
    floor: u64,
    steps: Steps,
}

/// How much a table may keep of clients.
#[derive(Clone, Copy, Debug)]
pub(in crate::two_phase) struct Room {
    /// So many transactions of one.
    pub entries: usize,
    /// So many bytes of answers for one.
    pub answer_bytes: usize,
    /// So many transactions and clients in all.
    pub all: usize,
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
struct Known {
    /// Its newest life.
    life: u32,
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
    heard: Nanos,
    /// What it asks for below may have been forgotten.
    floor: u64,
    /// When something was put in last of incarnations before its newest, or became so.
    earlier_put: Nanos,
}

impl<V: Variant> Default for Table<V> {
    fn default() -> Table<V> {
        Table {
            slots: Vec::new(),
            free: Vec::new(),
            standings: BTreeMap::new(),
            answers: BTreeMap::new(),
            settled: BTreeMap::new(),
            retired: [Ends::new(), Ends::new()],
            retired_since: Nanos(0),
            of_clients: 0,
            answer_bytes: 0,
            prepared_bytes: PreparedBytes::default(),
            now: Nanos(0),
            floor: 0,
            steps: Steps::default(),
        }
    }
}

impl<V: Variant> Table<V> {
    /// Takes note of a coordinator's life and of what it has settled; false if `txn` is of an
    /// earlier life or settled already, so that whatever was said of it comes too late.
    pub fn is_current(&mut self, txn: TxnId, settled_below: u64) -> bool {
        let now = self.now;
        let known = self.known_mut(txn.node);
        let is_new_life = txn.incarnation > known.life;
        if is_new_life {
            (known.life, known.below) = (txn.incarnation, 0);
            known.earlier_put = now;
        }
        if txn.incarnation < known.life || txn.sequence < known.below {
            return false;
        }
        if settled_below > known.below {
            known.below = settled_below;
            self.forget_settled(txn.node, txn.incarnation, settled_below);
        }
        if is_new_life {
            self.forget_refusals_before(txn.node, txn.incarnation);
        }
        true
    }

    /// A coordinator says that nobody asks about its transactions below this one any more. Of one
    /// that is not known there is nothing to forget.
    pub fn settle_below(&mut self, txn: TxnId) {
        if self.settled.contains_key(&txn.node) {
            self.is_current(txn, txn.sequence);
        }
    }

    /// What is done from now on is done at this time.
    pub fn tell_time(&mut self, now: Nanos) {
        self.now = now;
    }

    /// A client was heard of.
    pub fn hear(&mut self, node: NodeId, now: Nanos) {
        if let Some(known) = self.settled.get_mut(&node) {
            known.heard = now;
        }
        self.note_client(node);
    }

    /// What is known of a coordinator counts as a client's from now on.
    pub fn note_client(&mut self, node: NodeId) {
        if let Some(known) = self.settled.get_mut(&node).filter(|it| !it.is_client) {
            known.is_client = true;
            self.of_clients += known.entries + 1;
        }
    }

    /// All coordinators count as heard of just now: nobody knows when they last were.
    pub fn hear_all(&mut self, now: Nanos, is_client: impl Fn(NodeId) -> bool) {
        self.settled.values_mut().for_each(|known| known.heard = now);
        let clients: Vec<_> = self.settled.keys().copied().filter(|it| is_client(*it)).collect();
        clients.into_iter().for_each(|client| self.hear(client, now));
    }

    /// Whether there is room for a transaction of a client. Where there is none, what it says with
    /// the transaction has to make some: the first of another life, by which refusals of earlier
    /// ones are forgotten; or one that says which others are settled.
    pub fn has_room(&self, txn: TxnId, below: u64, room: Room) -> bool {
        let known = self.settled.get(&txn.node).copied().unwrap_or_default();
        let is_full = known.entries >= room.entries || self.of_clients >= room.all;
        if !is_full && known.answers < room.answer_bytes {
            return true;
        }
        if txn.incarnation > known.life {
            return !is_full || known.lasting < known.entries;
        }
        if txn.incarnation < known.life || below <= known.below {
            return false;
        }
        let first = |sequence| TxnId { sequence, ..txn };
        let mut settled = self.standings.range(first(known.below)..first(below));
        let mut makes_room = || settled.any(|(_, entry)| matches!(entry, Entry::Over(..)));
        let answers = self.answers.range(first(0)..first(below));
        let freed: usize = answers.map(|(_, it)| answers_bytes(it)).sum();
        (!is_full || makes_room()) && known.answers - freed < room.answer_bytes
    }

    /// How many bytes it takes, as far as others fill it.
    pub fn bytes(&self) -> usize {
        let entries = self.standings.len() * (size_of::<TxnId>() + size_of::<Entry<V>>());
        entries + self.answer_bytes + self.prepared_bytes.all
    }

    /// How many of these are of what is prepared.
    pub fn prepared_bytes(&self) -> PreparedBytes {
        self.prepared_bytes
    }

    /// How many coordinators are known.
    pub fn known(&self) -> usize {
        self.settled.len()
    }

    /// What is put in stays as long as after a sign of life of the coordinator, which may be cut
    /// off from here and ask for just that in the end.
    fn put(&mut self, txn: TxnId, entry: Entry<V>) {
        let (lasts, is_prepared) = (entry.lasts(), entry.is_prepared());
        let replaced = self.standings.insert(txn, entry);
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
        known.heard = known.heard.max(now);
        if txn.incarnation < known.life {
            known.earlier_put = now;
        }
    }

    fn take(&mut self, txn: TxnId) {
        if let Some(entry) = self.standings.remove(&txn) {
            let known = self.settled.get_mut(&txn.node).expect("put counted it");
            known.entries -= 1;
            known.lasting -= usize::from(entry.lasts());
            known.prepared -= usize::from(entry.is_prepared());
            self.of_clients -= usize::from(known.is_client);
        }
    }

    /// Nothing of a coordinator's earlier lives is prepared any more, so whoever asks about a
    /// transaction that was refused or aborted is told no, remembered or not. What was committed
    /// stays: those in doubt must hear of it.
    fn forget_refusals_before(&mut self, node: NodeId, incarnation: u32) {
        let first = TxnId { node, incarnation: 0, sequence: 0 };
        let end = TxnId { node, incarnation, sequence: 0 };
        let earlier = self.standings.range(first..end).filter(|(_, entry)| !entry.lasts());
        let forgotten: Vec<_> = earlier.map(|(txn, _)| *txn).collect();
        for txn in forgotten {
            self.take(txn);
        }
        self.forget_answers(first, end);
    }

    /// Whether the coordinator has begun another life since.
    pub fn is_of_earlier_life(&self, txn: TxnId) -> bool {
        self.settled.get(&txn.node).is_some_and(|known| txn.incarnation < known.life)
    }

    fn forget_settled(&mut self, node: NodeId, incarnation: u32, below: u64) {
        let first = TxnId { node, incarnation, sequence: 0 };
        let end = TxnId { node, incarnation, sequence: below };
        let mut next = first;
        while let Some((&txn, entry)) = self.standings.range(next..end).next() {
            if let Entry::Over(vote, participants) = entry {
                let end = (vote.clone(), *participants);
                self.take(txn);
                self.retire(txn, end);
            }
            next = TxnId { sequence: txn.sequence + 1, ..txn };
        }
        self.forget_answers(first, end);
    }

    fn forget_answers(&mut self, first: TxnId, end: TxnId) {
        let freed: usize = self
            .answers
            .extract_if(first..end, |_, _| true)
            .map(|(_, it)| answers_bytes(&it))
            .sum();
        if let Some(known) = self.settled.get_mut(&first.node).filter(|_| freed > 0) {
            known.answers -= freed;
            self.answer_bytes -= freed;
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

    /// Remembers what was told of a transaction, unless nobody can ask for it any more.
    pub fn keep_answers(&mut self, txn: TxnId, answers: Answers) {
        if !answers.is_empty() && !self.is_settled(txn) && !self.is_of_earlier_life(txn) {
            let added = answers_bytes(&answers);
            let replaced = self.answers.insert(txn, answers).map_or(0, |it| answers_bytes(&it));
            let known = self.known_mut(txn.node);
            known.answers = known.answers + added - replaced;
            self.answer_bytes = self.answer_bytes + added - replaced;
        }
    }

    /// What was told of a transaction.
    pub fn answers(&self, txn: TxnId) -> Option<Answers> {
        self.answers.get(&txn).cloned()
    }

    /// Whether anything was told of a transaction.
    pub fn has_answers(&self, txn: TxnId) -> bool {
        !self.answers.is_empty() && self.answers.contains_key(&txn)
    }

    /// All that is remembered of it.
    pub fn all_answers(&self) -> Vec<(TxnId, Answers)> {
        self.answers.iter().map(|(txn, answers)| (*txn, answers.clone())).collect()
    }

    /// Whether the coordinator said that `txn` is settled everywhere.
    pub fn is_settled(&self, txn: TxnId) -> bool {
        let known = self.settled.get(&txn.node);
        known.is_some_and(|known| txn.incarnation == known.life && txn.sequence < known.below)
    }

    /// How this repository stands to `txn`, if it has voted.
    pub fn standing(&self, txn: TxnId) -> Option<Vote<V>> {
        match self.standings.get(&txn) {
            Some(Entry::Prepared(owner)) => Some(Vote::Yes(self.get(*owner).yes.clone())),
            Some(Entry::Over(vote, _)) => Some(vote.clone()),
            None => self.retired(txn).map(|(vote, _)| vote.clone()),
        }
    }

    /// Whether it stands to a transaction in some way.
    pub fn knows(&self, txn: TxnId) -> bool {
        self.standings.contains_key(&txn) || self.retired(txn).is_some()
    }

    /// What that is about, where others have to be sure of it.
    pub fn about(&self, txn: TxnId) -> Option<Box<About>> {
        let participants = match self.standings.get(&txn) {
            Some(Entry::Prepared(owner)) => return self.get(*owner).about.clone(),
            Some(Entry::Over(_, participants)) => *participants,
            None => self.retired(txn)?.1,
        };
        let is_known = participants != 0;
        is_known.then(|| Box::new(About { participants, changes: Vec::new() }))
    }

    /// The owner that the next insertion will have.
    pub fn next_owner(&self) -> Owner {
        Owner(self.free.last().copied().unwrap_or(self.slots.len() as u32))
    }

    pub fn insert(&mut self, prepared: Prepared<V>) -> Owner {
        let owner = self.next_owner();
        self.put(prepared.prepare.txn, Entry::Prepared(owner));
        let PreparedBytes { all, adding_nothing } = PreparedBytes::of(&prepared);
        self.prepared_bytes.all += all;
        self.prepared_bytes.adding_nothing += adding_nothing;
        match self.free.pop() {
            Some(slot) => self.slots[slot as usize] = Some(prepared),
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
        match self.standings.get(&txn)? {
            Entry::Prepared(owner) => Some(*owner),
            Entry::Over(..) => None,
        }
    }

    /// Takes out a transaction that is over here and remembers how it ended.
    pub fn finish(&mut self, owner: Owner, decision: Decision<V::Place>) -> Prepared<V> {
        let prepared = self.slots[owner.0 as usize].take().expect("a known owner");
        self.free.push(owner.0);
        let PreparedBytes { all, adding_nothing } = PreparedBytes::of(&prepared);
        self.prepared_bytes.all -= all;
        self.prepared_bytes.adding_nothing -= adding_nothing;
        let txn = prepared.prepare.txn;
        let participants = prepared.about.as_ref().map_or(0, |about| about.participants);
        let vote = Vote::Decided(decision);
        if self.is_settled(txn) {
            self.take(txn);
            self.retire(txn, (vote, participants));
        } else {
            self.put(txn, Entry::Over(vote, participants));
        }
        prepared
    }

    /// Remembers a vote of no or a decision, unless nobody can ask for it any more; whether it did.
    pub fn remember(&mut self, txn: TxnId, vote: Vote<V>) -> bool {
        let is_new = !self.is_settled(txn);
        if is_new {
            self.put(txn, Entry::Over(vote, 0));
        }
        is_new
    }

    /// The transactions that voted yes and do not know their end, oldest id first.
    pub fn in_doubt(&self) -> impl Iterator<Item = (Owner, &Prepared<V>)> {
        let prepared = self.slots.len() - self.free.len();
        let all = self.standings.values().filter_map(|entry| match entry {
            Entry::Prepared(owner) => Some((*owner, self.get(*owner))),
            Entry::Over(..) => None,
        });
        all.take(prepared).filter(|(_, prepared)| prepared.decided.is_none())
    }

    /// All that are prepared, in the order of their ids.
    pub fn prepared(&self) -> impl Iterator<Item = &Prepared<V>> {
        self.standings.values().filter_map(|entry| match entry {
            Entry::Prepared(owner) => Some(self.get(*owner)),
            Entry::Over(..) => None,
        })
    }

    /// What is remembered, and what is settled.
    pub fn memory(&self) -> (Vec<Remembered<V>>, Vec<Settled>) {
        let over = self.standings.iter().filter_map(|(&txn, entry)| match entry {
            Entry::Prepared(_) => None,
            Entry::Over(vote, participants) => Some((txn, vote.clone(), *participants)),
        });
        let over = over.collect();
        let each = |(&node, known): (&NodeId, &Known)| (node, known.life, known.below);
        (over, self.settled.iter().map(each).collect())
    }

    /// Takes over what is [settled](Self::memory) as another table knows.
    pub fn recall_settled(&mut self, settled: Vec<Settled>) {
        for (node, life, below) in settled {
            let known = self.settled.entry(node).or_default();
            (known.life, known.below) = (life, below);
        }
    }

    /// Takes over what another table [remembered](Self::memory).
    pub fn recall(&mut self, over: Vec<Remembered<V>>) {
        for (txn, vote, participants) in over {
            self.put(txn, Entry::Over(vote, participants));
        }
    }

    /// How many votes and decisions are remembered.
    pub fn remembered(&self) -> usize {
        self.standings.len() - (self.slots.len() - self.free.len())
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
