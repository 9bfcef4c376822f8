//! `cjson.encode`.

use std::fmt::Write;
use std::rc::Rc;

use mlua::{Lua, Table, Value};

use crate::convert::number;
use crate::natives::{Native, Natives, fail, fine};
use crate::numbers::general;

/// Tables may be so deep within each other, whatever a script asks for.
const DEPTH_MAX: usize = 1000;

/// What is done with numbers that JSON does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InvalidNumbers {
    Refused,
    Written,
    Null,
}

/// What a script has set.
struct JsonSettings {
    depth_max: usize,
    precision: usize,
    invalid: InvalidNumbers,
    /// Whether an array with many gaps becomes an object, from which share and length on.
    sparse_converts: bool,
    sparse_ratio: f64,
    sparse_safe: f64,
}

impl JsonSettings {
    fn read(table: &Table) -> mlua::Result<JsonSettings> {
        Ok(JsonSettings {
            depth_max: table.raw_get::<f64>("encode_max_depth")? as usize,
            precision: table.raw_get::<f64>("encode_number_precision")? as usize,
            invalid: match table.raw_get::<f64>("encode_invalid_numbers")? {
                0.0 => InvalidNumbers::Refused,
                1.0 => InvalidNumbers::Written,
                _ => InvalidNumbers::Null,
            },
            sparse_converts: table.raw_get("sparse_converts")?,
            sparse_ratio: table.raw_get("sparse_ratio")?,
            sparse_safe: table.raw_get("sparse_safe")?,
        })
    }
}

/// JSON that is being written.
struct JsonWriter<'a> {
    lua: &'a Lua,
    natives: &'a Natives,
    settings: JsonSettings,
    out: String,
    bytes: Vec<u8>,
    bytes_max: usize,
}

/// Adds it.
pub(super) fn register(lua: &Lua, native: &Table, natives: &Rc<Natives>) -> mlua::Result<()> {
    let own = natives.clone();
    let encode = move |lua: &Lua, (value, settings): (Value, Table)| -> Native {
        let settings = JsonSettings::read(&settings)?;
        let bytes_max = own.memory_bytes();
        let (natives, out, bytes) = (&*own, String::new(), Vec::new());
        let mut writer = JsonWriter { lua, natives, settings, out, bytes, bytes_max };
        match writer.value(&value, 0) {
            Ok(()) => {
                own.charge_bytes(lua, writer.bytes.len())?;
                fine(Value::String(lua.create_string(&writer.bytes)?))
            }
            Err(_) if own.budget.is_stopped() => Err(own.stopped()),
            Err(why) => fail(lua, &why),
        }
    };
    native.raw_set("json_encode", lua.create_function(encode)?)
}

fn cannot(value: &Value, why: &str) -> String {
    let kind = match value {
        Value::LightUserData(_) | Value::UserData(_) => "userdata",
        other => other.type_name(),
    };
    format!("Cannot serialise {kind}: {why}")
}

