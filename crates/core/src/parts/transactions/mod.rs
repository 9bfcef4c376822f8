//! Running transactions, as their coordinator keeps them.

pub mod open;
pub mod transaction;
