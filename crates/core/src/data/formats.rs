//! The versions of what protocols send and keep.
//!
//! Bytes that change get a new number here, or the golden files of the tests
//! (`crates/*/tests/formats`) do not fit any more: a program that reads other bytes under the same
//! number takes them for something else. `docs/running/compatibility.md` says which program reads
//! what.

/// The version of frames and of what is in them: handshake, messages of drivers and of protocols.
pub const WIRE: u8 = 3;
/// The version of the records and the pieces of checkpoints that protocols and groups write.
pub const DATA: u32 = 3;
