//! Functions that ask the driver for something.

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Lua, Scope, String as LuaString, Table, Value};

use super::ScriptYielder;
use crate::convert::{argument, to_lua};
use crate::job::{ScriptInput, ScriptStep};
use crate::natives::{Native, Natives, PAUSE};
use crate::value::ScriptValue;

/// What the driver is asked for counts as so many instructions.
const ASKED: u64 = 50;
/// A line of the log has so many bytes, at most.
const LOG_BYTES_MAX: usize = 1024;

/// Goes on where the driver has answered as it was asked; otherwise the run is to stop.
fn stop_unless(natives: &Natives, goes_on: bool, input: ScriptInput) -> mlua::Result<()> {
    if goes_on {
        return Ok(());
    }
    natives.budget.stop(match input {
        ScriptInput::Stop(why) => why,
        _ => "ERR the script was given up".to_owned(),
    });
    Err(natives.stopped())
}

/// Adds them.
pub(super) fn add_of_driver<'scope, 'env: 'scope>(
    lua: &Lua,
    scope: &'scope Scope<'scope, 'env>,
    native: &Table,
    yielder: &'env ScriptYielder,
    natives: &Rc<Natives>,
    resp3: &Rc<Cell<bool>>,
) -> mlua::Result<()> {
    let own = natives.clone();
    let pause = move |_: &Lua, ()| {
        own.budget.suspend();
        let input = yielder.suspend(ScriptStep::Pause);
        own.budget.resume();
        own.budget.has_paused();
        stop_unless(&own, matches!(input, ScriptInput::Continue), input)
    };
    lua.set_named_registry_value(PAUSE, scope.create_function(pause)?)?;
    let (own, version) = (natives.clone(), resp3.clone());
    let call = move |lua: &Lua, (values, count): (Table, usize)| -> Native {
        let words = match arguments(lua, &own, &values, count)? {
            Ok(words) => words,
            Err(why) => return raised(lua, why),
        };
        let resp3 = version.get();
        let reply = asked(lua, yielder, &own, ScriptStep::Call { words, resp3 })?;
        let fine = !matches!(reply, ScriptValue::Error(_));
        Ok((fine, to_lua(lua, reply, resp3)?))
    };
    native.raw_set("call", scope.create_function(call)?)?;
    let own = natives.clone();
    let check = move |lua: &Lua, (values, count): (Table, usize)| -> Native {
        let words = match arguments(lua, &own, &values, count)? {
            Ok(words) => words,
            Err(why) => return raised(lua, why),
        };
        let reply = asked(lua, yielder, &own, ScriptStep::Check(words))?;
        let fine = !matches!(reply, ScriptValue::Error(_));
        Ok((fine, to_lua(lua, reply, true)?))
    };
    native.raw_set("check", scope.create_function(check)?)?;
    let own = natives.clone();
    let log = move |lua: &Lua, (level, text): (f64, LuaString)| {
        own.charge(lua, ASKED)?;
        let step = ScriptStep::Log(level as u8, log_line(&text.as_bytes()));
        own.budget.suspend();
        let input = yielder.suspend(step);
        own.budget.resume();
        stop_unless(&own, matches!(input, ScriptInput::Continue), input)
    };
    native.raw_set("log", scope.create_function(log)?)
}

fn raised(lua: &Lua, why: &str) -> Native {
    Ok((false, to_lua(lua, ScriptValue::error(why), false)?))
}

/// What is in a line of the log of such a text.
fn log_line(text: &[u8]) -> Vec<u8> {
    let letters = text[..text.len().min(LOG_BYTES_MAX)].iter();
    letters.map(|letter| if letter.is_ascii_control() { b' ' } else { *letter }).collect()
}

/// What the driver replies.
fn asked(
    lua: &Lua,
    yielder: &ScriptYielder,
    natives: &Natives,
    step: ScriptStep,
) -> mlua::Result<ScriptValue> {
    natives.charge(lua, ASKED)?;
    natives.budget.suspend();
    let input = yielder.suspend(step);
    natives.budget.resume();
    match input {
        ScriptInput::Reply(reply) => Ok(reply),
        other => stop_unless(natives, false, other).map(|()| ScriptValue::Null),
    }
}

/// The name of a command and its arguments, of no more bytes than a script may have.
fn arguments(
    lua: &Lua,
    natives: &Natives,
    values: &Table,
    count: usize,
) -> mlua::Result<Result<Vec<Vec<u8>>, &'static str>> {
    if count == 0 {
        return Ok(Err("ERR Please specify at least one argument for this redis lib call"));
    }
    let mut bytes_left = natives.memory_bytes();
    let mut words = Vec::with_capacity(count);
    for at in 1..=count {
        let value: Value = values.raw_get(at)?;
        let length = match &value {
            Value::String(text) => text.as_bytes().len(),
            _ => 0,
        };
        let Some(left) = bytes_left.checked_sub(length) else {
            return Ok(Err("ERR not enough memory for the arguments of a command"));
        };
        bytes_left = left;
        natives.charge_value(lua)?;
        match argument(&value) {
            Some(word) => words.push(word),
            None => {
                return Ok(Err("ERR Lua redis lib command arguments must be strings or integers"));
            }
        }
    }
    natives.charge_bytes(lua, natives.memory_bytes() - bytes_left)?;
    Ok(Ok(words))
}
