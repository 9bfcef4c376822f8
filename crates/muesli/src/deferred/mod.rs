//! What a transaction leaves to its turn: actions on keys, procedures on several, and what they
//! give.
//!
//! Where the protocol can (`bumper`, `bumper-delaying`, `bumper-reconciled`), a delayed action is
//! done as its transaction commits, on whatever is there then, and actions on one key do not
//! conflict with each other. Elsewhere it is done at once, as reads and writes; the program is the
//! same.
//!
//! An action may be asked what it gave. It tells when the transaction has committed, so the body
//! has a [`DeferredAnswer`] answer only, which the [`Results`] of the commit redeem:
//!
//! ```
//! use muesli::{Action, Db, Error, Options, SpaceOptions};
//!
//! # fn main() -> Result<(), Error> {
//! let options = Options { protocol: "bumper".to_owned(), ..Options::default() };
//! let db = Db::open(options.space("stock", SpaceOptions::default()))?;
//! let stock = db.space("stock")?;
//! let (left, results) = db.blocking().transact_answering(async move |tx| {
//!     let pens = tx.defer_returning(stock, "pens", Action::add(5)).await?;
//!     let inks = tx.defer_returning(stock, "inks", Action::add(7)).await?;
//!     Ok::<_, Error>([pens, inks])
//! })?;
//! let number = |value: Option<muesli::SmallBytes>| {
//!     value.map_or(0, |it| i64::from_le_bytes(it.as_slice().try_into().unwrap_or_default()))
//! };
//! assert_eq!(number(results.of(&left[0])?), 5);
//! // Several are reduced to one.
//! assert_eq!(results.reduce(&left, 0, |sum, it| sum + number(it))?, 12);
//! # Ok(())
//! # }
//! ```

mod actions;
mod rerun;

pub use crate::transaction::results::{DeferredAnswer, Results};
