//! Policies: what a protocol of the family, or its user, chooses.
//!
//! A protocol names what it does as types: what [reads](reading) see, which repositories [take
//! part](participation), when keys are [locked](locking), how reads are [validated](validation), in
//! which [order](order) decided transactions are applied, and where their versions are
//! [installed](installing). They have no values, so what a protocol does not do is not in its code.
//! What a user may choose is in the [`Rules`]. What can be broken, and by tests alone, is a
//! [`FamilySwitch`].

pub mod installing;
pub mod locking;
pub mod order;
pub mod participation;
pub mod reading;
mod rules;
pub mod validation;

pub use crate::sabotage::{Breakable, Sabotage};
pub use rules::{FamilySwitch, LockWaits, Rules};
