//! Functions that need nothing but the state.

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Lua, String as LuaString, Table, Value};

use crate::hash::sha1_hex;
use crate::natives::Natives;

/// What scripts find as the version of Redis.
const VERSION: (&str, u32) = ("7.0.15", 0x0007_000f);

/// Adds them.
pub(super) fn add_of_state(
    lua: &Lua,
    native: &Table,
    natives: &Rc<Natives>,
    resp3: &Rc<Cell<bool>>,
) -> mlua::Result<()> {
    native.raw_set("null", Value::NULL)?;
    native.raw_set("version", VERSION.0)?;
    native.raw_set("version_number", VERSION.1)?;
    let own = natives.clone();
    let is_stopped = move |_: &Lua, ()| Ok(own.budget.is_stopped());
    native.raw_set("is_stopped", lua.create_function(is_stopped)?)?;
    let own = natives.clone();
    let collected = move |lua: &Lua, ()| own.charge_bytes(lua, lua.used_memory());
    native.raw_set("collected", lua.create_function(collected)?)?;
    let version = resp3.clone();
    let set_version = move |_: &Lua, chosen: f64| {
        version.set(chosen == 3.0);
        Ok(())
    };
    native.raw_set("set_version", lua.create_function(set_version)?)?;
    let own = natives.clone();
    let charge = move |lua: &Lua, instructions: f64| own.charge(lua, instructions as u64);
    native.raw_set("charge", lua.create_function(charge)?)?;
    let own = natives.clone();
    let charge_bytes = move |lua: &Lua, bytes: f64| own.charge_bytes(lua, bytes as usize);
    native.raw_set("charge_bytes", lua.create_function(charge_bytes)?)?;
    let own = natives.clone();
    let sha1hex = move |lua: &Lua, text: LuaString| {
        own.charge_bytes(lua, text.as_bytes().len())?;
        Ok(sha1_hex(&text.as_bytes()))
    };
    native.raw_set("sha1hex", lua.create_function(sha1hex)?)?;
    native.raw_set("location", lua.create_function(|lua: &Lua, ()| Ok(location(lua)))?)
}

/// Where the innermost function of a script is at.
fn location(lua: &Lua) -> (Option<String>, Option<usize>) {
    /// Frames of the sandbox and of Lua's own functions that may be above it.
    const LEVELS: usize = 64;
    for level in 0..LEVELS {
        let found = lua.inspect_stack(level, |debug| {
            let source = debug.source().source.map(|it| it.into_owned());
            (source, debug.current_line())
        });
        match found {
            None => break,
            Some((Some(source), line)) if source.starts_with("@user_") => {
                return (Some(source), line);
            }
            Some(_) => {}
        }
    }
    (None, None)
}
