//! `struct`: values as bytes in a given layout.

use std::rc::Rc;

use mlua::{Lua, String as LuaString, Table, Value};

use crate::convert::{argument, number};
use crate::natives::{Native, Natives, fail, fine};

/// Longest whole number, in bytes.
const INTEGER_BYTES_MAX: usize = 32;
/// The alignment of `!` alone, as on the machines that Redis runs on.
const ALIGNMENT: usize = 8;
/// A text that is a number has so many bytes, at most.
const NUMBER_BYTES_MAX: usize = 256;

/// Adds the functions.
pub(super) fn register(lua: &Lua, native: &Table, natives: &Rc<Natives>) -> mlua::Result<()> {
    let own = natives.clone();
    let pack = move |lua: &Lua, (format, values): (LuaString, Table)| -> Native {
        match pack(lua, &own, &format.as_bytes(), &values)? {
            Ok(bytes) => fine(Value::String(lua.create_string(bytes)?)),
            Err(why) => fail(lua, &why),
        }
    };
    native.raw_set("struct_pack", lua.create_function(pack)?)?;
    let own = natives.clone();
    let unpack = move |lua: &Lua, (format, text, from): (LuaString, LuaString, usize)| -> Native {
        match unpack(lua, &own, &format.as_bytes(), &text.as_bytes(), from)? {
            Ok(found) => fine(Value::Table(found)),
            Err(why) => fail(lua, &why),
        }
    };
    native.raw_set("struct_unpack", lua.create_function(unpack)?)?;
    let own = natives.clone();
    let size = move |lua: &Lua, format: LuaString| -> Native {
        own.charge(lua, format.as_bytes().len() as u64)?;
        match size(&format.as_bytes()) {
            Ok(size) => fine(Value::Number(size as f64)),
            Err(why) => fail(lua, &why),
        }
    };
    native.raw_set("struct_size", lua.create_function(size)?)
}

/// A part of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LayoutField {
    Signed(usize),
    Unsigned(usize),
    Float,
    Double,
    /// So many bytes; 0: as many as the value before says.
    Bytes(usize),
    /// Bytes up to a zero.
    Text,
    Padding,
}

impl LayoutField {
    fn size(self) -> usize {
        match self {
            LayoutField::Signed(size) | LayoutField::Unsigned(size) | LayoutField::Bytes(size) => {
                size
            }
            LayoutField::Float => 4,
            LayoutField::Double => 8,
            LayoutField::Text => 0,
            LayoutField::Padding => 1,
        }
    }
}

/// A format that is being read.
struct LayoutReader<'a> {
    rest: &'a [u8],
    is_little: bool,
    alignment: usize,
}

