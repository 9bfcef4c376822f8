//! `cmsgpack.pack`.

use std::rc::Rc;

use mlua::{Lua, Table, Value};

use crate::convert::number;
use crate::natives::{Native, Natives, fail, fine};

/// Tables deeper than this within each other are nothing, as in Redis.
const DEPTH_MAX: usize = 16;

/// Adds it.
pub(super) fn register(lua: &Lua, native: &Table, natives: &Rc<Natives>) -> mlua::Result<()> {
    let own = natives.clone();
    let pack = move |lua: &Lua, (values, count): (Table, usize)| -> Native {
        let (natives, bytes_max) = (&*own, own.memory_bytes());
        let mut packer = Packer { lua, natives, out: Vec::new(), bytes_max };
        for at in 1..=count {
            match packer.value(&values.raw_get(at)?, 0) {
                Ok(()) => {}
                Err(_) if own.budget.is_stopped() => return Err(own.stopped()),
                Err(TooMuch) => return fail(lua, "not enough memory"),
            }
        }
        own.charge_bytes(lua, packer.out.len())?;
        fine(Value::String(lua.create_string(&packer.out)?))
    };
    native.raw_set("message_pack", lua.create_function(pack)?)
}

/// What is put together.
struct Packer<'a> {
    lua: &'a Lua,
    natives: &'a Natives,
    out: Vec<u8>,
    bytes_max: usize,
}

/// It would be too long, Lua has no memory left, or the run is to stop.
struct TooMuch;

impl Packer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), TooMuch> {
        if self.out.len() > self.bytes_max {
            return Err(TooMuch);
        }
        self.natives.charge_value(self.lua).map_err(|_| TooMuch)?;
        match value {
            Value::String(text) => {
                self.head(text.as_bytes().len(), (0xa0, 32), Some(0xd9), 0xda);
                self.out.extend_from_slice(&text.as_bytes());
            }
            Value::Boolean(yes) => self.out.push(if *yes { 0xc3 } else { 0xc2 }),
            Value::Table(table) if depth < DEPTH_MAX => return self.table(table, depth),
            other => match number(other) {
                Some(number) => self.number(number),
                None => self.out.push(0xc0),
            },
        }
        Ok(())
    }

    /// What comes before so many bytes or values: the first byte alone, if these are few, or it and
    /// their number.
    fn head(&mut self, count: usize, few: (u8, usize), short: Option<u8>, long: u8) {
        match (count, short) {
            (count, _) if count < few.1 => self.out.push(few.0 | count as u8),
            (0..=0xff, Some(first)) => self.out.extend([first, count as u8]),
            (0..=0xffff, _) => {
                self.out.push(long);
                self.out.extend((count as u16).to_be_bytes());
            }
            _ => {
                self.out.push(long + 1);
                self.out.extend((count as u32).to_be_bytes());
            }
        }
    }

    fn number(&mut self, number: f64) {
        if number.fract() != 0.0 || !(-9.3e18..9.3e18).contains(&number) {
            let short = number as f32;
            if f64::from(short) == number {
                self.out.push(0xca);
                self.out.extend(short.to_be_bytes());
            } else {
                self.out.push(0xcb);
                self.out.extend(number.to_be_bytes());
            }
            return;
        }
        match number as i64 {
            whole @ 0..=0x7f => self.out.push(whole as u8),
            whole @ 0x80..=0xff => self.out.extend([0xcc, whole as u8]),
            whole @ 0x100..=0xffff => {
                self.out.push(0xcd);
                self.out.extend((whole as u16).to_be_bytes());
            }
            whole @ 0x1_0000..=0xffff_ffff => {
                self.out.push(0xce);
                self.out.extend((whole as u32).to_be_bytes());
            }
            whole @ 0x1_0000_0000.. => {
                self.out.push(0xcf);
                self.out.extend(whole.to_be_bytes());
            }
            whole @ -32..=-1 => self.out.push(whole as i8 as u8),
            whole @ -128..=-33 => self.out.extend([0xd0, whole as i8 as u8]),
            whole @ -32768..=-129 => {
                self.out.push(0xd1);
                self.out.extend((whole as i16).to_be_bytes());
            }
            whole @ -0x8000_0000..=-32769 => {
                self.out.push(0xd2);
                self.out.extend((whole as i32).to_be_bytes());
            }
            whole => {
                self.out.push(0xd3);
                self.out.extend(whole.to_be_bytes());
            }
        }
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<(), TooMuch> {
        self.natives.charge_table(self.lua).map_err(|_| TooMuch)?;
        let (mut count, mut longest, mut is_array) = (0_usize, 0.0_f64, true);
        for pair in table.pairs::<Value, Value>() {
            let (key, _) = pair.map_err(|_| TooMuch)?;
            self.natives.charge_value(self.lua).map_err(|_| TooMuch)?;
            count += 1;
            match number(&key) {
                Some(at) if at > 0.0 && at.fract() == 0.0 => longest = longest.max(at),
                _ => is_array = false,
            }
        }
        if is_array && longest == count as f64 {
            self.head(count, (0x90, 16), None, 0xdc);
            for at in 1..=count {
                let item = table.raw_get(at).map_err(|_| TooMuch)?;
                self.value(&item, depth + 1)?;
            }
            return Ok(());
        }
        self.head(count, (0x80, 16), None, 0xde);
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair.map_err(|_| TooMuch)?;
            self.value(&key, depth + 1)?;
            self.value(&value, depth + 1)?;
        }
        Ok(())
    }
}
