//! The functions of patterns that the sandbox is made of.

use std::rc::Rc;

use mlua::{Lua, String as LuaString, Table, Value};

use super::matcher::{Capture, Matcher, PatternError};
use crate::natives::{Native, Natives, fail, fine};

/// Adds them.
pub(crate) fn register(lua: &Lua, native: &Table, natives: &Rc<Natives>) -> mlua::Result<()> {
    let own = natives.clone();
    let search = move |lua: &Lua, (subject, pattern, from, anchored): Search| {
        search(lua, &own, &subject, &pattern, (from, anchored))
    };
    native.raw_set("search", lua.create_function(search)?)?;
    let own = natives.clone();
    let plain = move |lua: &Lua, (subject, wanted, from): (LuaString, LuaString, usize)| {
        let (subject, wanted) = (subject.as_bytes(), wanted.as_bytes());
        let rest = &subject[from.min(subject.len())..];
        let found = memchr::memmem::find(rest, &wanted);
        own.charge_bytes(lua, wanted.len() + found.unwrap_or(rest.len()))?;
        Ok(found.map(|it| it + from + 1))
    };
    native.raw_set("find_plain", lua.create_function(plain)?)?;
    let own = natives.clone();
    let replace = move |lua: &Lua, asked: Replace| replace(lua, &own, &asked);
    native.raw_set("replace", lua.create_function(replace)?)?;
    let own = natives.clone();
    let repeat = move |lua: &Lua, (text, count): (LuaString, f64)| {
        let text = text.as_bytes();
        let count = if count >= 1.0 { count as usize } else { 0 };
        match text.len().checked_mul(count) {
            Some(bytes) if bytes <= own.memory_bytes() => {
                own.charge_bytes(lua, bytes)?;
                fine(Value::String(lua.create_string(text.repeat(count))?))
            }
            _ => fail(lua, "not enough memory"),
        }
    };
    native.raw_set("repeat_text", lua.create_function(repeat)?)
}

/// So many bytes that are copied count as a step.
const BYTES_A_STEP: usize = 16;

/// A string, a pattern, from where on it is looked for, and whether it matches only there.
type Search = (LuaString, LuaString, usize, bool);

/// A table of the first match: where it begins and ends, how many captures there are, and these.
fn search(
    lua: &Lua,
    natives: &Natives,
    subject: &LuaString,
    pattern: &LuaString,
    (from, anchored): (usize, bool),
) -> Native {
    let (subject, pattern) = (subject.as_bytes(), pattern.as_bytes());
    let charge = |steps| natives.charge(lua, steps).is_ok();
    let mut matcher = Matcher::new(&subject, &pattern, &charge);
    let (begin, end) = match matcher.search(from.min(subject.len()), anchored) {
        Ok(Some(found)) => found,
        Ok(None) => return fine(Value::Nil),
        Err(error) => return refused(lua, natives, &error),
    };
    let found = lua.create_table()?;
    found.raw_set("from", begin + 1)?;
    found.raw_set("to", end)?;
    found.raw_set("n", matcher.captures.len())?;
    for (at, capture) in matcher.captures.iter().enumerate() {
        match *capture {
            Capture::Position(here) => found.raw_set(at + 1, here + 1)?,
            Capture::Between(begin, end) => {
                found.raw_set(at + 1, lua.create_string(&subject[begin..end])?)?;
            }
            Capture::Open(_) => return fail(lua, "unfinished capture"),
        }
    }
    fine(Value::Table(found))
}

fn refused(lua: &Lua, natives: &Natives, error: &PatternError) -> Native {
    match error {
        PatternError::Malformed(why) => fail(lua, why),
        PatternError::Stopped => Err(natives.stopped()),
    }
}

/// A string, a pattern, what is to be in the place of its matches, and of how many of these.
type Replace = (LuaString, LuaString, LuaString, f64);

/// A table of the string with its matches replaced by another one, and of how many there were.
fn replace(lua: &Lua, natives: &Natives, (subject, pattern, by, most): &Replace) -> Native {
    let (subject, pattern, by) = (subject.as_bytes(), pattern.as_bytes(), by.as_bytes());
    let (anchored, pattern) = match &pattern[..] {
        [b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let charge = |steps| natives.charge(lua, steps).is_ok();
    let mut matcher = Matcher::new(&subject, pattern, &charge);
    let (mut out, mut at, mut count) = (Vec::new(), 0, 0_u64);
    while (count as f64) < *most {
        let (begin, end) = match matcher.search(at, anchored) {
            Ok(Some(found)) => found,
            Ok(None) => break,
            Err(error) => return refused(lua, natives, &error),
        };
        count += 1;
        let before = out.len();
        out.extend_from_slice(&subject[at..begin]);
        let captures = &matcher.captures;
        let bytes_max = natives.memory_bytes();
        if let Err(why) = expand((&mut out, bytes_max), &by, &subject, captures, (begin, end)) {
            return fail(lua, why);
        }
        if let Err(error) = matcher.step((by.len() + out.len() - before) / BYTES_A_STEP) {
            return refused(lua, natives, &error);
        }
        at = end;
        if end == begin {
            let Some(letter) = subject.get(end) else { break };
            out.push(*letter);
            at += 1;
        }
        if anchored || at > subject.len() {
            break;
        }
    }
    out.extend_from_slice(&subject[at.min(subject.len())..]);
    let found = lua.create_table()?;
    found.raw_set(1, lua.create_string(&out)?)?;
    found.raw_set(2, count)?;
    fine(Value::Table(found))
}

/// Adds what is to be in the place of a match, in which `%1` is its first capture, up to so many
/// bytes of all.
fn expand(
    (out, bytes_max): (&mut Vec<u8>, usize),
    by: &[u8],
    subject: &[u8],
    captures: &[Capture],
    (begin, end): (usize, usize),
) -> Result<(), &'static str> {
    let mut letters = by.iter();
    while let Some(letter) = letters.next() {
        if out.len() > bytes_max {
            return Err("not enough memory");
        }
        if *letter != b'%' {
            out.push(*letter);
            continue;
        }
        match letters.next() {
            Some(b'0') => out.extend_from_slice(&subject[begin..end]),
            Some(digit @ b'1'..=b'9') => match captures.get(usize::from(digit - b'1')) {
                Some(Capture::Between(begin, end)) => out.extend_from_slice(&subject[*begin..*end]),
                Some(Capture::Position(at)) => out.extend((at + 1).to_string().into_bytes()),
                Some(Capture::Open(_)) => return Err("unfinished capture"),
                None if *digit == b'1' => out.extend_from_slice(&subject[begin..end]),
                None => return Err("invalid capture index"),
            },
            Some(other) => out.push(*other),
            None => out.push(0), // As Lua, whose strings end with a zero.
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_the_place_of_a_match_has_a_bound() {
        let (by, subject) = (b"%0".repeat(100), [b'x'; 100]);
        let mut out = Vec::new();
        let expanded = expand((&mut out, 1000), &by, &subject, &[], (0, 100));
        assert_eq!(expanded, Err("not enough memory"));
        assert!(out.len() <= 1100, "{}", out.len());
    }
}
