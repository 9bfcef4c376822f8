//! What a cluster is: its servers, its spaces, and where its repositories live.
//!
//! `deal` is how a new cluster shares its repositories out.
//! [`map`] has all three, with what makes two maps fit together, `tree` what a map has of the tree
//! above the repositories; [`limits`] bounds what a map may
//! hold. In a database of groups a row of the database itself says which spaces there are:
//! [`register`] is that row, and `row_reader` how a server reads it. Nothing here talks to
//! anybody: maps are values.

mod deal;
pub mod error;
pub mod limits;
pub mod map;
pub mod parts;
pub mod register;
pub(crate) mod row_reader;
mod tree;
