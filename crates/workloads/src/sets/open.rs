//! Operations on sets as open children: each commits at once, with an abstract lock on its key, and
//! is undone by its inverse.
//!
//! An operation that had an effect holds its key alone; one that had none, and one that only looks,
//! together with others like it. A walk through a structure takes no lock: it sees rows, and looks
//! whether these are sound, not what transactions mean by them.

use std::sync::Arc;

use muesli::open_nesting::{LockMode, OpenNesting, OpenTx};
use muesli::{Db, Error};

use muesli_check::abstract_operations::AbstractOperation;

use super::structure::Structure;
use super::{SPACE, Sets};
use crate::calls::CallLength;
use crate::nesting::open_layer;
use crate::nesting::roots::RootCall;
use crate::workload::transact_nested;

/// The inverse operations.
const ADD: &str = "sets/add";
const REMOVE: &str = "sets/remove";

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
    let structures = all;
    Ok(layer.handler(ADD, move |tx, (at, key): (usize, u64)| {
        let structure = structures.get(at).cloned().ok_or_else(|| missing(at));
        Box::pin(async move { structure?.add(tx, key).await.map(drop) })
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

/// What an add or a remove of a key of a structure answered.
pub(super) fn changed_key(at: usize, key: u64, adds: bool, effect: bool) -> AbstractOperation {
    let set = at as u64;
    match adds {
        true => AbstractOperation::Add { set, key, was_new: effect },
        false => AbstractOperation::Remove { set, key, was_there: effect },
    }
}

/// Looks for keys; the first wrong value that a search found.
pub(super) async fn look(
    (layer, length): (&OpenNesting, CallLength),
    (db, root): (&Db, &RootCall<'_>),
    (at, structure): (usize, &Structure),
    keys: &[u64],
) -> (Result<Option<u64>, Error>, u32) {
    let body = async |tx: &OpenTx| {
        root.begin_attempt();
        let mut wrong = None;
        for &key in keys {
            let look = async |child: &OpenTx| {
                let found = structure.contains(child, key).await?;
                length.wait(db).await?;
                Ok::<_, Error>(found)
            };
            let (found, strange) =
                tx.open_atomic((lock_of(at, key), &LockMode::read()), look).await?;
            root.did(AbstractOperation::Contains { set: at as u64, key, found });
            wrong = wrong.or(strange);
        }
        Ok(wrong)
    };
    transact_nested(db, layer, body).await
}

/// Adds or removes keys; those for which that had an effect, which are set out before the commit.
pub(super) async fn change(
    (layer, length): (&OpenNesting, CallLength),
    (db, root): (&Db, &RootCall<'_>),
    (at, structure): (usize, &Structure),
    (keys, adds): (&[u64], bool),
    set_out: impl Fn(&[u64]),
) -> (Result<Vec<u64>, Error>, u32) {
    let body = async |tx: &OpenTx| {
        root.begin_attempt();
        let mut changed = Vec::new();
        for &key in keys {
            let change = async |child: &OpenTx| {
                let effect = match adds {
                    true => structure.add(child, key).await?,
                    false => structure.remove(child, key).await?,
                };
                let mode = if effect { LockMode::write() } else { LockMode::read() };
                child.acquire_lock(lock_of(at, key), &mode).await?;
                if effect {
                    child.on_abort(if adds { REMOVE } else { ADD }, &(at, key))?;
                }
                length.wait(db).await?;
                Ok::<_, Error>(effect)
            };
            let effect = tx.open_atomic((), change).expect_lock(lock_of(at, key)).await?;
            root.did(changed_key(at, key, adds, effect));
            changed.extend(effect.then_some(key));
        }
        set_out(&changed);
        Ok(changed)
    };
    transact_nested(db, layer, body).await
}
