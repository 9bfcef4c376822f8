//! Values of Lua and of replies: each as the other.

use mlua::{Lua, Table, Value};

use crate::natives::Natives;
use crate::numbers::general;
use crate::value::ScriptValue;

/// A reply may have so many arrays within each other.
const NESTING_MAX: usize = 128;
/// What each value of a reply costs, beside its bytes.
const VALUE_BYTES: usize = 64;

/// The number that a value is, if it is one.
pub(crate) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// The bytes of a string, or of a number as a command is given it.
pub(crate) fn argument(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        other => number(other).map(|it| general(it, 17).into_bytes()),
    }
}

/// What a command has answered, as a script sees it.
///
/// # Errors
/// Lua has no memory left.
pub(crate) fn to_lua(lua: &Lua, value: ScriptValue, resp3: bool) -> mlua::Result<Value> {
    let field = |name: &str, value: Value| {
        let table = lua.create_table_with_capacity(0, 1)?;
        table.raw_set(name, value)?;
        Ok(Value::Table(table))
    };
    let text = |bytes: Vec<u8>| Ok::<_, mlua::Error>(Value::String(lua.create_string(bytes)?));
    match value {
        ScriptValue::Status(word) => field("ok", text(word)?),
        ScriptValue::Error(why) => field("err", text(why)?),
        ScriptValue::Integer(value) => Ok(Value::Number(value as f64)),
        ScriptValue::Bytes(bytes) => text(bytes),
        ScriptValue::Null if resp3 => Ok(Value::Nil),
        ScriptValue::Null => Ok(Value::Boolean(false)),
        ScriptValue::Array(all) => sequence(lua, all, resp3),
        ScriptValue::Map(pairs) if resp3 => {
            let map = lua.create_table_with_capacity(0, pairs.len())?;
            for (key, value) in pairs {
                let key = to_lua(lua, key, true)?;
                if !key.is_nil() {
                    map.raw_set(key, to_lua(lua, value, true)?)?;
                }
            }
            field("map", Value::Table(map))
        }
        ScriptValue::Map(pairs) => {
            sequence(lua, pairs.into_iter().flat_map(|it| [it.0, it.1]).collect(), false)
        }
        ScriptValue::Set(all) if resp3 => {
            let set = lua.create_table_with_capacity(0, all.len())?;
            for member in all {
                let member = to_lua(lua, member, true)?;
                if !member.is_nil() {
                    set.raw_set(member, true)?;
                }
            }
            field("set", Value::Table(set))
        }
        ScriptValue::Set(all) => sequence(lua, all, false),
        ScriptValue::Double(value) if resp3 => field("double", Value::Number(value)),
        ScriptValue::Double(value) => text(general(value, 17).into_bytes()),
        ScriptValue::Bool(yes) if resp3 => Ok(Value::Boolean(yes)),
        ScriptValue::Bool(yes) => Ok(Value::Number(f64::from(u8::from(yes)))),
        ScriptValue::BigNumber(digits) if resp3 => field("big_number", text(digits)?),
        ScriptValue::BigNumber(digits) => text(digits),
        ScriptValue::Verbatim(format, body) if resp3 => {
            let parts = lua.create_table_with_capacity(0, 2)?;
            parts.raw_set("format", text(format)?)?;
            parts.raw_set("string", text(body)?)?;
            field("verbatim_string", Value::Table(parts))
        }
        ScriptValue::Verbatim(_, body) => text(body),
    }
}

fn sequence(lua: &Lua, all: Vec<ScriptValue>, resp3: bool) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(all.len(), 0)?;
    for (at, value) in all.into_iter().enumerate() {
        table.raw_set(at + 1, to_lua(lua, value, resp3)?)?;
    }
    Ok(Value::Table(table))
}

/// Strings as a table that counts from one.
pub(crate) fn strings(lua: &Lua, all: &[Vec<u8>]) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(all.len(), 0)?;
    for (at, text) in all.iter().enumerate() {
        table.raw_set(at + 1, lua.create_string(text)?)?;
    }
    Ok(table)
}

