//! How the parts of a transaction are run over the keys that are here.
//!
//! [`parts`] runs procedures, and reads, checks and puts aside what interactive transactions ask
//! for; `reads` looks at keys and ranges, a page at a time; `budget` bounds what the parts of one
//! transaction give and write together.

mod budget;
pub mod parts;
mod reads;
