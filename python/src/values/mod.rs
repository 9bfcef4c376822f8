//! Keys and values, and how they are stored.

pub mod codec;
pub mod parts;
pub mod scan;
pub mod space;
