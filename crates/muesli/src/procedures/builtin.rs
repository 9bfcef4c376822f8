//! Procedures that are always there, on raw bytes, and that serve as examples.
//!
//! | name | arguments | answer | refuses |
//! | --- | --- | --- | --- |
//! | `get` | [`Keyed`]: a space and keys | their values | never; reads only |
//! | `scan` | [`Ranged`]: a space and a range | its rows at that repository | never; reads only |
//! | `put` | [`Rows`]: a space and rows; no value deletes | nothing | never |
//! | `put-missing` | [`Rows`] | nothing; what is there stays | never |
//! | `compare-and-set` | [`Comparison`] | nothing | where the key has another value |
//! | `add` | [`Amount`] | the new number | never: it wraps |
//! | `deposit` | [`Amount`] | the new number | where it would not fit into 64 bits |
//! | `withdraw` | [`Amount`] | the new number | where it would fall below zero |
//! | `add-within` | [`Bounded`]: a bounded counter | the new number | where it would leave them |
//! | `pay`, `receive` | [`Transfer`]: from one key to another | the new number | together |
//! | `append` | [`Appended`] | the new length | never |
//!
//! All are version 1, and touch the keys that they are given and no others. Numbers are stored as
//! delayed actions store them: eight bytes, little-endian; an absent one is zero. A transfer is
//! `withdraw` at one key and `deposit` at another, where each may refuse, so that their
//! repositories vote and lock; or `pay` at the one and `receive` at the other, with the same
//! arguments: each repository is told what the other one has, and both decide alike.

use muesli_core::{Footprint, Procedures, Refuses, SmallBytes, SpaceId, Stop, Touched};
use serde::{Deserialize, Serialize};

use super::bytes::Bytes;
use super::keys::Keys;
use super::registration::with;
use super::stored::{SharesFn, Spaces, StoredProcedure, TouchesFn};
use crate::data::byte_range::Range;
use crate::data::space::Space;

/// All of them.
pub fn all() -> Procedures {
    let reading = with::<Scan>(with::<Get>(Procedures::default()));
    let writing = with::<CompareAndSet>(with::<PutMissing>(with::<Put>(reading)));
    let writing = with::<Receive>(with::<Pay>(with::<Append>(writing)));
    with::<AddWithin>(with::<Withdraw>(with::<Deposit>(with::<Add>(writing))))
}

/// Keys of a space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyed {
    /// The space.
    pub space: Space,
    /// The keys.
    pub keys: Vec<Bytes>,
}

/// A range of a space, as [`Range`] has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranged {
    /// The space.
    pub space: Space,
    /// First key.
    pub lo: Bytes,
    /// First key after it; `None` is open.
    pub hi: Option<Bytes>,
    /// From its end backwards.
    pub reverse: bool,
    /// Most rows wanted.
    pub limit: u64,
}

impl Ranged {
    /// A range of a space.
    pub fn of(space: Space, range: Range) -> Ranged {
        let Range { lo, hi, reverse, limit } = range;
        Ranged { space, lo: Bytes(lo), hi: hi.map(Bytes), reverse, limit: limit as u64 }
    }
}

/// Rows of a space, to be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    /// The space.
    pub space: Space,
    /// Keys and their values; no value deletes.
    pub rows: Vec<(Bytes, Option<Bytes>)>,
}

/// A key, what it must have, and what it is to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// The space.
    pub space: Space,
    /// The key.
    pub key: Bytes,
    /// What it must have; `None`: it must be absent.
    pub expected: Option<Bytes>,
    /// What it has afterwards; `None`: it is deleted.
    pub new: Option<Bytes>,
}

/// A number, and what is added to it or taken from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// The space.
    pub space: Space,
    /// The key.
    pub key: Bytes,
    /// How much.
    pub amount: i64,
}

impl Amount {
    /// So much at a key.
    pub fn of(space: Space, key: impl Into<SmallBytes>, amount: i64) -> Amount {
        Amount { space, key: Bytes(key.into()), amount }
    }
}

/// A number with bounds, and what is added to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounded {
    /// Which number, and how much.
    pub add: Amount,
    /// It is never less afterwards.
    pub least: i64,
    /// Nor more.
    pub most: i64,
}

/// A number, of which a part goes to another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// The space of both.
    pub space: Space,
    /// Where it is taken from.
    pub from: Bytes,
    /// Where it goes.
    pub to: Bytes,
    /// How much.
    pub amount: i64,
}

