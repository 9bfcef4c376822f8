//! How protocols are called.

use muesli_protocols::NAMES;

use crate::table::registered_names;

/// The names that `--protocol` takes: those of the product, and then what was registered.
pub fn names() -> Vec<&'static str> {
    NAMES.iter().copied().chain(registered_names()).collect()
}

pub use muesli_protocols::{canonical_name, stored_name};

/// Whether there is a protocol of this name, or was earlier.
pub fn is_known(name: &str) -> bool {
    names().contains(&canonical_name(name))
}
