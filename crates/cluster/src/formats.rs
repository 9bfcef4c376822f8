//! The versions of what is written and sent, in one place.
//!
//! | what | version | where it stands |
//! | --- | --- | --- |
//! | frames, handshake, messages | [`WIRE`] | every frame's header |
//! | a server's folder: `identity`, `map`, `heard` | [`FOLDER`] | the header of each file |
//! | records and checkpoints of all protocols | [`DATA`] | `identity` |
//! | a client's timestamp lease | [`LEASE`] | the file's header |
//! | segments and checkpoint files of the log | [`LOG`] | the header of each file |
//!
//! Golden files of each version are among the tests: bytes that change without a new number here
//! fail them. `docs/running/compatibility.md` says which program reads what.

pub use muesli_core::formats::{DATA, WIRE};

/// The version of the small files of a server's folder.
pub const FOLDER: u32 = 3;
/// The version of the file of a client's timestamp lease.
pub const LEASE: u32 = 1;
/// The version of the log's files.
pub const LOG: u32 = muesli_log::format::segment::VERSION;
/// This program's own version, for messages to people.
pub const PROGRAM: &str = env!("CARGO_PKG_VERSION");
