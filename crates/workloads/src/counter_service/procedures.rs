//! The procedures of the counter service.
//!
//! Each adds to one counter or looks at some. The two that add differ in what is declared of them,
//! and so in the class of the transaction: `Add` never refuses; `AddBelow` refuses where the
//! counter would pass a bound, which only the repository that has it knows.
//!
//! All do as much besides as the call asks for: so long a loop of arithmetic, which stands for the
//! work of an application (Granola thesis, section 6.5.1).

use muesli::procedures::{Keys, StoredProcedure, with};
use muesli::{Procedures, Refuses, SmallBytes, Space, Stop};
use serde::{Deserialize, Serialize};

/// All of them.
pub fn procedures() -> Procedures {
    with::<Look>(with::<AddBelow>(with::<Add>(Procedures::default())))
}

/// What is added to a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addition {
    /// The space of counters.
    pub space: Space,
    /// Which one.
    pub counter: u64,
    /// How much.
    pub amount: u64,
    /// The counter may not be above this afterwards; only [`AddBelow`] looks at it.
    pub most: u64,
    /// So many rounds of arithmetic are done besides.
    pub work: u32,
}

/// Counters to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterAsked {
    /// The space of counters.
    pub space: Space,
    /// Which ones.
    pub counters: Vec<u64>,
    /// So many rounds of arithmetic are done besides.
    pub work: u32,
}

/// Adds to a counter; what it shows then.
#[derive(Debug)]
pub struct Add;

impl StoredProcedure for Add {
    const NAME: &'static str = "counter-add";
    const REFUSES: Refuses = Refuses::Never;
    type Arguments = Addition;
    type Answer = u64;

    fn run(keys: &mut Keys<'_>, it: Addition) -> Result<u64, Stop> {
        labour(it.work);
        let key = keys.encoded(&it.counter);
        let sum = shown(keys, it.space, &key)?.wrapping_add(it.amount);
        keys.put(it.space, key, SmallBytes::new(&sum.to_le_bytes()))?;
        Ok(sum)
    }
}

/// Adds to a counter if there is room for it; what it shows then.
#[derive(Debug)]
pub struct AddBelow;

impl StoredProcedure for AddBelow {
    const NAME: &'static str = "counter-add-below";
    const REFUSES: Refuses = Refuses::Alone;
    type Arguments = Addition;
    type Answer = u64;

    fn run(keys: &mut Keys<'_>, it: Addition) -> Result<u64, Stop> {
        labour(it.work);
        let key = keys.encoded(&it.counter);
        let sum = shown(keys, it.space, &key)?.checked_add(it.amount);
        let sum = sum.filter(|sum| *sum <= it.most);
        let sum = sum.ok_or_else(|| Stop::Refused("the counter is full".into()))?;
        keys.put(it.space, key, SmallBytes::new(&sum.to_le_bytes()))?;
        Ok(sum)
    }
}

/// Looks at counters.
#[derive(Debug)]
pub struct Look;

impl StoredProcedure for Look {
    const NAME: &'static str = "counter-look";
    const READ_ONLY: bool = true;
    const REFUSES: Refuses = Refuses::Never;
    type Arguments = CounterAsked;
    type Answer = Vec<u64>;

    fn run(keys: &mut Keys<'_>, it: CounterAsked) -> Result<Vec<u64>, Stop> {
        labour(it.work);
        let look = |counter: &u64| {
            let key = keys.encoded(counter);
            shown(keys, it.space, &key)
        };
        it.counters.iter().map(look).collect()
    }
}

/// What a counter shows; one that was never added to shows zero.
fn shown(keys: &mut Keys<'_>, space: Space, key: &SmallBytes) -> Result<u64, Stop> {
    let Some(value) = keys.get(space, key)? else { return Ok(0) };
    let bytes = value.as_slice().try_into();
    bytes.map(u64::from_le_bytes).map_err(|_| Stop::Faulty("this is no counter".to_owned()))
}

/// Arithmetic that nobody asks the result of, and that is done nevertheless.
fn labour(rounds: u32) {
    let mut state = u64::from(rounds);
    for _ in 0..rounds {
        state = state.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) ^ 0x5bd1;
    }
    std::hint::black_box(state);
}

#[cfg(test)]
mod tests {
    use muesli::procedures::DryRun;

    use super::*;

    #[test]
    fn counters_are_added_to_and_looked_at() {
        let mut dry_run = DryRun::new(&["counters"]);
        let space = dry_run.space("counters");
        let add = |counter, amount| Addition { space, counter, amount, most: 10, work: 3 };
        assert_eq!(dry_run.run::<Add>(&add(1, 7)), Ok(7));
        assert_eq!(dry_run.run::<AddBelow>(&add(1, 3)), Ok(10));
        let full = Err(Stop::Refused("the counter is full".into()));
        assert_eq!(dry_run.run::<AddBelow>(&add(1, 1)), full);
        assert_eq!(dry_run.run::<Add>(&add(1, 1)), Ok(11));
        let looked = CounterAsked { space, counters: vec![2, 1], work: 0 };
        assert_eq!(dry_run.run::<Look>(&looked), Ok(vec![0, 11]));
    }
}
