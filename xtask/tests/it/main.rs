//! What the project asks of its own files.

mod names;
mod pages;
mod words;
