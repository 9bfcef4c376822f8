//! Ownership by grants, the bounded variant (Turcu 2015, section 10.2.3): who wants to own the
//! objects of a command asks for that in an order that all members agree on.
//!
//! The number of a request in that order, of all requests, is the epoch of its owner; so epochs are
//! unique, and nobody acquires what somebody else acquires, too. Who is granted objects still has
//! them promised by a majority. A grant is *open* until its command is known to be decided at all
//! of its objects, with all before it there. Of open grants that have an object in common the first
//! one is at the *head*: its owner acts, and the others wait. Where it does not come to its end in
//! time, the owner of a next one acts in its own epoch, and brings the commands of all open grants
//! before its own to their ends, in their order, and then its own.
//!
//! A command of several objects is placed by who knows that the commands of all grants before it
//! with which it shares an object are decided, at all of its objects at once. So those are before
//! it at each shared object, whoever places it, and however often: commands of several objects are
//! in one order, that of their first grants. What is of one object is in no cycle without two of
//! these. A cycle cannot arise.
//!
//! A member that crashed acts on its grant again, in the same epoch: what it has said in it, it had
//! accepted itself, and says again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use muesli_core::Nanos;

use super::coordinate::task::TaskPhase;
use super::judge::ROUND_MAX;
use super::message::{NamedCommand, ObjectEpoch, PromisedEpoch, Record};
use super::object::ObjectLog;
use super::{Effects, M2Paxos, M2PaxosSwitch};
use crate::command::{CommandId, MemberId};

/// What becomes of a grant at its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum GrantState {
    /// Others are before it.
    Waiting,
    /// Its owner has its objects promised, or owns them.
    Acting,
    /// Its epoch is of no use any more.
    Void,
}

/// A grant that is open.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OwnershipGrant {
    owner: MemberId,
    id: CommandId,
    /// In the order of their numbers.
    objects: Vec<u64>,
    state: GrantState,
    /// Since when it is at the head here.
    head_since: Option<Nanos>,
}

/// A grant that is to be asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WantedGrant {
    /// Who is to own the objects.
    pub owner: MemberId,
    /// Of which command.
    pub command: NamedCommand,
}

/// All grants that are open, in their order.
///
/// Invariants: each is found by its objects and by its command; of an object the first one is at
/// its head.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct OwnershipGrants {
    /// The number of the last one.
    last: u32,
    open: BTreeMap<u32, OwnershipGrant>,
    by_object: BTreeMap<u64, BTreeSet<u32>>,
    by_command: BTreeMap<CommandId, BTreeSet<u32>>,
    /// Those at the head that were not looked at since.
    heads: BTreeSet<u32>,
    /// Those of this member on which it acts.
    acting: BTreeSet<u32>,
    wanted: VecDeque<CommandId>,
    /// Which were asked for, and are not there yet, and when.
    asked: BTreeMap<CommandId, Nanos>,
}

impl OwnershipGrants {
    fn insert(&mut self, index: u32, grant: OwnershipGrant) {
        for object in &grant.objects {
            self.by_object.entry(*object).or_default().insert(index);
        }
        self.by_command.entry(grant.id).or_default().insert(index);
        self.open.insert(index, grant);
        if self.is_head(index) {
            self.heads.insert(index);
        }
    }

    fn remove(&mut self, index: u32) {
        let Some(grant) = self.open.remove(&index) else { return };
        self.heads.remove(&index);
        self.acting.remove(&index);
        let mut next = BTreeSet::new();
        for object in &grant.objects {
            let Some(there) = self.by_object.get_mut(object) else { continue };
            there.remove(&index);
            next.extend(there.first().copied());
            if there.is_empty() {
                self.by_object.remove(object);
            }
        }
        let of_command = self.by_command.get_mut(&grant.id).expect("found by its command");
        of_command.remove(&index);
        if of_command.is_empty() {
            self.by_command.remove(&grant.id);
        }
        next.retain(|index| self.is_head(*index));
        self.heads.extend(next);
    }

