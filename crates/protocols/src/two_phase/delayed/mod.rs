//! Delayed actions (Diegues and Romano, section IV-C): changes of keys that the transaction does
//! not look at, done when its turn has come.
//!
//! # The idea
//! Two transactions that add to one counter conflict only because each reads it first. An action
//! that is named instead of done takes part in the vote with a lock of its own mode, which such
//! actions share with each other and with nobody else. A transaction that has been decided is
//! applied in its turn, at every replica; there its actions are run, on what the one before left.
//!
//! # Why it is safe
//! From its vote on the key is closed to readers of later snapshots and to writers, and when its
//! turn has come everything before it is applied: the newest version is what it finds, everywhere.
//! So a transaction lies where its turn is, with its actions, and must not lie in the past: its
//! floor is as high as can be. Turns are the same at all replicas, and actions are functions of
//! what they are given, so replicas stay alike, through crashes too: the log has the actions and
//! the decisions, and replaying it runs them again from the same state.
//!
//! # Where it ends
//! Whoever uses a key that it has a delayed action on *strays*: it is aborted and run again with
//! its actions done at once, as reads and writes. A key that it has used before is no reason to
//! start again: there its action is done at once.
//!
//! # How much they may leave
//! The value that an action leaves may be as long as any value, by the limit of whoever delays it,
//! which goes with the transaction
//! ([`Extra::result_bytes`](crate::two_phase::message::Extra)); a repository with a smaller limit has it done at once instead. At its vote a repository adds up what those
//! that append may come to, with all that are under way on the key, and what a user's own would
//! leave now; where that is over the limit, they are done at once as well. What is over it all the
//! same when the turn has come, by what others did meanwhile, changes nothing, on every replica
//! alike, and says so to whoever asked.
//!
//! # Several keys
//! A procedure that is declared to touch some keys may be delayed too ([`procedures`]),
//! and what is delayed may be asked what it gave ([`answers`]). This file has the coordinator's
//! half, [`actions`] the participants'.
//!
//! # Beyond the paper
//! A transaction whose keys have no other delayed actions under way when it votes may lie in the
//! past all the same ([`DelayedInThePast`]), below what it proposes: its actions are then run as it
//! is decided, on what was there when it voted. Whoever delays an action on such a key later has a
//! later proposal: it lies above, is not applied before this one is decided, and runs on what it
//! left. Its locks stay until its turn.
//!
//! Deviation: who must lie in the past and has delayed actions is aborted, as in the paper,
//! but delays them again when it runs again: it then reads what it missed.

use std::collections::BTreeSet;

use muesli_core::contract::{at_once, known_procedure};
use muesli_core::limits::{ENTRY_BYTES, Limit, check_size};
use muesli_core::parts::execution::footprint;
use muesli_core::parts::locks::KeyRange;
use muesli_core::{
    Abort, Action, Catalog, Delay, DelayedCall, Failure, Footprint, Index, Later, Place, Refuses,
    SmallBytes, SpaceId, Stop, Touched, Txn,
};

use crate::two_phase::Variant;
use crate::two_phase::coordinator::slot::Slot;
use crate::two_phase::coordinator::{Context, Coordinator};
use crate::two_phase::table::sizes::action_bytes;

pub(in crate::two_phase) mod actions;
pub(in crate::two_phase) mod answers;
pub(in crate::two_phase) mod procedures;

/// What a transaction has delayed so far.
#[derive(Clone, Debug, Default)]
pub(in crate::two_phase) struct Delays {
    /// Actions, in order.
    pub actions: Vec<(SpaceId, SmallBytes, Action)>,
    /// Places of actions whose answers are wanted, and the numbers of these.
    pub asked: Vec<(usize, u32)>,
    /// Procedures, with the numbers of their answers where they are wanted. They share no key with
    /// each other, nor with the actions.
    pub calls: Vec<(DelayedCall, Option<u32>)>,
    /// How many answers are wanted.
    pub answers: u32,
    /// How many bytes an action may leave, where one may leave more than it is given.
    pub result_bytes: u64,
}

