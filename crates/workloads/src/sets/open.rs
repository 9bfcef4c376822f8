//! Operations on sets as open children: each commits at once, with an abstract lock on its key, and
//! is undone by its inverse.
//!
//! An operation that had an effect holds its key alone; one that had none, and one that only looks,
//! together with others like it. A walk through a structure takes no lock: it sees rows, and looks
//! whether these are sound, not what transactions mean by them.
//!
//! With `open=nested` two changes are open children of one that is an open child of the
//! transaction. Until that one commits, their inverses are what its abort would run, and then its
//! own stands for both; their locks pass to the transaction. It counts what they changed in a row
//! of its own, which it writes after both have committed, so that it may well be undone.

use std::sync::Arc;

use muesli::open_nesting::{LockMode, OpenNesting, OpenTx};
use muesli::structures::Counter;
use muesli::{Db, Error, Space};

use super::changing::{KeyChanges, KeysChanged, SetCall};
use super::structure::Structure;
use super::{SPACE, Sets};
use crate::calls::CallLength;
use crate::nesting::open_layer;
use crate::nesting::roots::RootCall;
use crate::workload::transact_nested;

/// The space with the numbers that open children with open children count in.
pub(super) const TALLIES: &str = "tallies";
/// So many calls are open children of one.
pub(super) const GROUP: usize = 2;

/// The inverse operations.
const ADD: &str = "sets/add";
const REMOVE: &str = "sets/remove";
/// The inverse of several adds, or removes, and of what was counted.
const UNDO_GROUP: &str = "sets/undo-group";

/// What a group has done: in which structure, whether it has added keys, which, and the row that
/// they are counted in.
type GroupDone = (usize, bool, Vec<u64>, u64);

/// So many rows a structure has for what is counted in it.
const TALLIES_EACH: u64 = 4;

/// What open children with open children have added to a structure, less what they removed, those
/// of each of its rows.
pub(super) fn tallies(space: Space, at: usize) -> Vec<Counter> {
    (0..TALLIES_EACH).map(|row| tally(space, (at, row))).collect()
}

fn tally(space: Space, (at, row): (usize, u64)) -> Counter {
    Counter::new(space, &format!("tally {at}/{row}"))
}

/// The layer with the inverse operations of all structures.
pub(super) fn layer(sets: &Sets, db: &Db) -> Result<OpenNesting, Error> {
    let all = Arc::new(sets.structures(db.space(SPACE)?));
    let structures = all.clone();
    let mut layer = open_layer::layer(&sets.nesting, db)?;
    if let Some(switch) = sets.broken {
        layer = layer.without(switch);
    }
    if sets.roots.is_on() {
        layer = layer.recorded();
    }
    let layer = layer.handler(REMOVE, move |tx, (at, key): (usize, u64)| {
        let structure = structures.get(at).cloned().ok_or_else(|| missing(at));
        Box::pin(async move { structure?.remove(tx, key).await.map(drop) })
    });
    let structures = all.clone();
    let layer = layer.handler(ADD, move |tx, (at, key): (usize, u64)| {
        let structure = structures.get(at).cloned().ok_or_else(|| missing(at));
        Box::pin(async move { structure?.add(tx, key).await.map(drop) })
    });
    if !sets.grouped {
        return Ok(layer);
    }
    let (structures, tallies) = (all, db.space(TALLIES)?);
    Ok(layer.handler(UNDO_GROUP, move |tx, (at, added, keys, row): GroupDone| {
        let structure = structures.get(at).cloned().ok_or_else(|| missing(at));
        Box::pin(async move {
            let (structure, by) = (structure?, if added { -1 } else { 1 });
            let call = if added { SetCall::Remove } else { SetCall::Add };
            for key in keys.iter().rev() {
                structure.call(tx, *key, call).await?;
            }
            tally(tallies, (at, row)).add(tx, by * keys.len() as i64).await.map(drop)
        })
    }))
}

fn missing(at: usize) -> Error {
    Error::rollback(format!("there is no structure {at}"))
}

/// The lock on a key of a structure.
fn lock_of(at: usize, key: u64) -> [u8; 12] {
    let mut lock = [0; 12];
    lock[..4].copy_from_slice(&(at as u32).to_be_bytes());
    lock[4..].copy_from_slice(&key.to_be_bytes());
    lock
}

/// Transactions whose calls are open children.
#[derive(Clone, Copy)]
pub(super) struct OpenCalls<'a> {
    pub layer: &'a OpenNesting,
    pub db: &'a Db,
    pub length: CallLength,
    pub structure: &'a Structure,
}

