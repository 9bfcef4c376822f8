//! How protocols are called.

use crate::table::names;

pub use muesli_protocols::{canonical_name, stored_name};

/// Whether there is a protocol of this name, or was earlier.
pub fn is_known(name: &str) -> bool {
    names().contains(&canonical_name(name))
}