impl Delays {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty() && self.calls.is_empty()
    }

    #[inline]
    pub fn clear(&mut self) {
        if !self.is_empty() {
            *self = Delays::default();
        }
    }

    /// Whether something may change a key in its turn.
    pub fn changes(&self, space: SpaceId, key: &SmallBytes) -> bool {
        self.actions.iter().any(|(other, delayed, _)| *other == space && delayed == key)
            || self.calls.iter().any(|(call, _)| call.has(space, key))
    }

    /// Whether something may look at a key in its turn, or change it.
    pub fn sees(&self, space: SpaceId, key: &SmallBytes) -> bool {
        self.changes(space, key) || self.calls.iter().any(|(call, _)| call.sees(space, key))
    }

    /// Whether something may change a key of a range in its turn.
    pub fn changes_in(&self, range: &KeyRange) -> bool {
        let mut called = self.calls.iter().flat_map(|(call, _)| &call.keys);
        self.actions.iter().any(|(space, key, _)| range.contains(*space, key))
            || called.any(|(space, key)| range.contains(*space, key))
    }

    /// Whether a procedure and what was delayed before it cannot be told apart.
    fn meets(&self, call: &DelayedCall) -> bool {
        self.actions.iter().any(|(space, key, _)| call.sees(*space, key))
            || self.calls.iter().any(|(other, _)| call.meets(other))
    }

    /// What it counts towards the limit of its transaction.
    pub fn bytes(&self) -> usize {
        let actions = self.actions.iter().map(|(_, key, it)| action_bytes(key, it));
        let calls = self.calls.iter().map(|(call, _)| ENTRY_BYTES + call.bytes());
        actions.sum::<usize>() + calls.sum::<usize>()
    }

    /// The number of the next answer, if it is wanted.
    fn number(&mut self, answered: bool) -> Option<u32> {
        self.answers += u32::from(answered);
        answered.then(|| self.answers - 1)
    }
}

impl<V: Variant> Slot<V> {
    /// Whether it has read, scanned or written a key.
    fn has_used(&self, space: SpaceId, key: &SmallBytes) -> bool {
        self.sets.own(space, key).is_some()
            || self.sets.version_read(space, key).is_some()
            || self.sets.scans.iter().any(|range| range.contains(space, key))
    }

    /// Whether it has used what a procedure may change, or changed what that may look at.
    fn has_used_of(&self, call: &DelayedCall) -> bool {
        call.keys.iter().any(|(space, key)| self.has_used(*space, key))
            || self.sets.writes.iter().any(|write| call.sees(write.space, &write.key))
    }
}

impl<V: Variant> Coordinator<V> {
    pub(in crate::two_phase) fn on_later(
        &mut self,
        txn: Txn,
        delay: &Delay,
        answered: bool,
        cx: &mut Context<'_, V>,
    ) -> Result<Later, Failure> {
        let delays = V::delays_actions(&self.rules);
        let slot = self.open(txn)?;
        if slot.options.read_only {
            return Err(Failure::ReadOnly);
        }
        let at_once = at_once(delay, cx.settings)?;
        let eager = !delays || slot.options.eager;
        let limits = &cx.settings.limits;
        match delay {
            Delay::Action(space, key, action) => {
                check_size(Limit::Key, key.len(), limits.key_bytes)?;
                check_size(Limit::Argument, action.argument.len(), limits.value_bytes)?;
                if eager || slot.has_used(*space, key) {
                    return Ok(at_once);
                }
                if slot.delays.calls.iter().any(|(call, _)| call.sees(*space, key)) {
                    return Err(self.stray(txn, cx));
                }
                let size = slot.delays.bytes() + action_bytes(key, action);
                check_size(Limit::Transaction, size, limits.transaction_bytes)?;
                if cx.settings.actions.grows(&action.name) {
                    slot.delays.result_bytes = limits.value_bytes as u64;
                }
                let number = slot.delays.number(answered);
                let place = slot.delays.actions.len();
                slot.delays.asked.extend(number.map(|number| (place, number)));
                slot.delays.actions.push((*space, key.clone(), action.clone()));
                Ok(Later::Deferred(number.unwrap_or_default()))
            }
            Delay::Call(..) if eager => Ok(at_once),
            Delay::Call(..) => {
                let call = delayed_call(delay, cx)?;
                let Some(call) = call.filter(|call| !slot.has_used_of(call)) else {
                    return Ok(at_once);
                };
                if slot.delays.meets(&call) {
                    return Err(self.stray(txn, cx));
                }
                let size = slot.delays.bytes() + ENTRY_BYTES + call.bytes();
                check_size(Limit::Transaction, size, limits.transaction_bytes)?;
                let number = slot.delays.number(answered);
                slot.delays.calls.push((call, number));
                Ok(Later::Deferred(number.unwrap_or_default()))
            }
        }
    }

