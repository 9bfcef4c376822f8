//! Spaces of typed keys and values, as transactions read and write them.

mod decoding;
mod operations;
pub(crate) mod stream;
