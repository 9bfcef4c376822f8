//! Adding to counters without looking at them: an action for each, or a procedure for all that live
//! at one repository; and what comes of it, where that is asked.

use std::collections::BTreeMap;

use muesli::procedures::{Keys, Spaces, StoredProcedure, with};
use muesli::structures::Counter;
use muesli::{
    Action, DeferredAnswer, Error, Footprint, Procedures, Refuses, Results, SmallBytes, Space,
    Stop, Touched, Tx,
};
use serde::{Deserialize, Serialize};

/// The procedures of this page.
pub fn procedures() -> Procedures {
    with::<AddAllAlone>(with::<AddAll>(Procedures::default()))
}

/// How counters are added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// By an action for each.
    Actions,
    /// By a steady procedure for all that the same repositories hold.
    Procedures,
    /// By one that has its keys alone.
    ProceduresAlone,
}

/// What is added to several counters of one repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Additions {
    space: Space,
    keys: Vec<Vec<u8>>,
    amount: i64,
}

/// Adds to counters; what they show then.
#[derive(Debug)]
pub struct AddAll;

/// The same, declared as if what it does depended on what it finds.
#[derive(Debug)]
pub struct AddAllAlone;

impl StoredProcedure for AddAll {
    const NAME: &'static str = "counters-add";
    const REFUSES: Refuses = Refuses::Never;
    const TOUCHES: Option<muesli::procedures::TouchesFn<Additions>> = Some(touched);
    const STEADY: bool = true;
    type Arguments = Additions;
    type Answer = Vec<i64>;

    fn run(keys: &mut Keys<'_>, it: Additions) -> Result<Vec<i64>, Stop> {
        add_all(keys, &it)
    }
}

impl StoredProcedure for AddAllAlone {
    const NAME: &'static str = "counters-add-alone";
    const TOUCHES: Option<muesli::procedures::TouchesFn<Additions>> = Some(touched);
    type Arguments = Additions;
    type Answer = Vec<i64>;

    fn run(keys: &mut Keys<'_>, it: Additions) -> Result<Vec<i64>, Stop> {
        add_all(keys, &it)
    }
}

fn touched(_: &Spaces<'_>, it: &Additions) -> Result<Footprint, Stop> {
    let key = |key: &Vec<u8>| Touched::Key(it.space.id(), SmallBytes::new(key));
    Ok(Footprint { reads: Vec::new(), writes: it.keys.iter().map(key).collect() })
}

fn add_all(keys: &mut Keys<'_>, it: &Additions) -> Result<Vec<i64>, Stop> {
    let mut sums = Vec::with_capacity(it.keys.len());
    for key in &it.keys {
        let key = SmallBytes::new(key);
        let sum = shown(keys.get(it.space, &key)?.as_ref()).wrapping_add(it.amount);
        keys.put(it.space, key, SmallBytes::new(&sum.to_le_bytes()))?;
        sums.push(sum);
    }
    Ok(sums)
}

fn shown(value: Option<&SmallBytes>) -> i64 {
    let bytes = value.and_then(|value| value.as_slice().try_into().ok());
    bytes.map_or(0, i64::from_le_bytes)
}

/// What additions will show that were asked, by the places of their counters.
#[derive(Debug, Default)]
pub struct AskedAdds {
    actions: Vec<(usize, DeferredAnswer<Option<SmallBytes>>)>,
    procedures: Vec<(Vec<usize>, DeferredAnswer<Vec<i64>>)>,
}

impl AskedAdds {
    /// What the counters showed.
    ///
    /// # Errors
    /// What [`Results::of`] says.
    pub fn shown(&self, results: &Results) -> Result<Vec<(usize, i64)>, Error> {
        let mut all = Vec::new();
        for (place, deferred) in &self.actions {
            all.push((*place, shown(results.of(deferred)?.as_ref())));
        }
        for (places, deferred) in &self.procedures {
            all.extend(places.iter().copied().zip(results.of(deferred)?));
        }
        Ok(all)
    }
}

/// Adds to counters, each at a place of the caller's; `home` tells which keys live together: those
/// of one number.
///
/// # Errors
/// What [`Tx::defer`] and [`Tx::defer_run`] say.
pub async fn add_deferred(
    tx: &Tx,
    (space, amount): (Space, i64),
    counters: impl Iterator<Item = (usize, Counter)>,
    (how, asks): (How, bool),
    home: impl Fn(&SmallBytes) -> u16,
) -> Result<AskedAdds, Error> {
    let mut asked = AskedAdds::default();
    let mut by_home: BTreeMap<u16, (Vec<usize>, Vec<Vec<u8>>)> = BTreeMap::new();
    for (place, counter) in counters {
        match (how, asks) {
            (How::Actions, false) => counter.add_deferred(tx, amount).await?,
            (How::Actions, true) => {
                let deferred =
                    tx.defer_returning(space, counter.key(), Action::add(amount)).await?;
                asked.actions.push((place, deferred));
            }
            (How::Procedures | How::ProceduresAlone, _) => {
                let (places, keys) = by_home.entry(home(&counter.key())).or_default();
                places.push(place);
                keys.push(counter.key().as_slice().to_vec());
            }
        }
    }
    for (places, keys) in by_home.into_values() {
        let at = space.place(keys[0].as_slice());
        let it = Additions { space, keys, amount };
        match (how, asks) {
            (How::ProceduresAlone, false) => tx.defer_run::<AddAllAlone>(at, &it).await?,
            (_, false) => tx.defer_run::<AddAll>(at, &it).await?,
            (How::ProceduresAlone, true) => {
                let deferred = tx.defer_run_returning::<AddAllAlone>(at, &it).await?;
                asked.procedures.push((places, deferred));
            }
            (_, true) => {
                let deferred = tx.defer_run_returning::<AddAll>(at, &it).await?;
                asked.procedures.push((places, deferred));
            }
        }
    }
    Ok(asked)
}
