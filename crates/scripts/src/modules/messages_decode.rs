//! `cmsgpack.unpack` and its kin.

use std::rc::Rc;

use mlua::{Lua, String as LuaString, Table, Value};

use crate::natives::{Native, Natives, fail, fine};

/// Arrays and maps may be so deep within each other.
const DEPTH_MAX: usize = 500;

/// Adds it: of a string, from a position on, so many values, or all if that is 0. What it gives is
/// a table of the values, their number `n`, and where it goes on, `at`: -1 at the end.
pub(super) fn register(lua: &Lua, native: &Table, natives: &Rc<Natives>) -> mlua::Result<()> {
    let own = natives.clone();
    let unpack = move |lua: &Lua, (text, from, most): (LuaString, usize, usize)| -> Native {
        let text = text.as_bytes();
        own.charge_bytes(lua, text.len().saturating_sub(from))?;
        let rest = text.get(from..).unwrap_or(&[]);
        let mut unpacker = Unpacker { lua, natives: &own, rest };
        let (all, mut count) = (lua.create_table()?, 0);
        while !unpacker.rest.is_empty() && (most == 0 || count < most) {
            count += 1;
            match unpacker.value(0) {
                Ok(value) => all.raw_set(count, value)?,
                Err(UnpackError::Missing) => return fail(lua, "Missing bytes in input."),
                Err(UnpackError::Bad) => return fail(lua, "Bad data format in input."),
                Err(UnpackError::Lua(error)) => return Err(error),
            }
        }
        let at =
            if unpacker.rest.is_empty() { -1 } else { (text.len() - unpacker.rest.len()) as i64 };
        all.raw_set("n", count)?;
        all.raw_set("at", at)?;
        fine(Value::Table(all))
    };
    native.raw_set("message_unpack", lua.create_function(unpack)?)
}

/// Why bytes are no values.
enum UnpackError {
    Missing,
    Bad,
    Lua(mlua::Error),
}

impl From<mlua::Error> for UnpackError {
    fn from(error: mlua::Error) -> UnpackError {
        UnpackError::Lua(error)
    }
}

type Unpacked = Result<Value, UnpackError>;

/// Bytes that are being taken apart.
struct Unpacker<'a> {
    lua: &'a Lua,
    natives: &'a Natives,
    rest: &'a [u8],
}

impl<'a> Unpacker<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], UnpackError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(UnpackError::Missing)?;
        self.rest = rest;
        Ok(taken)
    }

    /// A whole number of so many bytes.
    fn whole(&mut self, bytes: usize) -> Result<u64, UnpackError> {
        Ok(self.take(bytes)?.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    /// A whole number of so many bytes, which may be less than zero.
    fn signed(&mut self, bytes: usize) -> Result<i64, UnpackError> {
        let unused = 64 - 8 * bytes as u32;
        Ok((self.whole(bytes)? << unused) as i64 >> unused)
    }

    fn text(&mut self, bytes: u64) -> Unpacked {
        let text = self.take(usize::try_from(bytes).map_err(|_| UnpackError::Missing)?)?;
        Ok(Value::String(self.lua.create_string(text)?))
    }

    fn value(&mut self, depth: usize) -> Unpacked {
        if depth > DEPTH_MAX {
            return Err(UnpackError::Bad);
        }
        self.natives.charge_value(self.lua)?;
        let number = |number: f64| Ok(Value::Number(number));
        match self.whole(1)? as u8 {
            first @ 0..=0x7f => number(f64::from(first)),
            first @ 0xe0..=0xff => number(f64::from(first as i8)),
            first @ 0x80..=0x8f => self.map(u64::from(first & 15), depth),
            first @ 0x90..=0x9f => self.array(u64::from(first & 15), depth),
            first @ 0xa0..=0xbf => self.text(u64::from(first & 31)),
            0xc0 => Ok(Value::Nil),
            0xc2 => Ok(Value::Boolean(false)),
            0xc3 => Ok(Value::Boolean(true)),
            0xca => {
                let bits = self.whole(4)? as u32;
                number(f64::from(f32::from_bits(bits)))
            }
            0xcb => number(f64::from_bits(self.whole(8)?)),
            first @ 0xcc..=0xcf => number(self.whole(1 << (first - 0xcc))? as f64),
            first @ 0xd0..=0xd3 => number(self.signed(1 << (first - 0xd0))? as f64),
            first @ (0xc4..=0xc6) => {
                let length = self.whole(1 << (first - 0xc4))?;
                self.text(length)
            }
            first @ (0xd9..=0xdb) => {
                let length = self.whole(1 << (first - 0xd9))?;
                self.text(length)
            }
            first @ (0xdc | 0xdd) => {
                let count = self.whole(2 << (first - 0xdc))?;
                self.array(count, depth)
            }
            first @ (0xde | 0xdf) => {
                let count = self.whole(2 << (first - 0xde))?;
                self.map(count, depth)
            }
            _ => Err(UnpackError::Bad),
        }
    }

    fn array(&mut self, count: u64, depth: usize) -> Unpacked {
        let table = self.lua.create_table()?;
        for at in 1..=count {
            table.raw_set(at, self.value(depth + 1)?)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, count: u64, depth: usize) -> Unpacked {
        let table = self.lua.create_table()?;
        for _ in 0..count {
            let (key, value) = (self.value(depth + 1)?, self.value(depth + 1)?);
            match &key {
                Value::Nil => return Err(UnpackError::Bad),
                Value::Number(number) if number.is_nan() => return Err(UnpackError::Bad),
                _ => table.raw_set(key, value)?,
            }
        }
        Ok(Value::Table(table))
    }
}
