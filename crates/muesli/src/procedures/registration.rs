//! Stored procedures as nodes know them: by name and version, over bytes.

use muesli_core::procedure::{AnswerType, FootprintFn, SharesFn};
use muesli_core::{Footprint, Procedure, Procedures, SmallBytes, SpaceId, Stop, Store};

use super::keys::Keys;
use super::stored::{Spaces, StoredProcedure, id_of};

/// These procedures and one more, or another one by a name and version that are taken.
#[must_use]
pub fn with<P: StoredProcedure>(procedures: Procedures) -> Procedures {
    let procedure = Procedure {
        run: run_typed::<P>,
        read_only: P::READ_ONLY,
        refuses: P::REFUSES,
        footprint: P::TOUCHES.map(|_| touches_typed::<P> as FootprintFn),
        steady: P::STEADY,
        shares: P::SHARES.map(|_| shares_typed::<P> as SharesFn),
        places: None,
        answer: Some(AnswerType::of::<P::Answer>()),
    };
    procedures.with(P::NAME, P::VERSION, procedure)
}

pub(super) fn run_typed<P: StoredProcedure>(
    store: &mut dyn Store,
    arguments: &SmallBytes,
) -> Result<SmallBytes, Stop> {
    let arguments = decode_arguments::<P>(arguments)?;
    let mut keys = Keys::new(store);
    let answer = P::run(&mut keys, arguments)?;
    keys.encode(&answer)
}

pub(super) fn touches_typed<P: StoredProcedure>(
    find: &dyn Fn(&str) -> Result<SpaceId, Stop>,
    arguments: &SmallBytes,
) -> Result<Footprint, Stop> {
    let shares = P::TOUCHES.expect("registered only where it is told");
    shares(&Spaces { find }, &decode_arguments::<P>(arguments)?)
}

pub(super) fn shares_typed<P: StoredProcedure>(
    find: &dyn Fn(&str) -> Result<SpaceId, Stop>,
    arguments: &SmallBytes,
) -> Result<Vec<(SpaceId, SmallBytes)>, Stop> {
    let shares = P::SHARES.expect("registered only where it tells");
    let keys = shares(&Spaces { find }, &decode_arguments::<P>(arguments)?)?;
    Ok(keys.into_iter().map(|(space, key)| (space.id, key)).collect())
}

fn decode_arguments<P: StoredProcedure>(arguments: &SmallBytes) -> Result<P::Arguments, Stop> {
    postcard::from_bytes(arguments.as_slice()).map_err(|error| {
        Stop::Faulty(format!("procedure {}: these are no arguments of it: {error}", id_of::<P>()))
    })
}
