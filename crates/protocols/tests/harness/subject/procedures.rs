//! Procedures on counters, with keys that are words: small enough for a page.

use muesli_core::moving::MoveOrder;
use muesli_core::procedure::{
    Call, Class, Footprint, Fragment, Place, Procedure, ProcedureId, Procedures, Refuses, Stop,
    Store, Touched,
};
use muesli_core::{Catalog, RepositoryId, SmallBytes, SpaceId, issuance};

use crate::harness::delayable;

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
    sent: &mut Vec<String>,
) -> Result<(), Stop> {
    sent.push(format!("{}={to}", text(key)));
    store.put(space, key.clone(), Some(to.to_string().as_str().into()))
}

fn joined_answers(sent: &[String]) -> SmallBytes {
    sent.join(" ").as_str().into()
}

/// Adds one to each of its keys.
fn bump(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    let (space, mut sent) = (store.space(SPACE)?, Vec::new());
    for key in words(keys) {
        let before = number(store, space, &key)?;
        put(store, space, &key, before + 1, &mut sent)?;
    }
    Ok(joined_answers(&sent))
}

/// Reads its keys.
fn look(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    let (space, mut sent) = (store.space(SPACE)?, Vec::new());
    for key in words(keys) {
        sent.push(format!("{}={}", text(&key), number(store, space, &key)?));
    }
    Ok(joined_answers(&sent))
}

/// Takes one from each of its keys; refuses where there is none.
fn take(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    let (space, mut sent) = (store.space(SPACE)?, Vec::new());
    for key in words(keys) {
        let before = number(store, space, &key)?;
        let left = before.checked_sub(1);
        let left = left.ok_or_else(|| Stop::Refused(format!("no {}", text(&key)).as_str().into()));
        put(store, space, &key, left?, &mut sent)?;
    }
    Ok(joined_answers(&sent))
}

/// Adds one to the first key and, if that was even, to the others.
fn chase(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    let (space, mut sent) = (store.space(SPACE)?, Vec::new());
    let mut goes_on = true;
    for key in words(keys) {
        if !goes_on {
            break;
        }
        let before = number(store, space, &key)?;
        put(store, space, &key, before + 1, &mut sent)?;
        goes_on = before.is_multiple_of(2);
    }
    Ok(joined_answers(&sent))
}

/// Deletes its keys, and says what they were.
fn drop_keys(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    let (space, mut sent) = (store.space(SPACE)?, Vec::new());
    for key in words(keys) {
        let before = number(store, space, &key)?;
        store.put(space, key.clone(), None)?;
        sent.push(format!("{}:{before}", text(&key)));
    }
    Ok(joined_answers(&sent))
}

/// What is before `of` in its arguments, its own keys, and what follows, those of all.
fn own_and_all(arguments: &SmallBytes) -> (Vec<SmallBytes>, Vec<SmallBytes>) {
    let all: Vec<_> = words(arguments).collect();
    let of = all.iter().position(|word| *word == "of".into()).unwrap_or(all.len());
    (all[..of].to_vec(), all.iter().skip(of + 1).cloned().collect())
}

/// Takes one from the first key of all and gives it to each other one, if all are told that it is
/// there; where nobody tells, whoever has the first key decides.
fn share(store: &mut dyn Store, arguments: &SmallBytes) -> Result<SmallBytes, Stop> {
    let (space, mut sent) = (store.space(SPACE)?, Vec::new());
    let (own, all) = own_and_all(arguments);
    let first = store.shared(space, &all[0])?;
    let first = first.map(|value| value.and_then(|it| text(&it).parse().ok()).unwrap_or(0u64));
    if first == Some(0) {
        return Err(Stop::Refused(format!("no {}", text(&all[0])).as_str().into()));
    }
    for key in own {
        let before = number(store, space, &key)?;
        let after = if key == all[0] { before - 1 } else { before + 1 };
        put(store, space, &key, after, &mut sent)?;
    }
    Ok(joined_answers(&sent))
}

fn own_keys(
    space: &dyn Fn(&str) -> Result<SpaceId, Stop>,
    arguments: &SmallBytes,
) -> Result<Footprint, Stop> {
    let (space, (own, _)) = (space(SPACE)?, own_and_all(arguments));
    let writes = own.into_iter().map(|key| Touched::Key(space, key)).collect();
    Ok(Footprint { reads: Vec::new(), writes })
}

fn shared_keys(
    space: &dyn Fn(&str) -> Result<SpaceId, Stop>,
    arguments: &SmallBytes,
) -> Result<Vec<(SpaceId, SmallBytes)>, Stop> {
    let (space, (own, all)) = (space(SPACE)?, own_and_all(arguments));
    Ok(own.into_iter().filter(|key| *key == all[0]).map(|key| (space, key)).collect())
}

fn its_keys(
    space: &dyn Fn(&str) -> Result<SpaceId, Stop>,
    keys: &SmallBytes,
) -> Result<Footprint, Stop> {
    let space = space(SPACE)?;
    let writes = words(keys).map(|key| Touched::Key(space, key)).collect();
    Ok(Footprint { reads: Vec::new(), writes })
}

fn reads_its_keys(
    space: &dyn Fn(&str) -> Result<SpaceId, Stop>,
    keys: &SmallBytes,
) -> Result<Footprint, Stop> {
    let Footprint { writes: reads, .. } = its_keys(space, keys)?;
    Ok(Footprint { reads, writes: Vec::new() })
}

/// These, and those that are delayed.
pub fn all() -> Procedures {
    let never = |procedure: Procedure| procedure.refuses(Refuses::Never);
    delayable::all()
        .with("bump", 1, never(Procedure::new(bump)).touches(its_keys))
        .with("look", 1, never(Procedure::new(look)).read_only().touches(reads_its_keys))
        .with("drop", 1, never(Procedure::new(drop_keys)).touches(its_keys))
        .with("take", 1, Procedure::new(take).touches(its_keys))
        .with(
            "share",
            1,
            Procedure::new(share).refuses(Refuses::Alike).touches(own_keys).shares(shared_keys),
        )
        .with("chase", 1, never(Procedure::new(chase)).touches(its_keys))
}

fn arguments(name: &str, own: &[&str], all: &[&str]) -> String {
    match name {
        "share" => format!("{} of {}", own.join(" "), all.join(" ")),
        _ => own.join(" "),
    }
}

/// A call of a procedure with these keys, divided by where they live.
pub fn call(name: &str, keys: &[&str], class: Class, catalog: &Catalog) -> Call {
    let space = catalog.space_named(SPACE).expect("the one space");
    if let ("move", [key, to]) = (name, keys) {
        let partition = catalog.partition(space, &(*key).into());
        let to = RepositoryId(to.parse().expect("the number of a repository"));
        return MoveOrder { partition, from: None, to }.call();
    }
    if let ("issue", [repository]) = (name, keys) {
        let repository = repository.parse().expect("the number of a repository");
        return issuance::issue(RepositoryId(repository));
    }
    let (all, mut fragments) = (keys, Vec::<(u16, &str, Vec<&str>)>::new());
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
        arguments: arguments(name, &keys, all).as_str().into(),
    };
    Call { class, fragments: fragments.into_iter().map(fragment).collect() }
}
