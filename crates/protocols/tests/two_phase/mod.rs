//! What the programs of the protocols with two phases have in common.

#![allow(dead_code, reason = "no protocol needs all of it")]

pub mod checkpoint;
pub mod checkpoint_page;
pub mod exploring;
pub mod false_records;
pub mod server;
mod subject;
pub mod switches;
pub mod voter;