impl JsonWriter<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), String> {
        if self.bytes.len() > self.bytes_max {
            return Err("not enough memory".to_owned());
        }
        self.natives.charge_value(self.lua).map_err(|it| it.to_string())?;
        match value {
            Value::String(text) => self.text(&text.as_bytes()),
            Value::Boolean(true) => self.bytes.extend_from_slice(b"true"),
            Value::Boolean(false) => self.bytes.extend_from_slice(b"false"),
            Value::Nil => self.bytes.extend_from_slice(b"null"),
            Value::LightUserData(pointer) if pointer.0.is_null() => {
                self.bytes.extend_from_slice(b"null");
            }
            Value::Table(table) => return self.table(value, table, depth + 1),
            other => match number(other) {
                Some(number) => return self.number(other, number),
                None => return Err(cannot(other, "type not supported")),
            },
        }
        Ok(())
    }

    fn number(&mut self, value: &Value, number: f64) -> Result<(), String> {
        let text = match self.settings.invalid {
            _ if number.is_finite() => general(number, self.settings.precision),
            InvalidNumbers::Refused => return Err(cannot(value, "must not be NaN or Inf")),
            InvalidNumbers::Written if number.is_nan() => "nan".to_owned(),
            InvalidNumbers::Written => general(number, self.settings.precision),
            InvalidNumbers::Null => "null".to_owned(),
        };
        self.bytes.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn text(&mut self, text: &[u8]) {
        self.bytes.push(b'"');
        for letter in text {
            match letter {
                b'"' => self.bytes.extend_from_slice(b"\\\""),
                b'\\' => self.bytes.extend_from_slice(b"\\\\"),
                b'/' => self.bytes.extend_from_slice(b"\\/"),
                0x08 => self.bytes.extend_from_slice(b"\\b"),
                0x0c => self.bytes.extend_from_slice(b"\\f"),
                b'\n' => self.bytes.extend_from_slice(b"\\n"),
                b'\r' => self.bytes.extend_from_slice(b"\\r"),
                b'\t' => self.bytes.extend_from_slice(b"\\t"),
                0..=0x1f | 0x7f => {
                    self.out.clear();
                    let _ = write!(self.out, "\\u{letter:04x}");
                    self.bytes.extend_from_slice(self.out.as_bytes());
                }
                other => self.bytes.push(*other),
            }
        }
        self.bytes.push(b'"');
    }

    fn table(&mut self, value: &Value, table: &Table, depth: usize) -> Result<(), String> {
        if depth > self.settings.depth_max.min(DEPTH_MAX) {
            return Err(format!("Cannot serialise, excessive nesting ({depth})"));
        }
        self.natives.charge_table(self.lua).map_err(|it| it.to_string())?;
        match self.array_length(value, table)? {
            Some(length) => {
                self.bytes.push(b'[');
                for at in 1..=length {
                    if at > 1 {
                        self.bytes.push(b',');
                    }
                    let item = table.raw_get(at).map_err(|it| it.to_string())?;
                    self.value(&item, depth)?;
                }
                self.bytes.push(b']');
            }
            None => self.object(table, depth)?,
        }
        Ok(())
    }

    fn object(&mut self, table: &Table, depth: usize) -> Result<(), String> {
        self.bytes.push(b'{');
        let mut is_first = true;
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair.map_err(|it| it.to_string())?;
            if !std::mem::replace(&mut is_first, false) {
                self.bytes.push(b',');
            }
            match &key {
                Value::String(text) => self.text(&text.as_bytes()),
                other => match number(other) {
                    Some(number) => {
                        self.bytes.push(b'"');
                        self.number(other, number)?;
                        self.bytes.push(b'"');
                    }
                    None => return Err(cannot(other, "table key must be a number or string")),
                },
            }
            self.bytes.push(b':');
            self.value(&value, depth)?;
        }
        self.bytes.push(b'}');
        Ok(())
    }

    /// How long an array is; `None`: it is an object.
    fn array_length(&self, value: &Value, table: &Table) -> Result<Option<usize>, String> {
        let (mut longest, mut count) = (0.0_f64, 0.0);
        for pair in table.pairs::<Value, Value>() {
            let (key, _) = pair.map_err(|it| it.to_string())?;
            self.natives.charge_value(self.lua).map_err(|it| it.to_string())?;
            match number(&key) {
                Some(at) if at >= 1.0 && at.fract() == 0.0 && at < 2_147_483_648.0 => {
                    longest = longest.max(at);
                    count += 1.0;
                }
                _ => return Ok(None),
            }
        }
        let JsonSettings { sparse_converts, sparse_ratio, sparse_safe, .. } = self.settings;
        if sparse_ratio > 0.0 && longest > count * sparse_ratio && longest > sparse_safe {
            return match sparse_converts {
                true => Ok(None),
                false => Err(cannot(value, "excessively sparse array")),
            };
        }
        Ok((count > 0.0).then_some(longest as usize))
    }
}
