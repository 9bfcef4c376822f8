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
/// So many values are counted at once, or so many tables.
const VALUES_PORTION: u64 = 64;
const TABLES_PORTION: u64 = 8;

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
    /// So many values were looked at that are not counted yet.
    values: Cell<u64>,
    /// So many instructions are counted at once.
    pub portion: Cell<usize>,
}

impl Natives {
    pub fn new(budget: Rc<Budget>) -> Natives {
        Natives { budget, random: Cell::new(0), values: Cell::new(0), portion: Cell::new(0) }
    }

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

    /// The same for a value that is looked at. Values are counted in portions.
    ///
    /// # Errors
    /// As of `charge`.
    pub fn charge_value(&self, lua: &Lua) -> mlua::Result<()> {
        self.charge_values(lua, 1)
    }

    /// The same for a table that is looked through: where much was taken out of it, that takes as
    /// long as before.
    ///
    /// # Errors
    /// As of `charge`.
    pub fn charge_table(&self, lua: &Lua) -> mlua::Result<()> {
        self.charge_values(lua, VALUES_PORTION / TABLES_PORTION)
    }

    fn charge_values(&self, lua: &Lua, count: u64) -> mlua::Result<()> {
        let values = self.values.get() + count;
        if values < VALUES_PORTION {
            self.values.set(values);
            return Ok(());
        }
        self.values.set(0);
        self.charge(lua, values)
    }

    pub fn stopped(&self) -> mlua::Error {
        mlua::Error::runtime(self.budget.reason().unwrap_or_default())
    }

    /// Most bytes that they may put together at once.
    pub fn memory_bytes(&self) -> usize {
        self.budget.limits().memory_bytes
    }
}
