//! Open nesting: transactions within a transaction that commit before it does.
//!
//! A long transaction on a structure that many use is in the way of all of them: what it reads on
//! its way to a key, others change, and it is run again. With open nesting each operation on the
//! structure is a transaction of its own, an *open child*, which commits at once; what must hold
//! until the whole transaction ends is held by *abstract locks*, on keys of the structure as its
//! users know them and not on its rows. If the transaction is aborted, *compensations* undo what
//! its children did: the inverse operation for each, newest first. *Commit handlers* do what is to
//! be done only after it has committed.
//!
//! ```
//! use muesli::open_nesting::{LockMode, OpenNesting};
//! use muesli::structures::{KeyedMap, SkipList};
//! use muesli::{Db, Error, Index, Options, SpaceOptions};
//!
//! # fn main() -> Result<(), Error> {
//! let ordered = SpaceOptions { index: Index::Ordered, ..SpaceOptions::default() }; let options =
//! Options::default().space("set", SpaceOptions::default()).space("nesting", ordered); let db =
//! Db::open(options)?; let set = SkipList::<u64, ()>::new(db.space("set")?, "set"); let inverse =
//! set.clone(); let nesting = OpenNesting::new(db.space("nesting")?).handler("remove", move |tx,
//! key: u64| {
//!     let set = inverse.clone();
//!     Box::pin(async move { set.remove(tx, &key).await.map(drop) })
//! });
//! let added = db.transact_nested(&nesting, async move |tx| {
//!     let mut added = 0;
//!     for key in [3_u64, 5] {
//!         let is_new = tx.open_atomic((key.to_be_bytes(), &LockMode::write()), async |child| {
//!             let is_new = set.add(child, &key, &()).await?;
//!             if is_new {
//!                 child.on_abort("remove", &key)?;
//!             }
//!             Ok::<_, Error>(is_new)
//!         });
//!         added += u64::from(is_new.await?);
//!     }
//!     Ok::<_, Error>(added)
//! });
//! assert_eq!(muesli::blocking::block_on(added)?, 2);
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! Each open child, each handler, and the transaction's own accesses are transactions of the
//! protocol, with what that promises. The whole is as if its operations were done at one moment,
//! **if** the program keeps to this:
//!
//! * any two operations whose order matters take a lock in modes that do not go together; so do
//!   those that only look, and answers that something is absent; one about a whole structure takes
//!   a lock that all others take, too;
//! * a compensation undoes its operation, whatever operations happened since that the locks let
//!   happen;
//! * levels use keys of their own: an open child keeps away from keys that its ancestors use. This
//!   the layer watches, and ends the transaction with an [`Error`](crate::Error) that names both
//!   accesses;
//! * what is outside of the database is done by commit handlers.
//!
//! # How it is done
//!
//! Open nesting asks nothing of the protocol. What must survive is rows in a space that the user
//! names, written by the transaction whose effects they belong to: so it holds under each protocol
//! that is serializable, in groups, and after crashes. An open child writes the holders of its
//! locks and a record into the row of its *scope*, the attempt of the transaction that it is of.
//! The commit of the transaction writes that the scope has ended so, unless somebody has ended it
//! before; each handler is run in one transaction with the removal of its record, and so takes
//! effect once; when no record is left, the locks go with the row.
//!
//! Anybody can finish a scope at any moment, and who asks for a lock of one that makes no progress
//! does: a client that is gone keeps nobody waiting for longer than the
//! [patience](OpenNesting::patience). The one that was only slow finds its scope ended, and runs
//! its transaction again.

mod abandoned;
mod ahead;
mod child;
mod ending;
mod handed;
mod layer;
mod level;
mod locks;
mod nested;
mod put_back;
mod root;
mod rows;
mod scope;
mod waiting;

pub use abandoned::NestingRows;
pub use child::OpenTx;
pub use handed::OpenLock;
pub use layer::counts::{NestingCounts, NestingTimes};
pub use layer::{NestingLimits, NestingSwitch, OpenNesting};
pub use locks::{CompatibilityMatrix, LockMode};
pub use nested::OpenAtomic;
