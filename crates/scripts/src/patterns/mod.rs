//! Patterns of Lua: `string.find` and its kin, with a bound of what they may take.
//!
//! Lua's own functions look for ever at a pattern that can match in many ways, and nothing stops
//! them: instructions are counted between functions. Here each step is counted as an instruction.

mod functions;
mod matcher;

pub(crate) use functions::register;
