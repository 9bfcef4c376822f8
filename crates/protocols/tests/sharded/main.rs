//! Sharded certification, message by message: transcripts, formats, and every interleaving of a few
//! transactions.

#[path = "../harness/mod.rs"]
mod harness;

mod clusters;
mod explore;
mod formats;
mod member;
mod subject;
mod transcripts;
