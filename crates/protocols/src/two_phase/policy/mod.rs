//! Policies: what a protocol of the family, or its user, chooses.
//!
//! A protocol names what it does as types: how it [validates](validation), and in which
//! [order](order) decided transactions are applied. They have no values, so what a protocol does
//! not do is not in its code. What a user may choose is in the [`Rules`]. What can be broken, and
//! by tests alone, is a [`Rule`].

pub mod order;
mod rules;
pub mod validation;

pub use crate::sabotage::{Breakable, Sabotage};
pub use rules::{LockWaits, Rule, Rules};
