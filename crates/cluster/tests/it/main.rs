//! Servers among strangers: bytes that are not theirs, and peers that do not listen.
//!
//! One program: each further one would be linked with all of it again.

mod admission;
mod crowds;
mod folders;
mod long_maps;
mod patience;
mod running;
mod strangers;
mod until;
