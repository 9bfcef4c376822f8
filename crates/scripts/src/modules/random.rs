//! `math.random`: the sequence of C's `lrand48`, the same on every machine for the same seed.

use std::rc::Rc;

use mlua::{Lua, Table};

use crate::natives::Natives;

const BITS: u64 = (1 << 48) - 1;
/// As POSIX has them.
const FACTOR: u64 = 0x5_DEEC_E66D;
const SUMMAND: u64 = 0xB;
/// What the lowest bits are after a seed.
const SEED_LOW: u64 = 0x330E;

/// The state after a seed.
fn seeded(seed: u32) -> u64 {
    u64::from(seed) << 16 | SEED_LOW
}

/// The next state.
fn next(state: u64) -> u64 {
    state.wrapping_mul(FACTOR).wrapping_add(SUMMAND) & BITS
}

/// Adds the functions.
pub(super) fn register(lua: &Lua, native: &Table, natives: &Rc<Natives>) -> mlua::Result<()> {
    let own = natives.clone();
    let random = move |_: &Lua, ()| {
        own.random.set(next(own.random.get()));
        let number = own.random.get() >> 17;
        let most = u64::from(u32::MAX >> 1);
        Ok((number % most) as f64 / most as f64)
    };
    native.raw_set("random", lua.create_function(random)?)?;
    let own = natives.clone();
    let seed = move |_: &Lua, seed: f64| {
        own.random.set(seeded(seed as i64 as u32));
        Ok(())
    };
    native.raw_set("random_seed", lua.create_function(seed)?)
}
