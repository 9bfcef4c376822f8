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

pub mod blocking;
mod bodies;
mod data;
mod database;
pub mod deferred;
mod dispatch;
#[cfg(feature = "cluster")]
mod durable;
mod embedded;
mod error;
pub mod nesting_choice;
pub mod objects;
pub mod open_nesting;
mod options;
mod partitions;
pub mod plans;
pub mod procedures;
mod recording;
#[cfg(feature = "cluster")]
mod remote;
mod retry;
#[cfg(all(feature = "cluster", unix))]
pub mod server;
mod session;
mod site_delays;
#[cfg(feature = "cluster")]
mod stored;
pub mod structures;
mod time;
mod transaction;
pub mod transfer;
mod typed;

#[cfg(feature = "broadcast")]
pub use muesli_broadcast as broadcast;

pub use bodies::direct::DirectTx;
pub use data::byte_range::Range;
pub use data::codec::{Named, Postcard, RowCodec};
pub use data::key::{self, AsKey, Key};
pub use data::range::{KeyPrefix, KeyRange, StartsWith};
pub use data::space::{Space, TypedSpace};
pub use database::compacted::Compacted;
pub use database::handle::Db;
pub use dispatch::report::Report;
pub use dispatch::yield_now::yield_now;
#[cfg(feature = "cluster")]
pub use durable::{Durable, SyncPolicy};
pub use embedded::protocols::{protocol_names, register_protocol};
pub use error::{Error, ErrorKind};
#[cfg(feature = "cluster")]
pub use muesli_cluster::storage::stopped::verify::{VerifiedLoop, VerifiedReplay};
pub use muesli_core::catalog::{
    Index, Partitioning, ShardSites, ShardSitesError, SpaceOptions, UnitMap, UnitPart, UnitRange,
    Units,
};
pub use muesli_core::moving::PlacedPartition;
pub use muesli_core::recorder::Sampling;
pub use muesli_core::{
    Abort, Action, ActionCode, ActionFn, Actions, BatchLinks, Batching, Call, Class, Doubt,
    Footprint, Fragment, Invoked, Limit, Limits, LinkBatch, Nanos, Outcome, Place, Procedure,
    ProcedureId, Procedures, Refuses, RepositoryId, Secret, SmallBytes, Stop, Timestamp, Touched,
    Traffic, TxnId,
};
pub use options::Options;
#[cfg(feature = "cluster")]
pub use remote::Connect;
pub use retry::Retry;
pub use session::token::SessionToken;
pub use site_delays::SiteDelays;
pub use transaction::explicit::Transaction;
pub use transaction::operation::{
    Ask, GetManyOperation, GetOperation, PutOperation, Reply, ScanOperation,
};
pub use transaction::results::{DeferredAnswer, Results};
pub use transaction::retrying::WaitLimit;
pub use transaction::tx::{BodyFuture, Tx};
pub use typed::stream::RowStream;

/// The example of the project's front page, compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct FrontPage;