    /// The transaction uses a key that it has a delayed action on: it ends.
    pub(in crate::two_phase) fn stray(&mut self, txn: Txn, cx: &mut Context<'_, V>) -> Failure {
        let failure = Failure::Aborted(Abort::Strayed);
        self.abort(txn, &failure, cx);
        failure
    }
}

/// A procedure as its repositories need to know it; `None` where what was declared of it cannot be
/// locked: nothing was, or ranges that it may write, or ranges of a space without order.
fn delayed_call<V: Variant>(
    delay: &Delay,
    cx: &Context<'_, V>,
) -> Result<Option<DelayedCall>, Failure> {
    let Delay::Call(id, place, arguments) = delay else { return Ok(None) };
    check_size(Limit::Argument, arguments.len(), cx.settings.limits.value_bytes)?;
    let procedure = known_procedure(id, cx.settings)?;
    let partition = match place {
        Place::Key(space, key) => cx.catalog.partition(*space, key),
        Place::Repository(at) if usize::from(at.0) < cx.catalog.repositories() => at.0,
        Place::Repository(at) => {
            let all = cx.catalog.repositories();
            let text = format!("there is no repository {}; there are {all}, from 0", at.0);
            return Err(Failure::Procedure(text));
        }
    };
    let declared = footprint(procedure, cx.catalog, arguments).map_err(|stop| match stop {
        Stop::Refused(reason) => Failure::Refused(reason),
        Stop::Faulty(text) => Failure::Procedure(format!("procedure {id}: {text}")),
    })?;
    let Some((keys, ranges)) = declared.and_then(|all| lockable(all, partition, cx.catalog)) else {
        return Ok(None);
    };
    let (procedure_id, arguments) = (id.clone(), arguments.clone());
    let steady = procedure.steady && procedure.refuses == Refuses::Never;
    let procedure = procedure_id;
    Ok(Some(DelayedCall { procedure, arguments, partition, keys, ranges, steady }))
}

type Lockable = (Vec<(SpaceId, SmallBytes)>, Vec<KeyRange>);

/// The keys of a footprint that live where a partition does, and the ranges that are read; `None`
/// where it has others.
fn lockable(all: Footprint, partition: u16, catalog: &Catalog) -> Option<Lockable> {
    let (mut keys, mut ranges) = (BTreeSet::new(), Vec::new());
    let whole = |space| KeyRange { space, lo: SmallBytes::EMPTY, hi: None };
    for touched in all.writes.iter().chain(&all.reads) {
        let range = match touched {
            Touched::Key(space, key) => {
                if catalog.are_together(catalog.partition(*space, key), partition) {
                    keys.insert((*space, key.clone()));
                }
                continue;
            }
            Touched::Range(space, lo, hi) => {
                KeyRange { space: *space, lo: lo.clone(), hi: hi.clone() }
            }
            Touched::Space(space) => whole(*space),
        };
        let ordered = catalog.space(range.space).map(|it| it.options.index == Index::Ordered);
        if all.writes.contains(touched) || ordered != Some(true) {
            return None;
        }
        ranges.push(range);
    }
    Some((keys.into_iter().collect(), ranges))
}
