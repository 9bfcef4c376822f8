//! Lua 5.1 for Redis clients: scripts and libraries of functions, in a sandbox with limits.
//!
//! A script calls commands in its midst, and these may have to wait for other servers. So an
//! [`Interpreter`] has a stack of its own: it runs until the script calls a command, says which,
//! and goes on with the reply. It knows neither keys nor transactions nor connections; what it is
//! given and what it gives are a [`ScriptJob`] and [`ScriptStep`]s.
//!
//! No script stops the process or keeps it for ever: instructions, time, memory and nesting have
//! bounds, what functions in C and Rust do for it counts as instructions, and a script that runs
//! for long lets others go on between. An instruction of Lua is not interrupted: where it works on
//! all of a string, it takes as long as that is, which memory bounds.
//!
//! What scripts find is that of Redis 7.0: `docs/using/redis.md` has the differences.

mod budget;
mod convert;
mod hash;
mod interpreter;
mod job;
mod modules;
mod natives;
mod numbers;
mod patterns;
mod registering;
mod running;
mod shebang;
mod value;

pub use hash::sha1_hex;
pub use interpreter::Interpreter;
pub use job::{
    LibraryCode, LibraryFunction, ScriptEnd, ScriptInput, ScriptJob, ScriptLimits, ScriptStep,
    ScriptTask,
};
pub use shebang::{ScriptFlags, library, script};
pub use value::ScriptValue;
