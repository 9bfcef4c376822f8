//! What the files of the log look like, and how they are read back.
//!
//! Everything in them stands in [frames](frame) with checksums. A [`segment`] begins with a header
//! and goes on in frames; `scan` reads one up to the first frame that is not right, and finds out
//! whether that one had been promised.

pub mod frame;
pub(crate) mod scan;
pub mod segment;