    fn is_head(&self, index: u32) -> bool {
        let objects = &self.open[&index].objects;
        objects.iter().all(|object| self.by_object[object].first() == Some(&index))
    }

    /// A grant with those before it that share an object with it, directly or not.
    fn with_those_before(&self, index: u32) -> BTreeSet<u32> {
        let (mut found, mut open) = (BTreeSet::from([index]), vec![index]);
        while let Some(next) = open.pop() {
            for object in &self.open[&next].objects {
                let before = self.by_object[object].range(..next);
                open.extend(before.filter(|it| found.insert(**it)));
            }
        }
        found
    }

    /// Whether it is [among those](Self::with_those_before) before a grant on which this member
    /// acts, or is such a one.
    fn is_before_acting(&self, index: u32) -> bool {
        if self.acting.range(index..).next().is_none() {
            return false;
        }
        let (mut found, mut open) = (BTreeSet::from([index]), vec![index]);
        while let Some(next) = open.pop() {
            if self.acting.contains(&next) {
                return true;
            }
            for object in &self.open[&next].objects {
                let after = self.by_object[object].range(next + 1..);
                open.extend(after.filter(|it| found.insert(**it)));
            }
        }
        false
    }

    /// Whether all grants before the first one of a command that share an object with it are over.
    fn is_next(&self, id: CommandId) -> bool {
        let first = self.by_command.get(&id).and_then(|all| all.first());
        first.is_some_and(|first| self.is_head(*first))
    }

    fn void(&mut self, index: u32) {
        self.acting.remove(&index);
        if let Some(grant) = self.open.get_mut(&index) {
            grant.state = GrantState::Void;
        }
    }

    fn assert_invariants(&self) {
        for (index, grant) in &self.open {
            assert!(*index <= self.last, "{grant:?} is beyond the last one");
            let is_there = |object: &u64| self.by_object[object].contains(index);
            assert!(grant.objects.iter().all(is_there), "{grant:?} is not at its objects");
            assert!(self.by_command[&grant.id].contains(index), "{grant:?} has no command");
        }
        let named = self.by_object.values().chain(self.by_command.values()).flatten();
        assert!(named.into_iter().all(|index| self.open.contains_key(index)), "{self:?}");
        assert!(self.heads.iter().all(|index| self.is_head(*index)), "{self:?}");
    }
}

impl M2Paxos {
    /// With ownership by grants; whoever drives it has what is [wanted](Self::next_wanted) ordered.
    pub(crate) fn by_grants(mut self) -> M2Paxos {
        self.grants = Some(OwnershipGrants::default());
        self
    }

    /// With requests that are ordered for cuts alone.
    pub(crate) fn acquiring(mut self) -> M2Paxos {
        self.acquires = true;
        self
    }

    /// Whether objects are owned by grants alone.
    pub(crate) fn is_granted(&self) -> bool {
        self.grants.is_some() && !self.acquires
    }

    /// So many requests were ordered.
    pub(crate) fn granted(&self) -> u32 {
        self.grants.as_ref().map_or(0, |grants| grants.last)
    }

