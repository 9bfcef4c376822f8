//! Procedures that the scripts and the explorations delay. Their arguments are words: keys that are
//! declared, then what else they need.

use muesli_core::ranges::Scan;
use muesli_core::{
    Delay, Footprint, Place, Procedure, ProcedureId, Procedures, Refuses, SmallBytes, SpaceId,
    Stop, Store, Touched,
};

pub const SPACE: SpaceId = SpaceId(0);

/// All of them.
pub fn all() -> Procedures {
    let steady = |run| Procedure::new(run).touches(declared).refuses(Refuses::Never).steady();
    Procedures::default()
        .with("mark", 1, steady(mark))
        .with("alter", 1, Procedure::new(mark).touches(declared))
        .with("follow", 1, Procedure::new(follow).touches(declared))
        .with("hurry", 1, steady(follow))
        .with("tally", 1, Procedure::new(tally).touches(tallied))
        .with("spin", 1, Procedure::new(spin).touches(declared))
        .with("break", 1, Procedure::new(|_, _| panic!("on purpose")).touches(declared))
}

/// A call of one at its first key.
pub fn call(procedure: &str, words: &str) -> Delay {
    let id = ProcedureId { name: procedure.into(), version: 1 };
    let first = words.split(' ').next().unwrap_or_default();
    Delay::Call(id, Place::Key(SPACE, first.into()), words.into())
}

fn words(arguments: &SmallBytes) -> Vec<SmallBytes> {
    arguments.as_slice().split(|byte| *byte == b' ').map(SmallBytes::from).collect()
}

/// All words but the last.
fn declared(
    _: &dyn Fn(&str) -> Result<SpaceId, Stop>,
    arguments: &SmallBytes,
) -> Result<Footprint, Stop> {
    let mut keys = words(arguments);
    keys.pop();
    let writes = keys.into_iter().map(|key| Touched::Key(SPACE, key)).collect();
    Ok(Footprint { reads: vec![], writes })
}

/// Appends the last word to all keys before it; answers what it left, joined.
fn mark(store: &mut dyn Store, arguments: &SmallBytes) -> Result<SmallBytes, Stop> {
    let mut keys = words(arguments);
    let mark = keys.pop().unwrap_or(SmallBytes::EMPTY);
    let mut all = Vec::new();
    for key in keys {
        let old = store.get(SPACE, &key)?.unwrap_or(SmallBytes::EMPTY);
        let new = [old.as_slice(), mark.as_slice()].concat();
        all.push(String::from_utf8_lossy(&new).into_owned());
        store.put(SPACE, key, Some(new.into()))?;
    }
    Ok(all.join("/").as_str().into())
}

/// Writes the last word to the key that the first key names, whether that was declared or not.
fn follow(store: &mut dyn Store, arguments: &SmallBytes) -> Result<SmallBytes, Stop> {
    let all = words(arguments);
    let (first, word) = (&all[0], all.last().expect("one word at least"));
    let named = store.get(SPACE, first)?.unwrap_or_else(|| first.clone());
    store.put(SPACE, named.clone(), Some(word.clone()))?;
    Ok(named)
}

/// The first word is written; keys between the second and the third are read.
fn tallied(
    _: &dyn Fn(&str) -> Result<SpaceId, Stop>,
    arguments: &SmallBytes,
) -> Result<Footprint, Stop> {
    let all = words(arguments);
    let reads = vec![Touched::Range(SPACE, all[1].clone(), Some(all[2].clone()))];
    Ok(Footprint { reads, writes: vec![Touched::Key(SPACE, all[0].clone())] })
}

/// Writes to the first key how many there are between the second and the third.
fn tally(store: &mut dyn Store, arguments: &SmallBytes) -> Result<SmallBytes, Stop> {
    let all = words(arguments);
    let (lo, hi) = (all[1].clone(), Some(all[2].clone()));
    let rows = store.scan(&Scan { space: SPACE, lo, hi, reverse: false, limit: usize::MAX })?;
    let count = SmallBytes::from(rows.len().to_string().as_str());
    store.put(SPACE, all[0].clone(), Some(count.clone()))?;
    Ok(count)
}

/// Never ends by itself.
fn spin(store: &mut dyn Store, arguments: &SmallBytes) -> Result<SmallBytes, Stop> {
    loop {
        store.get(SPACE, &words(arguments)[0])?;
    }
}
