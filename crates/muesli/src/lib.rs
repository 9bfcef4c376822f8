//! Muesli: serializable transactions over any keys.
//!
//! ```
//! use muesli::{Db, Error, Options, SpaceOptions};
//!
//! # fn main() -> Result<(), Error> {
//! let db = Db::open(Options::default().space("accounts", SpaceOptions::default()))?;
//! let accounts = db.space("accounts")?.typed::<u64, i64>();
//! let total = db.blocking().transact(async move |tx| {
//!     accounts.put(tx, &1, &100).await?;
//!     accounts.put(tx, &2, &50).await?;
//!     let first = accounts.get(tx, &1).await?.unwrap_or(0);
//!     let second = accounts.get(tx, &2).await?.unwrap_or(0);
//!     Ok::<_, Error>(first + second)
//! })?;
//! assert_eq!(total, 150);
//! # Ok(())
//! # }
//! ```

mod attempts;
pub mod blocking;
#[cfg(feature = "cluster")]
mod catch_up;
mod commit;
mod db;
mod direct;
mod embedded;
mod error;
mod explicit;
pub mod key;
pub mod later;
mod oneshot;
mod operation;
mod options;
mod partitions;
mod past;
pub mod procedures;
#[cfg(feature = "cluster")]
mod remote;
mod rerun;
mod shipped;
mod space;
pub mod structures;
mod timeout;
mod transaction;

pub use db::Db;
pub use direct::DirectTx;
pub use embedded::Report;
pub use error::{Error, ErrorKind};
pub use explicit::Transaction;
pub use key::Key;
pub use later::{Promised, Results};
pub use muesli_core::catalog::{Index, Rule, SpaceOptions};
pub use muesli_core::moving::PlacedPartition;
pub use muesli_core::{
    Abort, Action, ActionFn, Actions, Call, Class, Doubt, Footprint, Fragment, Invoked, Limit,
    Limits, Outcome, Place, Procedure, ProcedureId, Procedures, Refuses, RepositoryId, Secret,
    SmallBytes, Stop, Timestamp, Touched, Traffic, TxnId,
};
pub use operation::{Ask, Get, GetMany, Put, RangeScan, Reply};
pub use options::{Options, Retry};
pub use past::SessionPast;
#[cfg(feature = "cluster")]
pub use remote::Connect;
pub use space::{Space, TypedSpace};
pub use transaction::{BodyFuture, Range, Tx};

/// The example of the project's front page, compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct FrontPage;