impl<'a> LayoutReader<'a> {
    fn new(text: &'a [u8]) -> LayoutReader<'a> {
        LayoutReader { rest: text, is_little: cfg!(target_endian = "little"), alignment: 1 }
    }

    /// The number that comes next in the format, or this one.
    fn count(&mut self, otherwise: usize) -> Result<usize, String> {
        let digits = self.rest.iter().take_while(|it| it.is_ascii_digit()).count();
        if digits == 0 {
            return Ok(otherwise);
        }
        let text = String::from_utf8_lossy(&self.rest[..digits]).into_owned();
        self.rest = &self.rest[digits..];
        text.parse::<u32>()
            .ok()
            .filter(|it| *it <= i32::MAX as u32)
            .map(|it| it as usize)
            .ok_or_else(|| "integral size overflow".to_owned())
    }

    fn integer_size(&mut self) -> Result<usize, String> {
        let size = self.count(4)?;
        if size > INTEGER_BYTES_MAX || size == 0 {
            return Err(format!(
                "integral size {size} is larger than limit of {INTEGER_BYTES_MAX}"
            ));
        }
        Ok(size)
    }

    /// The next field, and so many bytes before it that it is where it is to be.
    fn next(&mut self, total: usize) -> Result<Option<(LayoutField, usize)>, String> {
        loop {
            let Some((first, rest)) = self.rest.split_first() else { return Ok(None) };
            self.rest = rest;
            let field = match first {
                b' ' => continue,
                b'<' => {
                    self.is_little = true;
                    continue;
                }
                b'>' => {
                    self.is_little = false;
                    continue;
                }
                b'!' => {
                    self.alignment = self.count(ALIGNMENT)?;
                    if !self.alignment.is_power_of_two() {
                        return Err(format!("alignment {} is not a power of 2", self.alignment));
                    }
                    continue;
                }
                b'b' => LayoutField::Signed(1),
                b'B' => LayoutField::Unsigned(1),
                b'h' => LayoutField::Signed(2),
                b'H' => LayoutField::Unsigned(2),
                b'l' => LayoutField::Signed(8),
                b'L' | b'T' => LayoutField::Unsigned(8),
                b'i' => LayoutField::Signed(self.integer_size()?),
                b'I' => LayoutField::Unsigned(self.integer_size()?),
                b'f' => LayoutField::Float,
                b'd' | b'n' => LayoutField::Double,
                b'x' => LayoutField::Padding,
                b'c' => LayoutField::Bytes(self.count(1)?),
                b's' => LayoutField::Text,
                other => {
                    return Err(format!("invalid format option '{}'", char::from(*other)));
                }
            };
            let aligned = match field {
                LayoutField::Bytes(_) | LayoutField::Text | LayoutField::Padding => 1,
                _ => field.size().min(self.alignment).max(1),
            };
            let aligned = if aligned.is_power_of_two() { aligned } else { 1 };
            return Ok(Some((field, total.next_multiple_of(aligned) - total)));
        }
    }

    /// A whole number as so many bytes.
    fn integer_bytes(&self, value: i64, size: usize) -> Vec<u8> {
        let fill = if value < 0 { 0xff } else { 0 };
        let mut bytes: Vec<u8> =
            value.to_le_bytes().into_iter().chain(std::iter::repeat(fill)).take(size).collect();
        if !self.is_little {
            bytes.reverse();
        }
        bytes
    }

    /// The bytes in the order of this machine's numbers, if they are not.
    fn ordered<const N: usize>(&self, mut bytes: [u8; N]) -> [u8; N] {
        if !self.is_little {
            bytes.reverse();
        }
        bytes
    }
}

fn pack(
    lua: &Lua,
    natives: &Natives,
    text: &[u8],
    values: &Table,
) -> mlua::Result<Result<Vec<u8>, String>> {
    let bytes_max = natives.memory_bytes();
    let (mut format, mut out, mut at) = (LayoutReader::new(text), Vec::new(), 0);
    loop {
        let (field, gap) = match format.next(out.len()) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(Ok(out)),
            Err(why) => return Ok(Err(why)),
        };
        natives.charge_value(lua)?;
        let before = out.len();
        out.resize(before + gap, 0);
        if field == LayoutField::Padding {
            out.push(0);
            continue;
        }
        at += 1;
        let value: Value = values.raw_get(at)?;
        let number = match field {
            LayoutField::Bytes(_) | LayoutField::Text => None,
            _ => packed_number(&value),
        };
        let wrong = |kind: &str| {
            let got = if value.is_nil() { "no value" } else { value.type_name() };
            let (at, name) = (at + 1, "pack");
            format!("bad argument #{at} to '{name}' ({kind} expected, got {got})")
        };
        match field {
            LayoutField::Signed(size) | LayoutField::Unsigned(size) => match number {
                Some(number) => out.extend(format.integer_bytes(whole(number), size)),
                None => return Ok(Err(wrong("number"))),
            },
            LayoutField::Float => match number {
                Some(number) => out.extend(format.ordered((number as f32).to_le_bytes())),
                None => return Ok(Err(wrong("number"))),
            },
            LayoutField::Double => match number {
                Some(number) => out.extend(format.ordered(number.to_le_bytes())),
                None => return Ok(Err(wrong("number"))),
            },
            LayoutField::Bytes(_) | LayoutField::Text => {
                let Some(packed) = pack_text(&mut out, &value, field.size()) else {
                    return Ok(Err(wrong("string")));
                };
                if !packed {
                    let at = at + 1;
                    return Ok(Err(format!("bad argument #{at} to 'pack' (string too short)")));
                }
                if field == LayoutField::Text {
                    out.push(0);
                }
            }
            LayoutField::Padding => {}
        }
        if out.len() > bytes_max {
            return Ok(Err("not enough memory".to_owned()));
        }
        natives.charge_bytes(lua, out.len() - before)?;
    }
}

/// The number that a value is, or that its text says.
fn packed_number(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) if text.as_bytes().len() <= NUMBER_BYTES_MAX => {
            text.to_str().ok().and_then(|it| it.trim().parse().ok())
        }
        other => number(other),
    }
}

