//! Data, as everything else knows it: ids, bytes, ranges and times, and how they are encoded.

pub mod bytes;
pub mod formats;
pub mod ids;
pub mod ranges;
pub mod time;
pub mod wire;