/// What a script has answered, as a reply.
pub(crate) struct ReplyBuilder<'a> {
    pub lua: &'a Lua,
    pub natives: &'a Natives,
    /// Whether the script has asked for the third version of the protocol.
    pub resp3: bool,
    /// So many bytes may still be added.
    pub bytes_left: usize,
}

impl ReplyBuilder<'_> {
    /// A value of Lua as a reply.
    ///
    /// # Errors
    /// The reply would be too long, or the run is to stop.
    pub fn value(&mut self, value: &Value, depth: usize) -> Result<ScriptValue, String> {
        self.take(VALUE_BYTES)?;
        self.natives.charge_value(self.lua).map_err(|_| self.stop_text())?;
        match value {
            Value::String(text) => Ok(ScriptValue::Bytes(self.bytes(&text.as_bytes())?)),
            Value::Boolean(yes) if self.resp3 => Ok(ScriptValue::Bool(*yes)),
            Value::Boolean(true) => Ok(ScriptValue::Integer(1)),
            Value::Table(table) if depth < NESTING_MAX => self.table(table, depth),
            Value::Table(_) => Ok(ScriptValue::error("ERR reached lua stack limit")),
            other => {
                Ok(number(other).map_or(ScriptValue::Null, |it| ScriptValue::Integer(it as i64)))
            }
        }
    }

    fn stop_text(&self) -> String {
        self.natives.budget.reason().unwrap_or_default()
    }

    fn take(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.ok_or(
            "LIMIT the reply of the script is made of more bytes than it may \
             (`script-memory-limit`); nothing of it was done",
        )?;
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        self.take(bytes.len())?;
        Ok(bytes.to_vec())
    }

    /// The string of this field, if it has one.
    fn text(&mut self, table: &Table, name: &str) -> Result<Option<Vec<u8>>, String> {
        match field(table, name) {
            Value::String(text) => Ok(Some(self.bytes(&text.as_bytes())?)),
            _ => Ok(None),
        }
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<ScriptValue, String> {
        if let Some(why) = self.text(table, "err")? {
            return Ok(ScriptValue::Error(why));
        }
        if let Some(word) = self.text(table, "ok")? {
            return Ok(ScriptValue::Status(word));
        }
        if let Some(double) = number(&field(table, "double")) {
            return Ok(ScriptValue::Double(double));
        }
        if let Some(digits) = self.text(table, "big_number")? {
            return Ok(ScriptValue::BigNumber(digits));
        }
        if let Value::Table(verbatim) = field(table, "verbatim_string") {
            let (format, body) = (self.text(&verbatim, "format")?, self.text(&verbatim, "string")?);
            if let (Some(format), Some(body)) = (format, body) {
                return Ok(ScriptValue::Verbatim(format, body));
            }
        }
        if let Value::Table(map) = field(table, "map") {
            return Ok(ScriptValue::Map(self.pairs(&map, depth)?));
        }
        if let Value::Table(set) = field(table, "set") {
            let pairs = self.pairs(&set, depth)?;
            return Ok(ScriptValue::Set(pairs.into_iter().map(|it| it.0).collect()));
        }
        let mut all = Vec::new();
        loop {
            match table.raw_get::<Value>(all.len() + 1) {
                Ok(Value::Nil) | Err(_) => return Ok(ScriptValue::Array(all)),
                Ok(value) => all.push(self.value(&value, depth + 1)?),
            }
        }
    }

    fn pairs(
        &mut self,
        table: &Table,
        depth: usize,
    ) -> Result<Vec<(ScriptValue, ScriptValue)>, String> {
        self.natives.charge_table(self.lua).map_err(|_| self.stop_text())?;
        let mut all = Vec::new();
        for pair in table.pairs::<Value, Value>() {
            let Ok((key, value)) = pair else { break };
            all.push((self.value(&key, depth + 1)?, self.value(&value, depth + 1)?));
        }
        Ok(all)
    }
}

/// What a table has under this name itself.
pub(crate) fn field(table: &Table, name: &str) -> Value {
    table.raw_get(name).unwrap_or(Value::Nil)
}
