//! Running transactions, as their coordinator keeps them.

pub mod levels;
mod nested;
pub mod open;
pub mod transaction;
