//! Certified commits, message by message: transcripts, formats, and invariants that are broken.

#[path = "../harness/mod.rs"]
mod harness;

mod clusters;
mod elsewhere;
mod explore;
mod formats;
mod repository;
mod subject;
mod transcripts;