impl Transfer {
    /// So much from one key to another.
    pub fn of(
        space: Space,
        from: impl Into<SmallBytes>,
        to: impl Into<SmallBytes>,
        amount: i64,
    ) -> Transfer {
        Transfer { space, from: Bytes(from.into()), to: Bytes(to.into()), amount }
    }
}

/// A key, and bytes for its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Appended {
    /// The space.
    pub space: Space,
    /// The key.
    pub key: Bytes,
    /// What is appended.
    pub bytes: Bytes,
}

fn one(space: Space, key: &Bytes) -> Vec<Touched> {
    vec![Touched::Key(space.id(), key.0.clone())]
}

/// Reads and writes one key.
fn changes(space: Space, key: &Bytes) -> Result<Footprint, Stop> {
    Ok(Footprint { reads: one(space, key), writes: one(space, key) })
}

fn all_of<'a>(id: SpaceId, keys: impl Iterator<Item = &'a Bytes>) -> Vec<Touched> {
    keys.map(|key| Touched::Key(id, key.0.clone())).collect()
}

/// Reads keys.
#[derive(Debug)]
pub struct Get;

impl StoredProcedure for Get {
    const NAME: &'static str = "get";
    const READ_ONLY: bool = true;
    const REFUSES: Refuses = Refuses::Never;
    const TOUCHES: Option<TouchesFn<Keyed>> = Some(|_: &Spaces<'_>, it: &Keyed| {
        Ok(Footprint { reads: all_of(it.space.id(), it.keys.iter()), writes: Vec::new() })
    });
    type Arguments = Keyed;
    type Answer = Vec<Option<Bytes>>;

    fn run(keys: &mut Keys<'_>, it: Keyed) -> Result<Self::Answer, Stop> {
        it.keys.iter().map(|key| Ok(keys.get(it.space, &key.0)?.map(Bytes))).collect()
    }
}

/// Reads a range of the keys that live at its repository.
#[derive(Debug)]
pub struct Scan;

impl StoredProcedure for Scan {
    const NAME: &'static str = "scan";
    const READ_ONLY: bool = true;
    const REFUSES: Refuses = Refuses::Never;
    const TOUCHES: Option<TouchesFn<Ranged>> = Some(|_: &Spaces<'_>, it: &Ranged| {
        let (lo, hi) = (it.lo.0.clone(), it.hi.as_ref().map(|hi| hi.0.clone()));
        Ok(Footprint { reads: vec![Touched::Range(it.space.id(), lo, hi)], writes: Vec::new() })
    });
    type Arguments = Ranged;
    type Answer = Vec<(Bytes, Bytes)>;

    fn run(keys: &mut Keys<'_>, it: Ranged) -> Result<Self::Answer, Stop> {
        let limit = usize::try_from(it.limit).unwrap_or(usize::MAX);
        let (lo, hi, reverse) = (it.lo.0, it.hi.map(|hi| hi.0), it.reverse);
        let rows = keys.scan(it.space, Range { lo, hi, reverse, limit })?;
        Ok(rows.into_iter().map(|(key, value)| (Bytes(key), Bytes(value))).collect())
    }
}

/// Writes rows, whatever is there.
#[derive(Debug)]
pub struct Put;

impl StoredProcedure for Put {
    const NAME: &'static str = "put";
    const REFUSES: Refuses = Refuses::Never;
    const TOUCHES: Option<TouchesFn<Rows>> = Some(|_: &Spaces<'_>, it: &Rows| {
        let writes = all_of(it.space.id(), it.rows.iter().map(|(key, _)| key));
        Ok(Footprint { reads: Vec::new(), writes })
    });
    type Arguments = Rows;
    type Answer = ();

    fn run(keys: &mut Keys<'_>, it: Rows) -> Result<(), Stop> {
        for (key, value) in it.rows {
            match value {
                Some(value) => keys.put(it.space, key.0, value.0)?,
                None => keys.delete(it.space, key.0)?,
            }
        }
        Ok(())
    }
}

/// Writes those rows whose keys are absent.
#[derive(Debug)]
pub struct PutMissing;

impl StoredProcedure for PutMissing {
    const NAME: &'static str = "put-missing";
    const REFUSES: Refuses = Refuses::Never;
    const TOUCHES: Option<TouchesFn<Rows>> = Some(|_: &Spaces<'_>, it: &Rows| {
        let touched = all_of(it.space.id(), it.rows.iter().map(|(key, _)| key));
        Ok(Footprint { reads: touched.clone(), writes: touched })
    });
    type Arguments = Rows;
    type Answer = ();

    fn run(keys: &mut Keys<'_>, it: Rows) -> Result<(), Stop> {
        for (key, value) in it.rows {
            if let (None, Some(value)) = (keys.get(it.space, &key.0)?, value) {
                keys.put(it.space, key.0, value.0)?;
            }
        }
        Ok(())
    }
}

