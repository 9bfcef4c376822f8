//! What functions in Rust that scripts call have in common.
//!
//! None of them raises an error of its own: they give whether they were fine, and what they found
//! or why they were not. Code in `sandbox/` raises it, as a string or table that scripts see,
//! at the place of theirs that has called.

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Function, Lua, Value};

use crate::budget::{Budget, BudgetVerdict};

/// Where the function is that lets others go on.
pub(crate) const PAUSE: &str = "muesli.pause";
/// So many bytes count as an instruction.
const BYTES_AN_INSTRUCTION: usize = 16;

/// Whether it was fine, and what was found, or why not. An error: the run is to stop.
pub(crate) type Native = mlua::Result<(bool, Value)>;

/// What was found.
pub(crate) fn fine(value: Value) -> Native {
    Ok((true, value))
}

/// Why it was not fine.
pub(crate) fn fail(lua: &Lua, why: &str) -> Native {
    Ok((false, Value::String(lua.create_string(why)?)))
}

/// What these functions share.
pub(crate) struct Natives {
    pub budget: Rc<Budget>,
    /// The state of the random numbers: 48 bits.
    pub random: Cell<u64>,
}

impl Natives {
    /// Counts what they do as so many instructions, and lets others go on if it is time.
    ///
    /// # Errors
    /// The run is to stop.
    pub fn charge(&self, lua: &Lua, instructions: u64) -> mlua::Result<()> {
        match self.budget.charge(instructions) {
            BudgetVerdict::Goes => Ok(()),
            BudgetVerdict::Pauses => lua.named_registry_value::<Function>(PAUSE)?.call(()),
            BudgetVerdict::Stops => Err(self.stopped()),
        }
    }

    /// The same for so many bytes that are looked at or written.
    ///
    /// # Errors
    /// As of `charge`.
    pub fn charge_bytes(&self, lua: &Lua, bytes: usize) -> mlua::Result<()> {
        self.charge(lua, (bytes / BYTES_AN_INSTRUCTION) as u64)
    }

    pub fn stopped(&self) -> mlua::Error {
        mlua::Error::runtime(self.budget.reason().unwrap_or_default())
    }

    /// Most bytes that they may put together at once.
    pub fn memory_bytes(&self) -> usize {
        self.budget.limits().memory_bytes
    }
}
