//! The rows of order lines, whose text is not copied.

use serde::{Deserialize, Serialize};

/// An order line; S_DIST_xx stays where it lies, in stock or in the line's own row.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LineRow<'a> {
    pub item: u32,
    pub supplier: u32,
    pub delivered: Option<u64>,
    pub quantity: u8,
    pub amount: i64,
    pub district_info: &'a str,
}
