//! How the members of a group agree on one log.
//!
//! A group decides [entries](entry) one after the other, by a [consensus](consensus) library whose
//! storage is the [ledger]. Leaders go by [ballots](ballot); who votes is a
//! [configuration](configuration). A member without memory [joins](join) by what others say in
//! their [summaries](summary), and is [sent](transfer) what it misses. [`lead`] is what a leader
//! alone knows, and [`written`] how far a leader's own entries are stable.

pub mod ballot;
pub mod configuration;
pub mod consensus;
pub mod entry;
pub mod entry_log;
pub mod join;
pub mod lead;
pub mod ledger;
pub mod summary;
pub mod transfer;
pub(crate) mod written;
