//! A dry run of procedures: one repository's keys in a map, without a database around it.

use std::collections::BTreeMap;
use std::ops::Bound;

use muesli_core::procedure::NewValue;
use muesli_core::{Footprint, Row, Scan, SmallBytes, SpaceId, Stop, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::encoding::{answer, encode};
use super::registration::{run_typed, shares_typed, touches_typed};
use super::stored::StoredProcedure;
use crate::data::key::Key;
use crate::data::space::{Space, TypedSpace};

/// Runs procedures one after the other, to test them: with what is declared held to, and no effect
/// of those that stop. Each space is called by a name and has an order.
#[derive(Clone, Debug, Default)]
pub struct DryRun {
    spaces: Vec<String>,
    rows: BTreeMap<(SpaceId, SmallBytes), SmallBytes>,
}

impl DryRun {
    /// Empty spaces of these names; their numbers are their places, from 0.
    pub fn new(spaces: &[&str]) -> DryRun {
        let spaces = spaces.iter().map(|name| (*name).to_owned()).collect();
        DryRun { spaces, rows: BTreeMap::new() }
    }

    /// The space called `name`.
    ///
    /// # Panics
    /// There is none.
    pub fn space(&self, name: &str) -> Space {
        Space::numbered(find(&self.spaces, name).expect("a space of the dry run"))
    }

    /// Runs a procedure: its arguments and its answer travel as they do in a database. It is alone
    /// in its transaction, and told of what it tells itself.
    ///
    /// # Errors
    /// Why it stopped; nothing is changed then.
    pub fn run<P: StoredProcedure>(&mut self, arguments: &P::Arguments) -> Result<P::Answer, Stop> {
        self.run_with_shared::<P>(&[], arguments)
    }

    /// As [`run`](Self::run), where others of the same transaction tell of these keys.
    ///
    /// # Errors
    /// Why it stopped; nothing is changed then.
    pub fn run_with_shared<P: StoredProcedure>(
        &mut self,
        others: &[(Space, SmallBytes)],
        arguments: &P::Arguments,
    ) -> Result<P::Answer, Stop> {
        let faulty = |error: crate::Error| Stop::Faulty(error.to_string());
        let arguments = encode(arguments).map_err(faulty)?;
        let spaces = self.spaces.clone();
        let declared = match P::TOUCHES {
            Some(_) => Some(touches_typed::<P>(&|name| find(&spaces, name), &arguments)?),
            None => None,
        };
        let mut shares: Vec<_> =
            others.iter().map(|(space, key)| (space.id, key.clone())).collect();
        if P::SHARES.is_some() {
            shares.extend(shares_typed::<P>(&|name| find(&spaces, name), &arguments)?);
        }
        let ended = self.act(declared, P::READ_ONLY, shares, |act| run_typed::<P>(act, &arguments));
        answer::<P>(&ended?).map_err(faulty)
    }

    /// Runs something on the keys, held to what is declared; nothing is changed where it stops.
    pub(crate) fn act(
        &mut self,
        declared: Option<Footprint>,
        read_only: bool,
        shares: Vec<(SpaceId, SmallBytes)>,
        run: impl FnOnce(&mut dyn Store) -> Result<SmallBytes, Stop>,
    ) -> Result<SmallBytes, Stop> {
        let (before, fault) = (Vec::new(), None);
        let mut act = Act { dry_run: self, declared, read_only, shares, before, fault };
        let ended = run(&mut act);
        let ended = match act.fault.take() {
            Some(fault) => Err(Stop::Faulty(fault)),
            None => ended,
        };
        if ended.is_err() {
            act.undo();
        }
        ended
    }

    /// The number of the space called `name`.
    pub(crate) fn find(&self, name: &str) -> Result<SpaceId, Stop> {
        find(&self.spaces, name)
    }

    /// What a key has.
    pub fn get(&self, space: Space, key: impl Into<SmallBytes>) -> Option<SmallBytes> {
        self.rows.get(&(space.id, key.into())).cloned()
    }

    /// Sets a key.
    pub fn put(&mut self, space: Space, key: impl Into<SmallBytes>, value: impl Into<SmallBytes>) {
        self.rows.insert((space.id, key.into()), value.into());
    }

    /// What a typed key has.
    ///
    /// # Panics
    /// The value is of another type.
    pub fn read<K: Key, V: Serialize + DeserializeOwned>(
        &self,
        space: TypedSpace<K, V>,
        key: &K,
    ) -> Option<V> {
        let value = self.get(space.raw(), key.encoded())?;
        Some(postcard::from_bytes(value.as_slice()).expect("a value of the space's type"))
    }

    /// All rows of a space, in order.
    pub fn rows(&self, space: Space) -> impl Iterator<Item = (&SmallBytes, &SmallBytes)> {
        let from = (space.id, SmallBytes::EMPTY);
        let of_space = self.rows.range(from..).take_while(move |((id, _), _)| *id == space.id);
        of_space.map(|((_, key), value)| (key, value))
    }
}

fn find(spaces: &[String], name: &str) -> Result<SpaceId, Stop> {
    let place = spaces.iter().position(|space| space == name);
    let missing = || Stop::Faulty(format!("there is no space `{name}`"));
    place.map(|place| SpaceId(place as u16)).ok_or_else(missing)
}

/// One procedure on the stage.
struct Act<'a> {
    dry_run: &'a mut DryRun,
    declared: Option<Footprint>,
    read_only: bool,
    shares: Vec<(SpaceId, SmallBytes)>,
    /// What was there before each write.
    before: Vec<(SpaceId, SmallBytes, Option<SmallBytes>)>,
    /// Remembered, for procedures that swallow it.
    fault: Option<String>,
}

