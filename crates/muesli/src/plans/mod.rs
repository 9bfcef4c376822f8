//! Plans: procedures whose keys are expressions, of which everything else is derived.
//!
//! A [stored procedure](crate::procedures) declares what it touches, whether it refuses and by
//! what, and its caller names the fragments; what is declared wrongly is found when it happens, if
//! at all. A *plan* is a list of steps whose keys are made of arguments, of columns of lists that
//! are walked, and of what earlier steps have found; what a step does with rows is a plain function
//! of values that it is given. So it follows from the plan itself, before anything runs, where each
//! step is, who knows what it needs, whether participants can come to one decision without asking,
//! and which fragments a call has. What cannot be in one round is an error when the plan is
//! registered, which names the step and the column and what to do about it.
//!
//! ```
//! use muesli::plans::{PlanBuilder, PlanExplanation, PlannedProcedure, PlanTable, PlanValue};
//! use muesli::{Db, Error, Options, arg};
//! use serde::{Deserialize, Serialize};
//!
//! const ACCOUNTS: PlanTable<(u64,), i64> = PlanTable::by_unit("accounts", "account", 1);
//!
//! #[derive(Serialize, Deserialize)]
//! struct Order {
//!     from: u64,
//!     to: u64,
//!     amount: i64,
//! }
//!
//! /// Moves money, if there is enough: all participants are told of the balance, and decide alike.
//! struct Move;
//!
//! impl PlannedProcedure for Move {
//!     const NAME: &'static str = "move-money";
//!     type Arguments = Order;
//!     type Answer = ();
//!
//!     fn plan(plan: &mut PlanBuilder<Order>) -> PlanValue<()> {
//!         let (from, to) = (arg!(plan, from), arg!(plan, to));
//!         let balance = plan.shared(ACCOUNTS, (from,));
//!         plan.refuse_unless("not enough", balance, |order, balance| {
//!             balance.is_some_and(|balance| balance >= order.amount)
//!         });
//!         plan.update(ACCOUNTS, (from,), (), |order, old, ()| Some(old? - order.amount));
//!         plan.update(ACCOUNTS, (to,), (), |order, old, ()| {
//!             Some(old.unwrap_or(0) + order.amount)
//!         });
//!         plan.nothing()
//!     }
//! }
//!
//! let explained = PlanExplanation::of::<Move>();
//! assert_eq!((explained.class, explained.refuses), ("single or independent", "alike"));
//!
//! # fn main() -> Result<(), Error> {
//! # if !muesli_protocols::NAMES.contains(&"granola-passing") { return Ok(()); }
//! let (name, accounts) = ACCOUNTS.space(Default::default(), &Default::default());
//! let protocol = "granola-passing".to_owned();
//! let options = Options { repositories: 4, protocol, ..Options::default() };
//! let db = Db::open(options.space(name, accounts).plan::<Move>()?)?;
//! let order = Order { from: 1, to: 2, amount: 10 };
//! let refused = db.blocking().run_plan::<Move>(&order);
//! assert!(matches!(refused, Err(Error::Refused(_))));
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//! A [`PlanTable`] says by what its rows are placed: by the *unit* that the first columns of their
//! keys name, a warehouse or a user, as all tables of the unit's domain are; each by its whole
//! key; or
//! *everywhere*, which is for what is seldom written: every repository has all of it, so whoever
//! needs it has it.
//!
//! # What is derived
//! - *One round*: every unit is named by values that follow from the arguments. Other parts of keys
//!   may follow from what is found.
//! - *Values that cross*: a step may use what follows from arguments, from tables that are
//!   everywhere and from [shared](PlanBuilder::shared) reads, and what was found at its own unit.
//! - *Refusals*: those by what all know are alike; others are one participant's alone.
//! - The [class](crate::Class), the footprint, the fragments, and whether it only reads.
//!
//! # How it runs
//! Each participant runs the whole plan and does the steps of its partition. What another one has
//! is neither a row nor its absence, and no function sees it. Before they vote, participants work
//! out from the arguments which fragments the call must have, and refuse one that lacks any.

mod builder;
pub(crate) mod call;
mod derivation;
mod error;
mod explanation;
mod inputs;
mod nodes;
pub(crate) mod procedure_plan;
pub(crate) mod registration;
mod running;
mod table;
#[cfg(test)]
mod tests;

pub use builder::{Element, PlanBuilder, RowRange};
pub use call::answer;
pub use error::PlannedProcedureError;
pub use explanation::{PlanExplanation, RefusalExplanation, StepExplanation};
pub use inputs::{EncodedValue, Inputs, KeyValues, LeadingColumns, PlanRow};
pub use nodes::PlanValue;
pub use procedure_plan::{PlannedProcedure, ProcedurePlan, id_of};
pub use registration::with;
pub use running::{TracedRow, TracedRun, TracedRuns, traced};
pub use table::{KeyColumn, KeyColumns, PlanTable, TableUnit};

/// A field of a plan's arguments as one of its values, under its own name.
///
/// `arg!(plan, customer.district)` is the field `district` of the arguments' field `customer`.
#[macro_export]
macro_rules! arg {
    ($plan:expr, $($field:ident).+) => {
        $plan.arg(stringify!($($field).+), |all| ::std::clone::Clone::clone(&all.$($field).+))
    };
}

/// A field of a value of a plan, under its own name.
#[macro_export]
macro_rules! column {
    ($plan:expr, $value:expr, $($field:ident).+) => {
        $plan.field($value, stringify!($($field).+), |all| {
            ::std::clone::Clone::clone(&all.$($field).+)
        })
    };
}
