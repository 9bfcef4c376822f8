//! What scripts cannot reach or change.

use crate::harness::Harness;

#[test]
fn nothing_that_scripts_share_is_changed() {
    let mut harness = Harness::new();
    for code in [
        "a = 1",
        "_G.a = 1",
        "redis.call = 1",
        "string.rep = 1",
        "redis = 1",
        "cjson.encode = 1",
        "bit.band = 1",
        "_G = {}",
        "rawset(_G, 'a', 1)",
        "rawset(redis, 'a', 1)",
        "table.insert(redis, 1)",
        "table.insert(_G, 1)",
        "setmetatable(_G, {})",
        "setmetatable(string, {})",
        "getmetatable(_G).__index = {}",
        "getmetatable('').__index = {}",
        "getmetatable('').__index.rep = 1",
        "getfenv(0).a = 1",
        "getfenv(pcall).a = 1",
        "getfenv(tostring).a = 1",
        "getfenv(2).a = 1",
        "local _, real = pairs(redis) real.call = 1",
        "local next_one, real = pairs(_G) real.a = 1",
        "KEYS = {}",
        "setfenv(0, {})",
        "setfenv(pcall, {})",
        "setfenv(redis.call, {})",
        "setfenv(2, {})",
        "newproxy(true)",
    ] {
        let text = harness.text(code);
        assert!(text.starts_with("ERR"), "{code}: {text}");
        assert_eq!(harness.text("return redis.call('echo', ('a'):rep(2))"), "aa", "{code}");
    }
    assert_eq!(harness.text("setfenv(1, {x = 1}) return x"), "1");
    assert_eq!(harness.text("return tostring(rawget(_G, 'x'))"), "nil");
    for _ in 0..2 {
        assert_eq!(harness.text("setfenv(1, {}) return 1"), "1");
    }
}

#[test]
fn what_reaches_out_is_not_there() {
    let mut harness = Harness::new();
    for name in ["os", "io", "require", "module", "package", "dofile", "loadfile", "print", "debug"]
    {
        let text = harness.text(&format!("return {name}"));
        let expected = format!("nonexistent global variable '{name}'");
        assert!(text.contains(&expected), "{text}");
    }
}

#[test]
fn no_code_is_loaded_that_is_compiled_already() {
    Harness::new().play(
        "return tostring(loadstring(string.dump(function() return 1 end))) -> nil
         local done; local f = load(function() if done then return nil end done = true \
         return string.dump(function() end) end); return tostring(f) -> nil
         return loadstring('return 1 + 1')() -> 2
         return loadstring('return redis.call(\"incr\")')() -> 7",
    );
}

#[test]
fn tables_that_scripts_share_can_be_looked_through() {
    Harness::new().play(
        "for name in pairs(redis) do if name == 'call' then return 'found' end end -> found
         return type(next(string)) -> string
         return type(rawget(redis, 'call')) -> function
         return tostring(getmetatable(redis)) -> nil
         return _VERSION -> Lua 5.1
         return tostring(_G == getfenv(0)) -> true
         return redis.REDIS_VERSION -> 7.0.15
         return redis.REDIS_VERSION_NUM -> 458767
         return redis.sha1hex('') -> da39a3ee5e6b4b0d3255bfef95601890afd80709",
    );
}