/// Adds so many bytes of a string, or all if that is 0; whether it has so many. `None`: it is none.
fn pack_text(out: &mut Vec<u8>, value: &Value, size: usize) -> Option<bool> {
    let add = |out: &mut Vec<u8>, bytes: &[u8]| {
        let size = if size == 0 { bytes.len() } else { size };
        let found = bytes.get(..size).map(|it| out.extend_from_slice(it));
        Some(found.is_some())
    };
    match value {
        Value::String(text) => add(out, &text.as_bytes()),
        other => add(out, &argument(other)?),
    }
}

/// A number as C makes a whole one of it.
fn whole(number: f64) -> i64 {
    if number < 0.0 { number as i64 } else { number as u64 as i64 }
}

/// A table of the values, their number `n`, and where it goes on, `at`.
fn unpack(
    lua: &Lua,
    natives: &Natives,
    text: &[u8],
    data: &[u8],
    from: usize,
) -> mlua::Result<Result<Table, String>> {
    const SHORT: &str = "bad argument #2 to 'unpack' (data string too short)";
    let (mut format, mut at, mut count) = (LayoutReader::new(text), from, 0);
    let found = lua.create_table()?;
    loop {
        let (field, gap) = match format.next(at) {
            Ok(Some(found)) => found,
            Ok(None) => {
                found.raw_set("n", count)?;
                found.raw_set("at", at + 1)?;
                return Ok(Ok(found));
            }
            Err(why) => return Ok(Err(why)),
        };
        natives.charge_value(lua)?;
        at += gap;
        let mut size = field.size();
        if field == LayoutField::Bytes(0) {
            let before = if count > 0 { number(&found.raw_get(count)?) } else { None };
            let Some(before) = before.filter(|it| *it >= 0.0) else {
                return Ok(Err("format 'c0' needs a previous size".to_owned()));
            };
            size = before as usize;
            count -= 1;
        }
        let rest = data.get(at..).unwrap_or(&[]);
        if field == LayoutField::Text {
            let Some(end) = rest.iter().position(|it| *it == 0) else {
                return Ok(Err("unfinished string in data".to_owned()));
            };
            size = end;
        }
        let Some(bytes) = rest.get(..size).filter(|_| at <= data.len()) else {
            return Ok(Err(SHORT.to_owned()));
        };
        natives.charge_bytes(lua, size)?;
        at += size + usize::from(field == LayoutField::Text);
        if field == LayoutField::Padding {
            continue;
        }
        count += 1;
        let value = match field {
            LayoutField::Bytes(_) | LayoutField::Text => Value::String(lua.create_string(bytes)?),
            numeric => Value::Number(format.number(numeric, bytes)),
        };
        found.raw_set(count, value)?;
    }
}

impl LayoutReader<'_> {
    /// The number that bytes are.
    fn number(&self, field: LayoutField, bytes: &[u8]) -> f64 {
        let float = bytes.try_into().map(|it| f64::from(f32::from_le_bytes(self.ordered(it))));
        let double = bytes.try_into().map(|it| f64::from_le_bytes(self.ordered(it)));
        let ordered: Vec<u8> = match self.is_little {
            true => bytes.to_vec(),
            false => bytes.iter().rev().copied().collect(),
        };
        let low =
            ordered.iter().take(8).rev().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
        let unused = 64 - 8 * ordered.len().min(8) as u32;
        match field {
            LayoutField::Float => float.unwrap_or(0.0),
            LayoutField::Double => double.unwrap_or(0.0),
            LayoutField::Signed(_) => ((low << unused) as i64 >> unused) as f64,
            _ => low as f64,
        }
    }
}

fn size(text: &[u8]) -> Result<usize, String> {
    let (mut format, mut total) = (LayoutReader::new(text), 0_usize);
    while let Some((field, gap)) = format.next(total)? {
        match field {
            LayoutField::Text => {
                return Err("bad argument #1 to 'size' (option 's' has no fixed size)".to_owned());
            }
            LayoutField::Bytes(0) => {
                return Err("bad argument #1 to 'size' (option 'c0' has no fixed size)".to_owned());
            }
            _ => {}
        }
        total = total.checked_add(gap + field.size()).ok_or("integral size overflow")?;
        if total > i32::MAX as usize {
            return Err("integral size overflow".to_owned());
        }
    }
    Ok(total)
}
