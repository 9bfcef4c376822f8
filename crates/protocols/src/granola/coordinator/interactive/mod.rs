//! Interactive transactions over one-round ones (section 7.5).
//!
//! [`reads`] answers operations by read-only transactions of one repository each, large ones in
//! `pages`; [`commit`] is the end, which checks what was read and writes.

pub mod commit;
pub(super) mod pages;
pub mod reads;
