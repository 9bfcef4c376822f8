//! `bit`: whole numbers of 32 bits.

use mlua::{Lua, Table, Value};

/// The 32 lowest bits of a number.
fn bits(number: f64) -> i32 {
    let whole = number.round_ties_even();
    // Modulo 2^32, for any number.
    let wrapped = whole.rem_euclid(4_294_967_296.0);
    if wrapped.is_finite() { wrapped as u32 as i32 } else { 0 }
}

/// Adds the functions.
pub(super) fn register(lua: &Lua, native: &Table) -> mlua::Result<()> {
    let one = |_: &Lua, (name, value): (mlua::String, f64)| {
        let value = bits(value);
        Ok(f64::from(match &*name.as_bytes() {
            b"bnot" => !value,
            b"bswap" => value.swap_bytes(),
            _ => value,
        }))
    };
    native.raw_set("bit_one", lua.create_function(one)?)?;
    let two = |_: &Lua, (name, left, right): (mlua::String, f64, f64)| {
        let (left, right) = (bits(left), bits(right));
        let by = right as u32 & 31;
        Ok(f64::from(match &*name.as_bytes() {
            b"band" => left & right,
            b"bor" => left | right,
            b"bxor" => left ^ right,
            b"lshift" => left << by,
            b"rshift" => (left as u32 >> by) as i32,
            b"arshift" => left >> by,
            b"rol" => left.rotate_left(by),
            _ => left.rotate_right(by),
        }))
    };
    native.raw_set("bit_two", lua.create_function(two)?)?;
    let hexadecimal = |lua: &Lua, (value, digits): (f64, Option<f64>)| {
        let count = digits.map_or(8, bits);
        let length = count.unsigned_abs().min(8) as usize;
        let text = match count < 0 {
            true => format!("{:08X}", bits(value)),
            false => format!("{:08x}", bits(value)),
        };
        Ok(Value::String(lua.create_string(&text[8 - length..])?))
    };
    native.raw_set("bit_hexadecimal", lua.create_function(hexadecimal)?)
}

#[cfg(test)]
mod tests {
    use super::bits;

    #[test]
    fn numbers_are_taken_modulo_two_to_the_32nd() {
        for (number, expected) in [
            (0.0, 0),
            (-1.0, -1),
            (4_294_967_295.0, -1),
            (4_294_967_296.0, 0),
            (2_147_483_648.0, i32::MIN),
            (1.5, 2),
            (f64::NAN, 0),
            (f64::INFINITY, 0),
        ] {
            assert_eq!(bits(number), expected, "{number}");
        }
    }
}
