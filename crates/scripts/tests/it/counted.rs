//! What functions in C and Rust do for a script counts as instructions.

use std::time::{Duration, Instant};

use muesli_scripts::{ScriptEnd, ScriptLimits};

use crate::harness::Harness;

/// What a script ends with that may run so many instructions.
fn ended(instructions: u64, code: &str) -> ScriptEnd {
    let mut harness = Harness::new();
    let time = Duration::from_secs(3600);
    harness.limits = ScriptLimits { instructions, time, ..ScriptLimits::default() };
    harness.run(code)
}

/// Each of these takes more than a million instructions, and runs few itself.
fn assert_counted(codes: &[&str]) {
    for code in codes {
        match ended(1_000_000, code) {
            ScriptEnd::Stopped(why) if why.contains("script-instructions-limit") => {}
            other => panic!("{code}: {other:?}"),
        }
    }
}

#[test]
fn the_instructions_of_coroutines_are_counted() {
    assert_counted(&[
        "local function f(n) if n == 0 then return end \
         for i = 1, 7 do coroutine.resume(coroutine.create(f), n - 1) end end f(6)",
        "local function f(n) if n == 0 then return end \
         for i = 1, 7 do coroutine.wrap(f)(n - 1) end end f(6)",
    ]);
}

#[test]
fn values_are_counted_that_are_encoded_decoded_or_answered() {
    let list = "local t = {} for i = 1, 1000 do t[i] = 1 end";
    for code in [
        "for i = 1, 2000 do cjson.encode(t) end",
        "for i = 1, 2000 do cmsgpack.pack(t) end",
        "local s = cjson.encode(t) for i = 1, 2000 do cjson.decode(s) end",
        "local s = cmsgpack.pack(t) for i = 1, 2000 do cmsgpack.unpack(s) end",
    ] {
        assert_counted(&[&format!("{list} {code}")]);
    }
    let code = format!("{list} local u = {{}} for i = 1, 200 do u[i] = t end return u");
    let end = ended(100_000, &code);
    assert!(matches!(end, ScriptEnd::Stopped(_)), "{end:?}");
}

#[test]
fn letters_of_a_set_in_a_pattern_are_counted() {
    let set = "local s, set = string.rep('a', 1000), '[' .. string.rep('b', 10000) .. ']'";
    for code in [
        "string.find(s, set)",
        "string.find(s, '%f' .. set)",
        "string.find(s, set .. '-c')",
        "string.match(s, '[^' .. string.rep('b', 10000) .. ']*c')",
        "string.gsub(s, set, '')",
    ] {
        assert_counted(&[&format!("{set} {code}")]);
    }
}

#[test]
fn functions_that_look_at_all_of_a_table_are_counted() {
    let list = "local t = {} for i = 1, 20000 do t[i] = i end";
    for code in [
        "table.sort(t) table.sort(t)",
        "for i = 1, 200 do table.insert(t, 1, i) end",
        "for i = 1, 200 do table.insert(t, '1', i) end",
        "for i = 1, 200 do table.remove(t, 1) end",
        "for i = 1, 200 do table.concat(t) end",
        "for i = 1, 200 do table.maxn(t) end",
        "for i = 1, 200 do table.foreachi(t, tostring) table.foreach(t, tostring) end",
    ] {
        assert_counted(&[&format!("{list} {code}")]);
    }
}

#[test]
fn functions_that_look_at_all_of_a_string_are_counted() {
    let long = "local s = string.rep('x', 1e5)";
    for code in [
        "string.lower(s)",
        "string.upper(s)",
        "string.reverse(s)",
        "string.rep(s, 1)",
        "string.sub(s, 2)",
        "string.format('%s', s)",
        "string.gsub('a', 'a', s)",
        "string.find(s, 'y', 1, true)",
        "table.concat({s, s})",
        "loadstring('--' .. s)",
        "redis.sha1hex(s)",
        "redis.call('list', s)",
        "struct.pack('s', s)",
        "struct.unpack('c100000', s)",
        "struct.size(string.rep('b', 10000))",
    ] {
        assert_counted(&[&format!("{long} for i = 1, 1000 do {code} end")]);
    }
    assert_counted(&["for i = 1, 25000 do redis.call('ping') end"]);
    // A little of a long string costs little.
    let code = "for i = 1, 20000 do local c = string.sub(s, i, i) end return 'fine'";
    let end = ended(1_000_000, &format!("{long} {code}"));
    assert!(matches!(end, ScriptEnd::Answered(_)), "{end:?}");
}

#[test]
fn others_go_on_between_instructions_that_take_long() {
    let mut harness = Harness::new();
    let code = "local s = string.rep('x', 8e6) for i = 1, 300 do local t = s .. i end";
    assert_eq!(harness.text(code), "nil");
    assert!(harness.pauses >= 3, "{}", harness.pauses);
}

#[test]
fn no_handler_of_errors_is_called_as_a_run_is_stopped() {
    let begun = Instant::now();
    let code = "xpcall(function() while true do end end, function() for i = 1, 4e9 do end end)";
    let end = ended(1_000_000, code);
    assert!(matches!(end, ScriptEnd::Stopped(_)), "{end:?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn garbage_is_gone_before_memory_ends() {
    let mut harness = Harness::new();
    harness.limits = ScriptLimits { memory_bytes: 8 << 20, ..ScriptLimits::default() };
    let code = "local kept = {} for i = 1, 5 do kept[i] = string.rep(i, 1e6) end \
                for i = 1, 3000 do local s = string.rep('x', 1e4) .. i end return 'fine'";
    assert_eq!(harness.text(code), "fine");
}
