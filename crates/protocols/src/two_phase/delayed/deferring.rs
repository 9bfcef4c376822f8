//! How a coordinator defers actions and procedures to the commit of their transaction.

use std::collections::BTreeSet;

use muesli_core::contract::{at_once, known_procedure};
use muesli_core::exceeded::Limit;
use muesli_core::limits::{ENTRY_BYTES, check_size};
use muesli_core::parts::execution::footprint;
use muesli_core::parts::locator::Static;
use muesli_core::ranges::KeyRange;
use muesli_core::{
    Abort, Catalog, Deferral, Delay, DelayedCall, Failure, Footprint, Index, Place, Refuses,
    SmallBytes, SpaceId, Stop, Touched, Txn,
};

use crate::two_phase::coordinator::Coordinator;
use crate::two_phase::coordinator::slot::Slot;
use crate::two_phase::table::sizes::action_bytes;
use crate::two_phase::{Context, Variant};

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
    pub(in crate::two_phase) fn on_deferral(
        &mut self,
        txn: Txn,
        delay: &Delay,
        answered: bool,
        cx: &mut Context<'_, V>,
    ) -> Result<Deferral, Failure> {
        let delays = V::delays_actions(&self.switches);
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
                    return Err(self.footprint_violation(txn, cx));
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
                Ok(Deferral::Deferred(number.unwrap_or_default()))
            }
            Delay::Call(..) if eager => Ok(at_once),
            Delay::Call(..) => {
                let call = delayed_call(delay, cx)?;
                let Some(call) = call.filter(|call| !slot.has_used_of(call)) else {
                    return Ok(at_once);
                };
                if slot.delays.meets(&call) {
                    return Err(self.footprint_violation(txn, cx));
                }
                let size = slot.delays.bytes() + ENTRY_BYTES + call.bytes();
                check_size(Limit::Transaction, size, limits.transaction_bytes)?;
                let number = slot.delays.number(answered);
                assert!(
                    number.is_none_or(|it| it < slot.delays.answers),
                    "a number beyond the last"
                );
                slot.delays.calls.push((call, number));
                Ok(Deferral::Deferred(number.unwrap_or_default()))
            }
        }
    }

    /// The transaction uses a key that it has a delayed action on: it ends.
    pub(in crate::two_phase) fn footprint_violation(
        &mut self,
        txn: Txn,
        cx: &mut Context<'_, V>,
    ) -> Failure {
        let failure = Failure::Aborted(Abort::FootprintViolation);
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
                if Static.are_colocated(catalog.partition(*space, key), partition, catalog) {
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