    /// All grants that are open, in their order: number, owner, and of which command.
    pub(crate) fn open_grants(&self) -> impl Iterator<Item = (u32, MemberId, CommandId)> + '_ {
        let open = self.grants.iter().flat_map(|grants| &grants.open);
        open.map(|(index, grant)| (*index, grant.owner, grant.id))
    }

    /// A request was ordered; in a replay, too.
    pub(crate) fn grant(&mut self, owner: MemberId, named: &NamedCommand, out: &mut Effects) {
        let Some(grants) = &mut self.grants else { return };
        grants.last = grants.last.saturating_add(1);
        let index = grants.last;
        grants.asked.remove(&named.id);
        let is_owner = self.names().member(owner).is_ok() && index <= ROUND_MAX;
        let is_named = self.names().id(named.id).is_ok();
        let is_ordered = self.is_granted() && !named.command.objects.is_everything();
        if is_owner && is_named && is_ordered {
            self.know(named, out);
            self.open_grant(index, owner, named.id);
        }
    }

    /// Opens a grant, unless its command has come to its end.
    pub(crate) fn open_grant(&mut self, index: u32, owner: MemberId, id: CommandId) {
        let entry = self.commands.get(&id).filter(|entry| !entry.is_complete());
        if entry.is_some_and(|entry| entry.command.is_some()) {
            let objects = self.objects_of(id);
            let (state, head_since) = (GrantState::Waiting, None);
            let grant = OwnershipGrant { owner, id, objects, state, head_since };
            self.grants.iter_mut().for_each(|grants| grants.insert(index, grant.clone()));
        }
    }

    /// Takes back the number of the last grant, from a checkpoint.
    pub(crate) fn take_granted(&mut self, last: u32) {
        self.grants.iter_mut().for_each(|grants| grants.last = last);
    }

    /// A command has come to its end: so have its grants.
    pub(super) fn close_grants(&mut self, id: CommandId) {
        let Some(grants) = &mut self.grants else { return };
        grants.asked.remove(&id);
        for index in grants.by_command.get(&id).cloned().unwrap_or_default() {
            grants.remove(index);
        }
    }

    /// A request that is to be ordered.
    pub(crate) fn next_wanted(&mut self) -> Option<WantedGrant> {
        loop {
            let id = self.grants.as_mut()?.wanted.pop_front()?;
            let is_open = self.commands.get(&id).is_some_and(|entry| !entry.is_complete());
            if let Some(command) = self.named(id).filter(|_| is_open) {
                return Some(WantedGrant { owner: self.wanted_owner(id), command });
            }
        }
    }

    /// Who is to own a command's objects: who owns the most of them, so that the fewest move. Once
    /// that has come to nothing, this member.
    fn wanted_owner(&self, id: CommandId) -> MemberId {
        let attempts = self.commands.get(&id).map_or(0, |entry| entry.attempts);
        let mut owned: BTreeMap<MemberId, usize> = BTreeMap::new();
        for object in self.objects_of(id).into_iter().filter(|_| attempts == 0) {
            if let Some(owner) = self.objects.get(object).and_then(ObjectLog::owner) {
                *owned.entry(owner).or_default() += 1;
            }
        }
        let own = owned.get(&self.me).copied().unwrap_or(0);
        let best = owned.into_iter().max_by_key(|(member, count)| (*count, member.0));
        best.filter(|(_, count)| *count > own).map_or(self.me, |(member, _)| member)
    }

    /// Asks for a grant for a command, unless that was asked for.
    pub(super) fn want_grant(&mut self, id: CommandId, now: Nanos) {
        let suspect_after = self.settings.suspect_after;
        let Some(grants) = &mut self.grants else { return };
        let is_asked = grants.asked.get(&id).is_some_and(|asked| *asked + suspect_after > now);
        if !grants.by_command.contains_key(&id) && !is_asked {
            grants.asked.insert(id, now);
            grants.wanted.push_back(id);
        }
    }

    /// A command has not come to its end in time: asks for another grant for it, unless this member
    /// has one that may be of use.
    pub(super) fn want_another_grant(&mut self, id: CommandId, now: Nanos) {
        let is_owned = self.objects_of(id).iter().all(|object| self.owns(*object));
        let is_acquiring =
            self.tasks.get(id).is_some_and(|task| matches!(task.phase, TaskPhase::Acquiring(_)));
        let (me, suspect_after) = (self.me, self.settings.suspect_after);
        let Some(grants) = &mut self.grants else { return };
        let mut of_command = grants.by_command.get(&id).into_iter().flatten();
        let is_of_use = of_command.any(|index| {
            let grant = &grants.open[index];
            grant.owner == me
                && match grant.state {
                    GrantState::Waiting => true,
                    GrantState::Acting => is_owned || is_acquiring,
                    GrantState::Void => false,
                }
        });
        let is_asked = grants.asked.get(&id).is_some_and(|asked| *asked + suspect_after > now);
        if !is_of_use && !is_asked {
            grants.asked.insert(id, now);
            grants.wanted.push_back(id);
        }
    }

    /// The owners of all grants before one of a command are suspected, at once.
    pub(super) fn suspect_owners(&mut self, id: CommandId) {
        let Some(grants) = &mut self.grants else { return };
        let first = grants.by_command.get(&id).and_then(|all| all.first().copied());
        for index in first.map(|first| grants.with_those_before(first)).unwrap_or_default() {
            let grant = grants.open.get_mut(&index).expect("found above");
            grant.head_since = grant.head_since.map(|_| Nanos(0));
        }
    }

    /// Whether a command of several objects may be placed, as far as others are before it.
    pub(super) fn may_place(&self, id: CommandId) -> bool {
        let Some(grants) = self.grants.as_ref().filter(|_| self.is_granted()) else { return true };
        let is_granted = grants.by_command.contains_key(&id);
        grants.is_next(id) || (is_granted && !self.keeps(M2PaxosSwitch::PlacesInOrder))
    }

    /// Acts on grants of this member that have come to the head, and goes on with those before its
    /// own on which it acts.
    pub(crate) fn go_on_with_grants(&mut self, out: &mut Effects) {
        while !self.is_frozen()
            && let Some(grants) = &mut self.grants
            && let Some(index) = grants.heads.pop_first()
        {
            let grant = grants.open.get_mut(&index).expect("a head is open");
            grant.head_since = grant.head_since.or(Some(out.now));
            let (id, is_mine) = (grant.id, grant.owner == self.me);
            if is_mine && grant.state == GrantState::Waiting {
                self.act_on(index, out);
            } else if grants.is_before_acting(index) {
                self.place_granted(id, out);
            }
        }
    }

    fn place_granted(&mut self, id: CommandId, out: &mut Effects) {
        match self.tasks.contains(id) {
            true => self.coordinate(id, out),
            false => self.begin_task(id, false, out),
        }
    }

    /// Has the objects of a grant, and of those before it, promised in its epoch.
    fn act_on(&mut self, index: u32, out: &mut Effects) {
        let grants = self.grants.as_ref().expect("who has a grant");
        let id = grants.open[&index].id;
        let all = grants.with_those_before(index);
        let objects: BTreeSet<u64> =
            all.iter().flat_map(|it| &grants.open[it].objects).copied().collect();
        let needed: Vec<u64> = objects.into_iter().filter(|it| !self.owns(*it)).collect();
        let epoch = ObjectEpoch { round: index, member: self.me };
        let known = |it: &u64| self.objects.get(*it);
        let promised = needed.iter().filter_map(known).any(|log| log.promised > epoch);
        let is_wanted = needed.iter().filter_map(known).any(|log| log.wanted_for.is_some());
        let is_acquiring =
            self.tasks.get(id).is_some_and(|task| matches!(task.phase, TaskPhase::Acquiring(_)));
        let grants = self.grants.as_mut().expect("who has a grant");
        if promised {
            return grants.void(index); // Somebody acts on a grant that comes after it.
        }
        if is_wanted || is_acquiring {
            return; // Until that is over.
        }
        grants.acting.insert(index);
        grants.open.get_mut(&index).expect("found above").state = GrantState::Acting;
        if !self.tasks.contains(id) {
            self.add_task(id, false, out.now);
        }
        if !self.switches.keeps(M2PaxosSwitch::PreparesGranted) {
            self.own_unpromised(&needed, epoch, out);
        } else if !needed.is_empty() {
            return self.acquire_in(id, &needed, Some(index), out);
        }
        self.look_at_heads(id, std::iter::empty());
    }

    /// As if the order of requests were enough: takes objects for its own that nobody has promised.
    fn own_unpromised(&mut self, objects: &[u64], epoch: ObjectEpoch, out: &mut Effects) {
        for object in objects {
            let promised = PromisedEpoch { object: *object, epoch };
            self.store(Record::Promised(vec![promised]), out);
            self.object(*object).own_unpromised();
        }
    }

    /// Objects have come here, for a command: those at the head are looked at again that are
    /// before a grant of it on which this member acts, or before one of these objects.
    pub(super) fn look_at_heads(&mut self, id: CommandId, objects: impl Iterator<Item = u64>) {
        let Some(grants) = &mut self.grants else { return };
        let at_objects = objects.filter_map(|object| grants.by_object.get(&object));
        let all = grants.by_command.get(&id).into_iter().chain(at_objects).flatten();
        let acting: BTreeSet<u32> = all.filter(|it| grants.acting.contains(it)).copied().collect();
        let before = acting.into_iter().flat_map(|index| grants.with_those_before(index));
        let heads: BTreeSet<u32> = before.filter(|index| grants.is_head(*index)).collect();
        grants.heads.extend(heads);
    }

    /// An object is promised to another one, perhaps for a grant that is over: this member acts
    /// anew on its own grants of it.
    pub(super) fn act_anew(&mut self, object: u64) {
        let Some(grants) = &mut self.grants else { return };
        for index in grants.by_object.get(&object).cloned().unwrap_or_default() {
            if grants.acting.remove(&index) {
                let grant = grants.open.get_mut(&index).expect("found by its object");
                grant.state = GrantState::Waiting;
                if grants.is_head(index) {
                    grants.heads.insert(index);
                }
            }
        }
    }

    /// The epoch in which objects of a command were asked for has come to nothing.
    pub(super) fn void_grants(&mut self, id: CommandId) {
        let Some(grants) = &mut self.grants else { return };
        for index in grants.by_command.get(&id).cloned().unwrap_or_default() {
            if grants.acting.contains(&index) {
                grants.void(index);
            }
        }
    }

    /// Acts on grants of this member that wait for nothing, and on those whose predecessors do not
    /// come to their ends in time.
    pub(super) fn pass_over(&mut self, out: &mut Effects) {
        let Some(grants) = self.grants.as_ref().filter(|_| !self.is_frozen()) else { return };
        let waits = self.keeps(M2PaxosSwitch::WaitsForGrants);
        let is_late = |index: &u32, times: u64| {
            let grant = &grants.open[index];
            let is_void = grant.owner == self.me && grant.state == GrantState::Void;
            let patience = Nanos(self.settings.suspect_after.0.saturating_mul(times));
            is_void || grant.head_since.is_some_and(|since| since + patience <= out.now)
        };
        let is_waiting = |index: &u32| {
            let grant = &grants.open[index];
            grant.owner == self.me && grant.state == GrantState::Waiting
        };
        let some_are_late = grants.open.keys().any(|index| is_late(index, 1));
        let may_act = |index: &u32| {
            if !waits || grants.is_head(*index) || !some_are_late {
                return !waits || grants.is_head(*index);
            }
            let all = grants.with_those_before(*index);
            let before = all.len() as u64 - 1;
            let mut heads = all.iter().filter(|it| *it != index && grants.is_head(**it));
            heads.all(|it| is_late(it, before))
        };
        let due = grants.open.keys().filter(|index| is_waiting(index) && may_act(index));
        let due: Vec<u32> = due.copied().collect();
        for index in due {
            if self.grants.as_ref().is_some_and(|grants| grants.open.contains_key(&index)) {
                self.act_on(index, out);
            }
        }
    }

    pub(super) fn assert_grants(&self) {
        let Some(grants) = &self.grants else { return };
        grants.assert_invariants();
        for grant in grants.open.values() {
            let entry = self.commands.get(&grant.id).expect("a command that has a grant");
            assert!(entry.command.is_some() && !entry.is_complete(), "{grant:?} is over");
        }
    }
}
