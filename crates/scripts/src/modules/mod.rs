//! The modules that scripts of Redis find: `bit`, `cjson`, `cmsgpack`, `struct`, random numbers.

mod bits;
mod json_decode;
mod json_encode;
mod messages;
mod messages_decode;
mod random;
mod structs;

use std::rc::Rc;

use mlua::{Lua, Table};

use crate::natives::Natives;

/// Adds the functions that they are made of.
pub(crate) fn register(lua: &Lua, native: &Table, natives: &Rc<Natives>) -> mlua::Result<()> {
    bits::register(lua, native)?;
    json_encode::register(lua, native, natives)?;
    json_decode::register(lua, native, natives)?;
    messages::register(lua, native, natives)?;
    messages_decode::register(lua, native, natives)?;
    random::register(lua, native, natives)?;
    structs::register(lua, native, natives)
}