/// Writes a key if it has what is expected; else refuses. Several in one call are Sinfonia's
/// minitransaction: all compare, or none is set.
#[derive(Debug)]
pub struct CompareAndSet;

impl StoredProcedure for CompareAndSet {
    const NAME: &'static str = "compare-and-set";
    const TOUCHES: Option<TouchesFn<Comparison>> =
        Some(|_: &Spaces<'_>, it: &Comparison| changes(it.space, &it.key));
    type Arguments = Comparison;
    type Answer = ();

    fn run(keys: &mut Keys<'_>, it: Comparison) -> Result<(), Stop> {
        let found = keys.get(it.space, &it.key.0)?;
        if found != it.expected.map(|expected| expected.0) {
            return Err(Stop::Refused("the value is another one".into()));
        }
        match it.new {
            Some(new) => keys.put(it.space, it.key.0, new.0),
            None => keys.delete(it.space, it.key.0),
        }
    }
}

/// Reads the number of a key, lets it be changed, and writes it; what it is then. A change that
/// cannot be is refused.
fn change(
    keys: &mut Keys<'_>,
    it: &Amount,
    change: impl FnOnce(i64, i64) -> Result<i64, &'static str>,
) -> Result<i64, Stop> {
    let refused = |why: &str| Stop::Refused(why.into());
    let found = keys.get(it.space, &it.key.0)?;
    let old = match &found {
        None => 0,
        Some(bytes) => number(bytes).ok_or_else(|| refused("the value is no number"))?,
    };
    let new = change(old, it.amount).map_err(refused)?;
    keys.put(it.space, it.key.0.clone(), SmallBytes::new(&new.to_le_bytes()))?;
    Ok(new)
}

/// A number as it is stored.
pub fn number(bytes: &SmallBytes) -> Option<i64> {
    bytes.as_slice().try_into().ok().map(i64::from_le_bytes)
}

/// Adds to a number; it wraps. A value that is no number is left as it is: this procedure must
/// never refuse.
#[derive(Debug)]
pub struct Add;

impl StoredProcedure for Add {
    const NAME: &'static str = "add";
    const REFUSES: Refuses = Refuses::Never;
    const TOUCHES: Option<TouchesFn<Amount>> =
        Some(|_: &Spaces<'_>, it: &Amount| changes(it.space, &it.key));
    type Arguments = Amount;
    type Answer = i64;

    fn run(keys: &mut Keys<'_>, it: Amount) -> Result<i64, Stop> {
        match change(keys, &it, |old, amount| Ok(old.wrapping_add(amount))) {
            Err(Stop::Refused(_)) => Ok(0),
            done => done,
        }
    }
}

/// Adds to a number that has room for it.
#[derive(Debug)]
pub struct Deposit;

impl StoredProcedure for Deposit {
    const NAME: &'static str = "deposit";
    const TOUCHES: Option<TouchesFn<Amount>> =
        Some(|_: &Spaces<'_>, it: &Amount| changes(it.space, &it.key));
    type Arguments = Amount;
    type Answer = i64;

    fn run(keys: &mut Keys<'_>, it: Amount) -> Result<i64, Stop> {
        change(keys, &it, |old, amount| old.checked_add(amount).ok_or("the sum does not fit"))
    }
}

/// Takes from a number, down to zero.
#[derive(Debug)]
pub struct Withdraw;

impl StoredProcedure for Withdraw {
    const NAME: &'static str = "withdraw";
    const TOUCHES: Option<TouchesFn<Amount>> =
        Some(|_: &Spaces<'_>, it: &Amount| changes(it.space, &it.key));
    type Arguments = Amount;
    type Answer = i64;

    fn run(keys: &mut Keys<'_>, it: Amount) -> Result<i64, Stop> {
        let take = |old: i64, amount: i64| {
            old.checked_sub(amount).filter(|left| *left >= 0).ok_or("there is not enough")
        };
        change(keys, &it, take)
    }
}

/// Adds to a number that stays within bounds.
#[derive(Debug)]
pub struct AddWithin;

impl StoredProcedure for AddWithin {
    const NAME: &'static str = "add-within";
    const TOUCHES: Option<TouchesFn<Bounded>> =
        Some(|_: &Spaces<'_>, it: &Bounded| changes(it.add.space, &it.add.key));
    type Arguments = Bounded;
    type Answer = i64;

    fn run(keys: &mut Keys<'_>, it: Bounded) -> Result<i64, Stop> {
        let bounds = it.least..=it.most;
        let add = |old: i64, amount: i64| {
            let sum = old.checked_add(amount).filter(|sum| bounds.contains(sum));
            sum.ok_or("the number would leave its bounds")
        };
        change(keys, &it.add, add)
    }
}

/// Whether a transfer can be, by what both of its repositories are told; where nobody tells, by
/// what this one has, as the other one has a vote of its own.
fn can_be(keys: &mut Keys<'_>, it: &Transfer) -> Result<(), Stop> {
    let refused = |why: &str| Err(Stop::Refused(why.into()));
    let mut shared = |key: &Bytes| -> Result<Option<Option<i64>>, Stop> {
        let found = keys.shared(it.space, &key.0)?;
        Ok(found.map(|found| found.map_or(Some(0), |bytes| number(&bytes))))
    };
    let (from, to) = (shared(&it.from)?, shared(&it.to)?);
    if from == Some(None) || to == Some(None) {
        return refused("the value is no number");
    }
    let left = |old: i64| old.checked_sub(it.amount).is_some_and(|left| left >= 0);
    if from.flatten().is_some_and(|old| !left(old)) {
        return refused("there is not enough");
    }
    match to.flatten().is_some_and(|old| old.checked_add(it.amount).is_none()) {
        true => refused("the sum does not fit"),
        false => Ok(()),
    }
}

/// The half of a transfer where it is taken from; the other one is [`Receive`].
#[derive(Debug)]
pub struct Pay;

impl StoredProcedure for Pay {
    const NAME: &'static str = "pay";
    const REFUSES: Refuses = Refuses::Alike;
    const TOUCHES: Option<TouchesFn<Transfer>> =
        Some(|_: &Spaces<'_>, it: &Transfer| changes(it.space, &it.from));
    const SHARES: Option<SharesFn<Transfer>> =
        Some(|_: &Spaces<'_>, it: &Transfer| Ok(vec![(it.space, it.from.0.clone())]));
    type Arguments = Transfer;
    type Answer = i64;

    fn run(keys: &mut Keys<'_>, it: Transfer) -> Result<i64, Stop> {
        can_be(keys, &it)?;
        let of = Amount { space: it.space, key: it.from, amount: it.amount };
        change(keys, &of, |old, amount| old.checked_sub(amount).ok_or("there is not enough"))
    }
}

/// The half of a transfer where it goes; the other one is [`Pay`].
#[derive(Debug)]
pub struct Receive;

impl StoredProcedure for Receive {
    const NAME: &'static str = "receive";
    const REFUSES: Refuses = Refuses::Alike;
    const TOUCHES: Option<TouchesFn<Transfer>> =
        Some(|_: &Spaces<'_>, it: &Transfer| changes(it.space, &it.to));
    const SHARES: Option<SharesFn<Transfer>> =
        Some(|_: &Spaces<'_>, it: &Transfer| Ok(vec![(it.space, it.to.0.clone())]));
    type Arguments = Transfer;
    type Answer = i64;

    fn run(keys: &mut Keys<'_>, it: Transfer) -> Result<i64, Stop> {
        can_be(keys, &it)?;
        let of = Amount { space: it.space, key: it.to, amount: it.amount };
        change(keys, &of, |old, amount| old.checked_add(amount).ok_or("the sum does not fit"))
    }
}

/// Appends bytes to a key's value.
#[derive(Debug)]
pub struct Append;

impl StoredProcedure for Append {
    const NAME: &'static str = "append";
    const REFUSES: Refuses = Refuses::Never;
    const TOUCHES: Option<TouchesFn<Appended>> =
        Some(|_: &Spaces<'_>, it: &Appended| changes(it.space, &it.key));
    type Arguments = Appended;
    type Answer = u64;

    fn run(keys: &mut Keys<'_>, it: Appended) -> Result<u64, Stop> {
        let found = keys.get(it.space, &it.key.0)?;
        let mut bytes = found.map_or_else(Vec::new, |found| found.as_slice().to_vec());
        bytes.extend_from_slice(it.bytes.0.as_slice());
        let length = bytes.len() as u64;
        keys.put(it.space, it.key.0, bytes)?;
        Ok(length)
    }
}

#[cfg(test)]
#[path = "builtin_tests.rs"]
mod tests;