impl Act<'_> {
    fn undo(&mut self) {
        for (space, key, before) in self.before.drain(..).rev() {
            match before {
                Some(value) => self.dry_run.rows.insert((space, key), value),
                None => self.dry_run.rows.remove(&(space, key)),
            };
        }
    }

    fn check(&mut self, is_allowed: bool, what: impl FnOnce() -> String) -> Result<(), Stop> {
        if is_allowed {
            return Ok(());
        }
        let fault = self.fault.get_or_insert_with(what).clone();
        Err(Stop::Faulty(fault))
    }

    fn may(&self, space: SpaceId, key: &SmallBytes, writes: bool) -> bool {
        self.declared.as_ref().is_none_or(|declared| declared.allows(space, key, writes))
    }
}

impl Store for Act<'_> {
    fn space(&self, name: &str) -> Result<SpaceId, Stop> {
        find(&self.dry_run.spaces, name)
    }

    fn get(&mut self, space: SpaceId, key: &SmallBytes) -> Result<Option<SmallBytes>, Stop> {
        self.check(self.may(space, key, false), || {
            format!("it read {key:?}, which is undeclared")
        })?;
        Ok(self.dry_run.rows.get(&(space, key.clone())).cloned())
    }

    fn put(&mut self, space: SpaceId, key: SmallBytes, value: NewValue) -> Result<(), Stop> {
        self.check(!self.read_only, || format!("it wrote {key:?}, and is to read only"))?;
        self.check(self.may(space, &key, true), || {
            format!("it wrote {key:?}, which is undeclared")
        })?;
        let place = (space, key);
        let before = match value {
            Some(value) => self.dry_run.rows.insert(place.clone(), value),
            None => self.dry_run.rows.remove(&place),
        };
        self.before.push((place.0, place.1, before));
        Ok(())
    }

    fn shared(
        &mut self,
        space: SpaceId,
        key: &SmallBytes,
    ) -> Result<Option<Option<SmallBytes>>, Stop> {
        let is_shared = self.shares.contains(&(space, key.clone()));
        self.check(is_shared, || format!("it was told of {key:?}, which nobody declared"))?;
        let first = self.before.iter().find(|(of, it, _)| *of == space && it == key);
        let now = || self.dry_run.rows.get(&(space, key.clone())).cloned();
        Ok(Some(first.map_or_else(now, |(.., before)| before.clone())))
    }

    fn scan(&mut self, scan: &Scan) -> Result<Vec<Row>, Stop> {
        let Scan { space, lo, hi, reverse, limit } = scan;
        let end = match hi {
            Some(hi) => Bound::Excluded((*space, hi.clone())),
            None => Bound::Unbounded,
        };
        if hi.as_ref().is_some_and(|hi| hi <= lo) {
            return Ok(Vec::new());
        }
        let range = (Bound::Included((*space, lo.clone())), end);
        let found = self.dry_run.rows.range(range).take_while(|((of, _), _)| of == space);
        let rows = found.map(|((_, key), value)| (key.clone(), value.clone()));
        let rows: Vec<Row> = match reverse {
            false => rows.take(*limit).collect(),
            true => {
                let mut all: Vec<Row> = rows.collect();
                all.reverse();
                all.truncate(*limit);
                all
            }
        };
        let declared = self.declared.as_ref();
        let allowed = declared.is_none_or(|it| it.allows_range(*space, lo, hi.as_ref()));
        self.check(allowed, || format!("it scanned from {lo:?}, which is undeclared"))?;
        Ok(rows)
    }
}