impl OpenCalls<'_> {
    /// Looks for keys; the first wrong value that a search found.
    pub async fn look(
        self,
        root: &RootCall<'_>,
        at: usize,
        keys: &[u64],
    ) -> (Result<Option<u64>, Error>, u32) {
        let body = async |tx: &OpenTx| {
            root.begin_attempt();
            let mut wrong = None;
            for &key in keys {
                let look = async |child: &OpenTx| {
                    let found = self.structure.contains(child, key).await?;
                    self.length.wait(self.db).await?;
                    Ok::<_, Error>(found)
                };
                let (found, strange) =
                    tx.open_atomic((lock_of(at, key), &LockMode::read()), look).await?;
                root.did(SetCall::Look.answered(at, key, found));
                wrong = wrong.or(strange);
            }
            Ok(wrong)
        };
        transact_nested(self.db, self.layer, body).await
    }

    /// Adds or removes keys, each by an open child, or two by one which has open children; what
    /// that has changed is set out before the commit.
    pub async fn change(
        self,
        (what, grouped): (KeyChanges<'_>, bool),
        root: &RootCall<'_>,
        set_out: impl Fn(&KeysChanged),
    ) -> (Result<KeysChanged, Error>, u32) {
        let body = async |tx: &OpenTx| {
            root.begin_attempt();
            let call = async |key, call| self.call(tx, (what.at, key), call, false).await;
            let changed = match grouped {
                false => what.run(root, call).await?,
                true => {
                    let mut changed = KeysChanged::default();
                    for keys in what.keys.chunks(GROUP) {
                        let effects = self.group(tx, KeyChanges { keys, ..what }).await?;
                        for (&key, effect) in keys.iter().zip(effects) {
                            root.did(what.call().answered(what.at, key, effect));
                            changed.keys.extend(effect.then_some(key));
                        }
                    }
                    changed.grouped = what.by() * changed.keys.len() as i64;
                    what.look_again(root, &mut changed, call).await?;
                    changed
                }
            };
            set_out(&changed);
            Ok(changed)
        };
        transact_nested(self.db, self.layer, body).await
    }

    /// A call as an open child, of the transaction or of one that hands the lock on to it.
    async fn call(
        self,
        tx: &OpenTx,
        (at, key): (usize, u64),
        call: SetCall,
        hands_on: bool,
    ) -> Result<bool, Error> {
        let lock = lock_of(at, key);
        let body = async |child: &OpenTx| {
            let answer = self.structure.call(child, key, call).await?;
            let inverse = call.inverse().filter(|_| answer);
            let mode = if inverse.is_some() { LockMode::write() } else { LockMode::read() };
            match hands_on {
                true => child.hold_lock(lock, &mode).await?,
                false => child.acquire_lock(lock, &mode).await?,
            }
            if let Some(inverse) = inverse {
                child.on_abort(if inverse == SetCall::Add { ADD } else { REMOVE }, &(at, key))?;
            }
            self.length.wait(self.db).await?;
            Ok::<_, Error>(answer)
        };
        tx.open_atomic((), body).expect_lock(lock).await
    }

    /// Some changes as open children of one; whether each had an effect. Every other one is in a
    /// closed child of that, beside which its locks and its inverse are the open one's all the
    /// same.
    async fn group(self, tx: &OpenTx, what: KeyChanges<'_>) -> Result<Vec<bool>, Error> {
        let (at, call) = (what.at, what.call());
        let row = what.keys.iter().sum::<u64>() % TALLIES_EACH;
        let tally = tally(self.db.space(TALLIES)?, (at, row));
        let body = async |child: &OpenTx| {
            let (mut effects, mut changed) = (Vec::new(), Vec::new());
            for (place, &key) in what.keys.iter().enumerate() {
                let change = async |tx: &OpenTx| self.call(tx, (at, key), call, true).await;
                let effect = match place % 2 {
                    0 => change(child).await?,
                    _ => child.nested(change).await?,
                };
                effects.push(effect);
                changed.extend(effect.then_some(key));
            }
            if !changed.is_empty() {
                tally.add(child, what.by() * changed.len() as i64).await?;
                child.on_abort(UNDO_GROUP, &(at, what.adds, &changed, row))?;
            }
            Ok::<_, Error>(effects)
        };
        tx.open_atomic((), body).await
    }
}
