//! Procedures that the worlds' clients call, small enough that a cycle of them is soon made.

use muesli_core::procedure::{Footprint, Procedure, Procedures, Refuses, Stop, Store, Touched};
use muesli_core::{SmallBytes, SpaceId};

/// The one space.
pub const SPACE: &str = "s";

pub fn key(number: u8) -> SmallBytes {
    SmallBytes::new(&[number])
}

fn number(store: &mut dyn Store, space: SpaceId, at: u8) -> Result<u64, Stop> {
    let value = store.get(space, &key(at))?;
    let bytes = value.and_then(|value| value.as_slice().try_into().ok());
    Ok(bytes.map_or(0, u64::from_be_bytes))
}

fn put(store: &mut dyn Store, space: SpaceId, at: u8, to: u64) -> Result<(), Stop> {
    store.put(space, key(at), Some(SmallBytes::new(&to.to_be_bytes())))
}

/// Adds one to each key that it is given.
fn bump(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    let space = store.space(SPACE)?;
    for &at in keys.as_slice() {
        let before = number(store, space, at)?;
        put(store, space, at, before + 1)?;
    }
    Ok(SmallBytes::EMPTY)
}

/// Reads each key that it is given.
fn look(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    let space = store.space(SPACE)?;
    let mut out = Vec::new();
    for &at in keys.as_slice() {
        out.extend_from_slice(&number(store, space, at)?.to_be_bytes());
    }
    Ok(SmallBytes::new(&out))
}

/// As `bump`, if the first key is not a multiple of three: its own repository alone knows.
fn perhaps(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    let space = store.space(SPACE)?;
    if number(store, space, keys.as_slice()[0])? % 3 == 2 {
        return Err(Stop::Refused("a multiple of three".into()));
    }
    bump(store, keys)
}

/// As `look`, where `perhaps` would not refuse.
fn inspect(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    let space = store.space(SPACE)?;
    if number(store, space, keys.as_slice()[0])? % 3 == 2 {
        return Err(Stop::Refused("a multiple of three".into()));
    }
    look(store, keys)
}

/// Adds one to the first key, and then, if that is even, to the second: what is written depends on
/// what is there.
fn chase(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    let space = store.space(SPACE)?;
    let before = number(store, space, keys.as_slice()[0])?;
    put(store, space, keys.as_slice()[0], before + 1)?;
    if before.is_multiple_of(2) {
        for &at in &keys.as_slice()[1..] {
            let other = number(store, space, at)?;
            put(store, space, at, other + 1)?;
        }
    }
    Ok(SmallBytes::EMPTY)
}

/// Its own keys, and those of all: how many are its own, those, and the others.
fn own_and_all(arguments: &SmallBytes) -> (&[u8], &[u8]) {
    let bytes = arguments.as_slice();
    let end = 1 + usize::from(bytes.first().copied().unwrap_or(0));
    (bytes.get(1..end).unwrap_or(&[]), bytes.get(1..).unwrap_or(&[]))
}

/// Writes into each of its keys one more than all of the transaction's together, if that is no
/// multiple of three: everybody is told what the others have.
fn share(store: &mut dyn Store, arguments: &SmallBytes) -> Result<SmallBytes, Stop> {
    let space = store.space(SPACE)?;
    let (own, all) = own_and_all(arguments);
    let mut sum = 0u64;
    for &at in all {
        let shared = store.shared(space, &key(at))?.flatten();
        let bytes = shared.and_then(|value| value.as_slice().try_into().ok());
        sum = sum.wrapping_add(bytes.map_or(0, u64::from_be_bytes));
    }
    if sum % 3 == 2 {
        return Err(Stop::Refused("a multiple of three".into()));
    }
    for &at in own {
        put(store, space, at, sum.wrapping_add(1))?;
    }
    Ok(SmallBytes::EMPTY)
}

fn own_keys(
    space: &dyn Fn(&str) -> Result<SpaceId, Stop>,
    arguments: &SmallBytes,
) -> Result<Footprint, Stop> {
    the_keys(space, &SmallBytes::new(own_and_all(arguments).0))
}

fn shared_keys(
    space: &dyn Fn(&str) -> Result<SpaceId, Stop>,
    arguments: &SmallBytes,
) -> Result<Vec<(SpaceId, SmallBytes)>, Stop> {
    let space = space(SPACE)?;
    Ok(own_and_all(arguments).0.iter().map(|at| (space, key(*at))).collect())
}

pub fn the_keys(
    space: &dyn Fn(&str) -> Result<SpaceId, Stop>,
    keys: &SmallBytes,
) -> Result<Footprint, Stop> {
    let space = space(SPACE)?;
    let writes = keys.as_slice().iter().map(|at| Touched::Key(space, key(*at))).collect();
    Ok(Footprint { reads: Vec::new(), writes })
}

fn reads_the_keys(
    space: &dyn Fn(&str) -> Result<SpaceId, Stop>,
    keys: &SmallBytes,
) -> Result<Footprint, Stop> {
    let Footprint { writes: reads, .. } = the_keys(space, keys)?;
    Ok(Footprint { reads, writes: Vec::new() })
}

pub fn all() -> Procedures {
    let never = |procedure: Procedure| procedure.refuses(Refuses::Never);
    Procedures::default()
        .with("bump", 1, never(Procedure::new(bump)).touches(the_keys))
        .with("look", 1, never(Procedure::new(look)).read_only().touches(reads_the_keys))
        .with("perhaps", 1, Procedure::new(perhaps))
        .with("inspect", 1, Procedure::new(inspect).read_only())
        .with(
            "share",
            1,
            Procedure::new(share).refuses(Refuses::Alike).touches(own_keys).shares(shared_keys),
        )
        .with("chase", 1, never(Procedure::new(chase)).touches(the_keys))
}
