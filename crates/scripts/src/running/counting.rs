//! Instructions are counted, in portions.

use std::rc::Rc;

use mlua::{HookTriggers, Lua, VmState};

use crate::natives::Natives;

/// So many instructions are a portion.
const PORTION: usize = 500;
/// With more memory than this portions are smaller, for the rest of the run: an instruction may
/// work on all of a string that is as long as this memory.
const PORTION_MEMORY: usize = 1 << 20;
/// The smallest portion.
const PORTION_MIN: usize = 8;

/// How many instructions are a portion where Lua has so much memory.
fn portion(memory: usize) -> usize {
    (PORTION * PORTION_MEMORY / memory.max(PORTION_MEMORY)).max(PORTION_MIN)
}

/// A run begins: its instructions are counted.
///
/// # Errors
/// Lua has no memory left.
pub(super) fn begin_counting(lua: &Lua, natives: &Rc<Natives>) -> mlua::Result<()> {
    natives.portion.set(PORTION);
    set_hook(lua, natives)
}

/// Has the thread of Lua that runs, and those that it makes, count instructions from now on.
fn set_hook(lua: &Lua, natives: &Rc<Natives>) -> mlua::Result<()> {
    let (own, count) = (natives.clone(), portion(lua.used_memory()).min(natives.portion.get()));
    natives.portion.set(count);
    let hook = move |lua: &Lua, _: &mlua::Debug<'_>| {
        let charged = own.charge(lua, count as u64).and_then(|()| set_hook(lua, &own));
        // What handles an error that is raised here is not counted: none of a script's is to be
        // called, and so the run is to stop, whatever the error is.
        charged.inspect_err(|error| own.budget.stop(format!("ERR {error}")))?;
        Ok(VmState::Continue)
    };
    lua.set_global_hook(HookTriggers::new().every_nth_instruction(count as u32), hook)
}

#[cfg(test)]
mod tests {
    use super::portion;

    #[test]
    fn portions_are_smaller_where_memory_is_larger() {
        for (memory, expected) in [(0, 500), (1 << 20, 500), (10 << 20, 50), (1 << 40, 8)] {
            assert_eq!(portion(memory), expected);
        }
    }
}
