//! Objects: structs whose fields are read and written within transactions alone.
//!
//! A struct becomes an object by [`#[derive(Object)]`](derive@Object), which makes a handle of it:
//! for `Account` that is `AccountFields`. [`Objects`] of a name in a [`Space`](crate::Space) are
//! opened, created and deleted by their keys. An opened object keeps its value for its transaction,
//! so that reading a field asks nobody; writing one writes the object's row at once, and that is
//! kept as all of the transaction's writes are until the commit.
//!
//! ```
//! use muesli::objects::{Object, Objects};
//! use muesli::{Db, Error, Options, SpaceOptions};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Clone, Object, Serialize, Deserialize)]
//! struct Account {
//!     owner: String,
//!     balance: i64,
//! }
//!
//! # fn main() -> Result<(), Error> {
//! let db = Db::open(Options::default().space("bank", SpaceOptions::default()))?;
//! let accounts = Objects::<u64, Account>::new(db.space("bank")?, "accounts");
//! let left = db.blocking().atomic(async move |tx| {
//!     let account = |owner: &str| Account { owner: owner.to_owned(), balance: 100 };
//!     let ann = accounts.create(tx, &1, account("ann")).await?;
//!     let bob = accounts.create(tx, &2, account("bob")).await?;
//!     ann.balance().update(tx, |balance| *balance -= 30).await?;
//!     // An atomic block inside of another one can be undone alone.
//!     let bonus = tx.atomic(async |part| {
//!         ann.balance().set(part, 1_000_000).await?;
//!         Err::<(), _>(Error::rollback("not today"))
//!     });
//!     assert!(bonus.await.is_err());
//!     bob.balance().update(tx, |balance| *balance += 30).await?;
//!     ann.balance().get(tx)
//! })?;
//! assert_eq!(left, 70);
//! # Ok(())
//! # }
//! ```
//!
//! No field is had without the transaction:
//!
//! ```compile_fail,E0061
//! # use muesli::objects::Object;
//! # use serde::{Deserialize, Serialize};
//! #[derive(Clone, Object, Serialize, Deserialize)]
//! struct Account {
//!     balance: i64,
//! }
//!
//! fn balance(account: &AccountFields) -> i64 {
//!     account.balance().get().unwrap()
//! }
//! ```
//!
//! ```compile_fail,E0616
//! # mod bank {
//! #     use muesli::objects::Object;
//! #     use serde::{Deserialize, Serialize};
//! #     #[derive(Clone, Object, Serialize, Deserialize)]
//! #     pub struct Account {
//! #         pub balance: i64,
//! #     }
//! # }
//! fn balance(account: &bank::AccountFields) -> i64 {
//!     account.opened.balance
//! }
//! ```
//!
//! What is no struct with named fields and without parameters is refused:
//!
//! ```compile_fail
//! #[derive(Clone, muesli::objects::Object, serde::Serialize, serde::Deserialize)]
//! enum Account {
//!     Open(i64),
//!     Closed,
//! }
//! ```
//!
//! An object is opened once a transaction: who opens it again, in the transaction or in a
//! [child](crate::Tx::nested) of it, has the same one. What a child wrote is seen through all
//! handles while it runs and once it is merged, and is gone if the child was undone. Rows of
//! objects are written by their handles alone: what is put there otherwise, a transaction that has
//! opened the object does not see.
//!
//! Source: A. Turcu's dissertation (2015), chapter 6: Hyflow2's interface.

mod atomic;
mod kind;
mod opened;
mod state;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use kind::Objects;
pub use muesli_derive::Object;
pub use opened::{Field, OpenedObject};

/// A struct whose values are stored as objects; [derived](derive@Object).
pub trait Object: Clone + Serialize + DeserializeOwned + Send + 'static {
    /// The handle of one that is opened: a method for each field.
    type Fields: From<OpenedObject<Self>>;
}
