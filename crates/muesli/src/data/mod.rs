//! What is stored, as types: spaces, keys whose encodings keep their order, ranges of them, and
//! rows.

pub(crate) mod byte_range;
pub(crate) mod codec;
pub mod key;
pub(crate) mod range;
pub(crate) mod space;
