//! A node in its process: the state machine, and what performs its effects.
//!
//! `loop_state` has the machine, what it said and asked for, and its log. `engine` is how client
//! code that runs on the loop reaches it. `clock` is the time that the node is given.

pub(crate) mod clock;
pub(crate) mod engine;
pub(crate) mod loop_state;
