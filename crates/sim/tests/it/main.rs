//! Worlds: the simulator alone, and SCORe in it.
//!
//! One program: each further one would be linked with all of it again.

mod gone;
mod registers;
mod score;
mod world;
