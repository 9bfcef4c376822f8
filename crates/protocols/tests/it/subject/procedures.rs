//! Procedures on counters, with keys that are words: small enough for a page.

use muesli_core::procedure::{
    Call, Class, Footprint, Fragment, Place, Procedure, ProcedureId, Procedures, Refuses, Stop,
    Store, Touched,
};
use muesli_core::{Catalog, SmallBytes, SpaceId};

use crate::delayable;

/// The one space.
pub const SPACE: &str = "s";

fn words(arguments: &SmallBytes) -> impl Iterator<Item = SmallBytes> + '_ {
    let words = arguments.as_slice().split(|byte| *byte == b' ');
    words.filter(|word| !word.is_empty()).map(SmallBytes::new)
}

fn text(bytes: &SmallBytes) -> String {
    String::from_utf8_lossy(bytes.as_slice()).into_owned()
}

fn number(store: &mut dyn Store, space: SpaceId, key: &SmallBytes) -> Result<u64, Stop> {
    let value = store.get(space, key)?;
    Ok(value.and_then(|value| text(&value).parse().ok()).unwrap_or(0))
}

/// Puts the number, and says so.
fn put(
    store: &mut dyn Store,
    space: SpaceId,
    key: &SmallBytes,
    to: u64,
    said: &mut Vec<String>,
) -> Result<(), Stop> {
    said.push(format!("{}={to}", text(key)));
    store.put(space, key.clone(), Some(to.to_string().as_str().into()))
}

fn told(said: &[String]) -> SmallBytes {
    said.join(" ").as_str().into()
}

/// Adds one to each of its keys.
fn bump(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    let (space, mut said) = (store.space(SPACE)?, Vec::new());
    for key in words(keys) {
        let before = number(store, space, &key)?;
        put(store, space, &key, before + 1, &mut said)?;
    }
    Ok(told(&said))
}

/// Reads its keys.
fn look(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    let (space, mut said) = (store.space(SPACE)?, Vec::new());
    for key in words(keys) {
        said.push(format!("{}={}", text(&key), number(store, space, &key)?));
    }
    Ok(told(&said))
}

/// Takes one from each of its keys; refuses where there is none.
fn take(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    let (space, mut said) = (store.space(SPACE)?, Vec::new());
    for key in words(keys) {
        let before = number(store, space, &key)?;
        let left = before.checked_sub(1);
        let left = left.ok_or_else(|| Stop::Refused(format!("no {}", text(&key)).as_str().into()));
        put(store, space, &key, left?, &mut said)?;
    }
    Ok(told(&said))
}

/// Adds one to the first key and, if that was even, to the others.
fn chase(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    let (space, mut said) = (store.space(SPACE)?, Vec::new());
    let mut goes_on = true;
    for key in words(keys) {
        if !goes_on {
            break;
        }
        let before = number(store, space, &key)?;
        put(store, space, &key, before + 1, &mut said)?;
        goes_on = before.is_multiple_of(2);
    }
    Ok(told(&said))
}

fn its_keys(
    space: &dyn Fn(&str) -> Result<SpaceId, Stop>,
    keys: &SmallBytes,
) -> Result<Footprint, Stop> {
    let space = space(SPACE)?;
    let writes = words(keys).map(|key| Touched::Key(space, key)).collect();
    Ok(Footprint { reads: Vec::new(), writes })
}

/// These, and those that are delayed.
pub fn all() -> Procedures {
    let never = |procedure: Procedure| procedure.refuses(Refuses::Never);
    delayable::all()
        .with("bump", 1, never(Procedure::new(bump)).touches(its_keys))
        .with("look", 1, never(Procedure::new(look)).read_only())
        .with("take", 1, Procedure::new(take).touches(its_keys))
        .with("chase", 1, never(Procedure::new(chase)).touches(its_keys))
}

/// A call of a procedure with these keys, divided by where they live.
pub fn call(name: &str, keys: &[&str], class: Class, catalog: &Catalog) -> Call {
    let space = catalog.space_named(SPACE).expect("the one space");
    let mut fragments: Vec<(u16, &str, Vec<&str>)> = Vec::new();
    for key in keys {
        let partition = catalog.partition(space, &(*key).into());
        match fragments.iter_mut().find(|(known, ..)| *known == partition) {
            Some((_, _, keys)) => keys.push(key),
            None => fragments.push((partition, key, vec![key])),
        }
    }
    let fragment = |(_, first, keys): (u16, &str, Vec<&str>)| Fragment {
        procedure: ProcedureId { name: name.into(), version: 1 },
        place: Place::Key(space, first.into()),
        arguments: keys.join(" ").as_str().into(),
    };
    Call { class, fragments: fragments.into_iter().map(fragment).collect() }
}
