//! Stored procedures: whole transactions in one round, run where their keys live.
//!
//! A transaction whose keys are known when it is asked for need not travel: its client names, for
//! each repository that takes part, a *procedure* and its arguments, and the repositories run them
//! ([`Db::call`](crate::Db::call)). Under the protocols `granola`, `granola-locking` and
//! `sinfonia` that is all there is to a transaction.
//!
//! # How to write one
//! A procedure is a type with the trait [`StoredProcedure`]: a name and a version, the types of
//! its arguments and of its answer, what is declared of it, and the code. It is registered with
//! [`Options::procedure`](crate::Options::procedure), under the same name on every node and every
//! client. Those that are [always there](builtin) are written this way, and are examples.
//!
//! ```
//! use muesli::procedures::{Keys, StoredProcedure};
//! use muesli::{Refuses, Space, Stop};
//!
//! /// Adds to a stock that never falls below zero.
//! struct Restock;
//!
//! impl StoredProcedure for Restock {
//!     const NAME: &'static str = "restock";
//!     const REFUSES: Refuses = Refuses::Alone;
//!     type Arguments = (u64, i64);
//!     type Answer = i64;
//!
//!     fn run(keys: &mut Keys<'_>, (item, amount): (u64, i64)) -> Result<i64, Stop> {
//!         let stock = keys.space("stock")?.typed::<u64, i64>();
//!         let left = keys.read(stock, &item)?.unwrap_or(0) + amount;
//!         if left < 0 {
//!             return Err(Stop::Refused("out of stock".into()));
//!         }
//!         keys.write(stock, &item, &left)?;
//!         Ok(left)
//!     }
//! }
//!
//! // On its own, without a database, as a unit test does it:
//! let mut stage = muesli::procedures::Rehearsal::new(&["stock"]);
//! assert_eq!(stage.run::<Restock>(&(7, 5)), Ok(5));
//! assert_eq!(stage.run::<Restock>(&(7, -6)), Err(Stop::Refused("out of stock".into())));
//! ```
//!
//! # What it must be
//! - *Deterministic*: a function of its arguments and of what it reads. No clock, no chance, no
//!   state of its own: every member of a group runs it, and again after a crash.
//! - *Short*: the repository does nothing else meanwhile, but for procedures that by their
//!   declarations touch nothing in common with it, where there are threads for them
//!   ([`Options::procedure_threads`](crate::Options::procedure_threads)). One that does too much is
//!   stopped, and its transaction aborted; so is one that panics.
//! - *At home*: it sees the keys of its repository, and no others.
//!
//! A change of what it does is a new version: calls of both can then be under way.
//!
//! # What is declared
//! [`READ_ONLY`](StoredProcedure::READ_ONLY), [`REFUSES`](StoredProcedure::REFUSES) and
//! [`TOUCHES`](StoredProcedure::TOUCHES) decide which [`Class`](crate::Class) is safe. Where
//! nothing can be refused by data that only one repository has, the transaction is *independent*:
//! its repositories need no agreement but on when. Repositories can be told what another one has
//! ([`TELLS`](StoredProcedure::TELLS)), and decide by that. What is declared is held to: a
//! procedure that writes though it was declared not to, or touches what it did not tell, is
//! stopped.

mod bounded;
pub mod builtin;
mod bytes;
mod keys;
mod rehearsal;

