//! Placement: which data belong together, found in a trace of transactions.
//!
//! An [`AccessTrace`] says of transactions which rows they read and wrote, and what they needed of
//! what they had read. From it follow, one after the other: by which column of its key each table
//! is placed, or that it is everywhere ([`scheme`]); which units are used together, and so which
//! partition each of them should be in ([`units`]); and what it would be worth ([`suggestion`]).
//! Every share is told twice: of the transactions that it was learnt from, and of fresh ones. All
//! of it proposes; none of it is asked while a transaction runs.
//!
//! While servers run, [`online`] finds from what they sampled which partitions should move to other
//! repositories, what that costs and when it has paid for itself.
//!
//! Beside all that, [`printed`] has the method of the dissertation, as a baseline.
//!
//! Nothing here uses a clock or chance: the same trace gives the same answer. A first placement of
//! many units is made by METIS, which may only run in a process of its own ([`units::child`]).

pub mod online;
pub mod printed;
pub mod scheme;
pub mod suggestion;
pub mod trace;
pub mod units;

pub use scheme::{Scheme, TablePlacement};
pub use suggestion::{Suggestion, Terms, propose, suggest};
pub use trace::AccessTrace;
