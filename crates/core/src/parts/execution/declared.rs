//! What is declared of a procedure, and what that allows it to touch.

use std::panic::catch_unwind;

use crate::bytes::SmallBytes;
use crate::catalog::{Catalog, EVERYWHERE};
use crate::ids::SpaceId;
use crate::procedure::{Footprint, LocatedKey, Procedure, Stop, Touched};

/// The number of the space called `name`.
///
/// # Errors
/// There is none.
pub fn space_named(catalog: &Catalog, name: &str) -> Result<SpaceId, Stop> {
    catalog.space_named(name).ok_or_else(|| {
        let all: Vec<_> = catalog.spaces().iter().map(|space| space.name.as_str()).collect();
        Stop::Faulty(format!("there is no space `{name}`; there are: {}", all.join(", ")))
    })
}

/// What a call of `procedure` may touch, if that is declared.
///
/// # Errors
/// The declaration does not know either.
pub fn footprint(
    procedure: &Procedure,
    catalog: &Catalog,
    arguments: &SmallBytes,
) -> Result<Option<Footprint>, Stop> {
    let Some(tell) = procedure.footprint else { return Ok(None) };
    let shared = catch_unwind(|| tell(&|name| space_named(catalog, name), arguments));
    shared.unwrap_or_else(|_| Err(Stop::Faulty("its footprint panicked".to_owned()))).map(Some)
}

/// The partitions that a call of `procedure` has fragments in, each with a key of it and whether it
/// may be written there, if that is declared. What is everywhere is only among them where it is
/// written, or where nothing else is touched.
///
/// # Errors
/// The declaration does not know either.
pub fn places(
    procedure: &Procedure,
    catalog: &Catalog,
    arguments: &SmallBytes,
) -> Result<Option<Vec<(u16, LocatedKey)>>, Stop> {
    let Some(tell) = procedure.places else { return Ok(None) };
    let located = catch_unwind(|| tell(catalog, arguments));
    let located =
        located.unwrap_or_else(|_| Err(Stop::Faulty("its places panicked".to_owned())))?;
    let mut all: Vec<(u16, LocatedKey)> = Vec::new();
    for key in located {
        let partition = catalog.partition(key.space, &key.key);
        match all.iter_mut().find(|(known, _)| *known == partition) {
            Some((_, known)) => known.writes |= key.writes,
            None => all.push((partition, key)),
        }
    }
    if all.len() > 1 {
        all.retain(|(partition, key)| *partition != EVERYWHERE || key.writes);
    }
    Ok(Some(all))
}

/// What is wrong with a call of `procedure` that has fragments in the partitions `named`: it lacks
/// one that is needed, or has one that is not.
///
/// # Errors
/// As [`places`].
pub fn missing_places(
    procedure: &Procedure,
    catalog: &Catalog,
    arguments: &SmallBytes,
    named: &[u16],
) -> Result<Option<String>, Stop> {
    let Some(places) = places(procedure, catalog, arguments)? else { return Ok(None) };
    let needed: Vec<u16> = places.into_iter().map(|(partition, _)| partition).collect();
    let is_one = |list: &[u16], it: &u16| list.iter().filter(|other| *other == it).count() == 1;
    let fits = needed.iter().all(|it| is_one(named, it)) && named.len() == needed.len();
    Ok((!fits).then(|| {
        format!(
            "the call names partitions {named:?}, and its plan needs one fragment in each of \
             {needed:?}"
        )
    }))
}

/// Which keys of `partition` a call of `procedure` tells all participants of, of those that it may
/// touch.
pub fn shared_keys(
    procedure: &Procedure,
    partition: u16,
    catalog: &Catalog,
    arguments: &SmallBytes,
) -> Vec<(SpaceId, SmallBytes)> {
    let Some(tell) = procedure.shares else { return Vec::new() };
    let shared = catch_unwind(|| tell(&|name| space_named(catalog, name), arguments));
    let mut keys = shared.ok().and_then(Result::ok).unwrap_or_default();
    let declared = footprint(procedure, catalog, arguments).ok().flatten();
    keys.retain(|(space, key)| {
        let is_known = catalog.space(*space).is_some();
        let is_here = is_known && catalog.partition(*space, key) == partition;
        is_here && declared.as_ref().is_none_or(|all| all.allows(*space, key, false))
    });
    keys
}

impl Footprint {
    /// Whether a key may be read, or written. What may be written may be read.
    pub fn allows(&self, space: SpaceId, key: &SmallBytes, writes: bool) -> bool {
        let has = |list: &[Touched]| list.iter().any(|touched| touched.has(space, key));
        has(&self.writes) || (!writes && has(&self.reads))
    }

    /// Whether a range may be scanned; `hi` `None` is open.
    pub fn allows_range(&self, space: SpaceId, lo: &SmallBytes, hi: Option<&SmallBytes>) -> bool {
        let mut all = self.reads.iter().chain(&self.writes);
        all.any(|touched| match touched {
            Touched::Key(..) => false,
            Touched::Space(of) => *of == space,
            Touched::Range(of, from, to) => {
                let ends = match (to, hi) {
                    (None, _) => true,
                    (Some(to), Some(hi)) => hi <= to,
                    (Some(_), None) => false,
                };
                *of == space && from <= lo && ends
            }
        })
    }
}

impl Touched {
    /// Whether a key is among it.
    pub fn has(&self, space: SpaceId, key: &SmallBytes) -> bool {
        match self {
            Touched::Key(of, it) => *of == space && it == key,
            Touched::Space(of) => *of == space,
            Touched::Range(of, lo, hi) => {
                *of == space && key >= lo && hi.as_ref().is_none_or(|hi| key < hi)
            }
        }
    }
}
