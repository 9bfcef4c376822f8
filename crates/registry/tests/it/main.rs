//! The table of protocols and what they can do. A program of its own, not unit tests: with those
//! every protocol would be compiled once more.

mod abilities;
mod table;
