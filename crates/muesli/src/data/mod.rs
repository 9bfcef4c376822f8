//! What is stored, as types: spaces, and keys whose encodings keep their order.

pub mod key;
pub(crate) mod space;
