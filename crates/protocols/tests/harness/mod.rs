//! What the programs of tests have in common, of which there is one for each protocol: a protocol
//! as tests see it (`subject`), the stage that plays scripts (`harness`, `transcripts`), the explorer
//! of small scopes (`exploration`), the judge of both (`judge`), golden files of formats
//! (`samples`), and what is asked of every protocol (`every`).
//!
//! It is a part of each program, and so compiled for its protocol alone: who changes a protocol
//! waits for one program.

#![allow(dead_code, reason = "no protocol needs all of it")]

pub mod checkpoint_samples;
pub mod copies;
pub mod delayable;
pub mod every;
pub mod exploration;
pub mod judge;
pub mod samples;
pub mod scripted;
pub mod subject;
pub mod transcripts;