use muesli_core::procedure::{AnswerType, FootprintFn, TellsFn as CoreTellsFn};
use muesli_core::{
    Footprint, Fragment, Place, Procedure, ProcedureId, Procedures, Refuses, SmallBytes, SpaceId,
    Stop, Store,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::data::space::Space;
use crate::error::Error;

pub use crate::calls::invocation::{Answers, Invocation};
pub use bytes::Bytes;
pub use keys::Keys;
pub use rehearsal::Rehearsal;

/// Tells from the arguments all that a procedure may touch.
pub type TouchesFn<A> = fn(&Spaces<'_>, &A) -> Result<Footprint, Stop>;

/// Tells from the arguments the keys whose values all participants of a call are told.
pub type TellsFn<A> = fn(&Spaces<'_>, &A) -> Result<Vec<(Space, SmallBytes)>, Stop>;

/// A procedure in Rust, with typed arguments and a typed answer; both travel in the postcard
/// format.
pub trait StoredProcedure: 'static {
    /// Its name.
    const NAME: &'static str;
    /// Its version, from 1.
    const VERSION: u32 = 1;
    /// Whether it never writes.
    const READ_ONLY: bool = false;
    /// Whether it may refuse, and by what.
    const REFUSES: Refuses = Refuses::Alone;
    /// What it may touch at most; `None`: anything at its repository.
    const TOUCHES: Option<TouchesFn<Self::Arguments>> = None;
    /// Keys of its repository, among those that it may touch, whose values all repositories of the
    /// call are told before any of their procedures runs ([`Keys::told`]). So they can come to the
    /// same decision by what only one of them has: such a refusal is [`Refuses::Alike`], and the
    /// call is independent. It costs a message delay more.
    const TELLS: Option<TellsFn<Self::Arguments>> = None;
    /// What it touches, and whether it comes to its end, does not depend on what it finds. Delayed
    /// ([`Tx::later_run`](crate::Tx::later_run)), it may then run beside others on the same keys.
    /// One that is wrong about this and goes wrong in its turn changes nothing there.
    const STEADY: bool = false;
    /// What it is given.
    type Arguments: Serialize + DeserializeOwned;
    /// What it gives.
    type Answer: Serialize + DeserializeOwned + 'static;

    /// What it does.
    ///
    /// # Errors
    /// It refuses ([`Stop::Refused`]); or an error of `keys`, which is to be handed on.
    fn run(keys: &mut Keys<'_>, arguments: Self::Arguments) -> Result<Self::Answer, Stop>;
}

/// The spaces of a database by name, where a footprint is told.
pub struct Spaces<'a> {
    find: &'a dyn Fn(&str) -> Result<SpaceId, Stop>,
}

impl Spaces<'_> {
    /// The space called `name`.
    ///
    /// # Errors
    /// There is none.
    pub fn space(&self, name: &str) -> Result<Space, Stop> {
        (self.find)(name).map(Space::numbered)
    }
}

/// Its name and version, as a node knows it by.
pub fn id_of<P: StoredProcedure>() -> ProcedureId {
    ProcedureId { name: P::NAME.into(), version: P::VERSION }
}

/// These procedures and one more, or another one by a name and version that are taken.
#[must_use]
pub fn with<P: StoredProcedure>(procedures: Procedures) -> Procedures {
    let procedure = Procedure {
        run: run_typed::<P>,
        read_only: P::READ_ONLY,
        refuses: P::REFUSES,
        footprint: P::TOUCHES.map(|_| touches_typed::<P> as FootprintFn),
        steady: P::STEADY,
        tells: P::TELLS.map(|_| tells_typed::<P> as CoreTellsFn),
        answer: Some(AnswerType::of::<P::Answer>()),
    };
    procedures.with(P::NAME, P::VERSION, procedure)
}

/// The fragment that runs `P` at a place.
///
/// # Errors
/// [`Error::Codec`] where the arguments cannot be serialized.
pub fn fragment<P: StoredProcedure>(
    place: Place,
    arguments: &P::Arguments,
) -> Result<Fragment, Error> {
    Ok(Fragment { procedure: id_of::<P>(), place, arguments: encode(arguments)? })
}

/// What a fragment that ran `P` answered.
///
/// # Errors
/// [`Error::Codec`] where it is no such answer.
pub fn answer<P: StoredProcedure>(result: &SmallBytes) -> Result<P::Answer, Error> {
    decode_answer(result)
}

/// An answer as a value of a type; bytes that it leaves are a sign that it is of another one.
pub(crate) fn decode_answer<T: DeserializeOwned>(result: &SmallBytes) -> Result<T, Error> {
    let type_ = std::any::type_name::<T>();
    match postcard::take_from_bytes(result.as_slice()) {
        Ok((answer, [])) => Ok(answer),
        Ok((_, rest)) => {
            let (all, left) = (result.len(), rest.len());
            Err(Error::Codec(format!("the answer is no `{type_}`: {left} of {all} bytes are left")))
        }
        Err(error) => Err(Error::Codec(format!("the answer is no `{type_}`: {error}"))),
    }
}

pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<SmallBytes, Error> {
    let bytes = postcard::to_stdvec(value).map_err(|error| Error::Codec(error.to_string()))?;
    Ok(bytes.into())
}

fn run_typed<P: StoredProcedure>(
    store: &mut dyn Store,
    arguments: &SmallBytes,
) -> Result<SmallBytes, Stop> {
    let arguments = decode_arguments::<P>(arguments)?;
    let mut keys = Keys::new(store);
    let answer = P::run(&mut keys, arguments)?;
    keys.encode(&answer)
}

fn touches_typed<P: StoredProcedure>(
    find: &dyn Fn(&str) -> Result<SpaceId, Stop>,
    arguments: &SmallBytes,
) -> Result<Footprint, Stop> {
    let tells = P::TOUCHES.expect("registered only where it is told");
    tells(&Spaces { find }, &decode_arguments::<P>(arguments)?)
}

fn tells_typed<P: StoredProcedure>(
    find: &dyn Fn(&str) -> Result<SpaceId, Stop>,
    arguments: &SmallBytes,
) -> Result<Vec<(SpaceId, SmallBytes)>, Stop> {
    let tells = P::TELLS.expect("registered only where it tells");
    let keys = tells(&Spaces { find }, &decode_arguments::<P>(arguments)?)?;
    Ok(keys.into_iter().map(|(space, key)| (space.id, key)).collect())
}

fn decode_arguments<P: StoredProcedure>(arguments: &SmallBytes) -> Result<P::Arguments, Stop> {
    postcard::from_bytes(arguments.as_slice()).map_err(|error| {
        Stop::Faulty(format!("procedure {}: these are no arguments of it: {error}", id_of::<P>()))
    })
}
