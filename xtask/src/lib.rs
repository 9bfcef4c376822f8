//! What the project's files say: pages and their links, words, names of types.
//!
//! `cargo xtask` runs the tasks (`main.rs`); `tests/it` holds the project to what is read here.

pub mod failures;
pub mod files;
pub mod markdown;
pub mod names;
pub mod profile;
pub mod searches;
pub mod words;
