//! What is inside of an interpreter: a state of Lua with the sandbox, and how jobs are done there.

mod asking;
mod code;
mod counting;
mod state;
mod stateful;

use std::rc::Rc;

use corosensei::Yielder;
use mlua::{Lua, LuaOptions, StdLib};

use self::state::LuaState;
use crate::budget::Budget;
use crate::job::{ScriptEnd, ScriptInput, ScriptStep};
use crate::natives::Natives;

/// So many values of Lua can be held by functions in Rust at a time. Place for them is made before
/// memory has a bound: where that were met as they need more, Lua would end the process.
const HANDLES: usize = 7000;
/// A collection of garbage begins as memory has grown by a tenth since the last one. Its steps are
/// so long that few of them look through all that a small script has: they come with what a script
/// makes, however large that is, and a few long strings are to be gone before memory ends.
const COLLECTOR_PAUSE: i32 = 110;
const COLLECTOR_STEP: i32 = 40_000;

/// By what the interpreter and its driver meet.
pub(crate) type ScriptYielder = Yielder<ScriptInput, ScriptStep>;

/// Does jobs until there are no more.
pub(crate) fn serve(yielder: &ScriptYielder, first: ScriptInput, budget: &Rc<Budget>) {
    let mut input = first;
    if let Err(error) = serve_in_state(yielder, &mut input, budget) {
        // The state could not be made.
        while let ScriptInput::Job(_) = input {
            let why = format!("ERR no script can be run: {error}");
            input = yielder.suspend(ScriptStep::Done(ScriptEnd::Failed(why.into_bytes())));
        }
    }
}

fn serve_in_state(
    yielder: &ScriptYielder,
    input: &mut ScriptInput,
    budget: &Rc<Budget>,
) -> mlua::Result<()> {
    let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
    let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
    lua.gc_set_pause(COLLECTOR_PAUSE);
    lua.gc_set_step_multiplier(COLLECTOR_STEP);
    let natives = Rc::new(Natives::new(budget.clone()));
    let held = (0..HANDLES).map(|_| lua.create_string("held")).collect::<mlua::Result<Vec<_>>>()?;
    drop(held);
    lua.scope(|scope| {
        let running = LuaState::new(&lua, scope, yielder, &natives)?;
        loop {
            match std::mem::replace(input, ScriptInput::End) {
                ScriptInput::Job(job) => {
                    let end = running.run(&job);
                    budget.end(running.swept_memory());
                    *input = yielder.suspend(ScriptStep::Done(end));
                }
                _ => return Ok(()),
            }
        }
    })
}
