//! Running transactions, as their coordinator keeps them.

pub mod last_reads;
pub mod levels;
mod nested;
pub mod open;
pub mod transaction;
