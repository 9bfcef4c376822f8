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
//! let mut dry_run = muesli::procedures::DryRun::new(&["stock"]);
//! assert_eq!(dry_run.run::<Restock>(&(7, 5)), Ok(5));
//! assert_eq!(dry_run.run::<Restock>(&(7, -6)), Err(Stop::Refused("out of stock".into())));
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
//! ([`SHARES`](StoredProcedure::SHARES)), and decide by that. What is declared is held to: a
//! procedure that writes though it was declared not to, or touches what it did not tell, is
//! stopped.

mod bounded;
pub mod builtin;
mod bytes;
mod dry_run;
pub(crate) mod encoding;
pub(crate) mod invocation;
mod keys;
pub(crate) mod registration;
pub(crate) mod stored;

pub use bytes::Bytes;
pub use dry_run::DryRun;
pub use encoding::{answer, fragment};
pub use invocation::{Answers, CallBuilder};
pub use keys::Keys;
pub use registration::with;
pub use stored::{SharesFn, Spaces, StoredProcedure, TouchesFn, id_of};
