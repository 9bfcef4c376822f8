//! What scripts answer, and what they are told.

use muesli_scripts::{ScriptEnd, ScriptTask};

use crate::harness::Harness;

#[test]
fn values_of_lua_become_replies() {
    Harness::new().play(
        "return 'hello' -> hello
         return 100.7 -> 100
         return -3.9 -> -3
         return true -> 1
         return false -> nil
         return nil -> nil
         return {ok='fine'} -> +fine
         return {err='ERR no'} -> -ERR no
         return {1,2,{3,'four'}} -> [1 2 [3 four]]
         return {1,nil,3} -> [1]
         return {double=1.5} -> ,1.5
         return {map={a=1}} -> {a=1}
         return {set={a=true}} -> ~[a]
         return {big_number='123'} -> (123
         return {verbatim_string={format='txt',string='a'}} -> =txt:a
         redis.setresp(3); return true -> #true
         return function() end -> nil
         return _G -> []
         return setmetatable({}, {__index=function() error('x') end}) -> []
         return redis.status_reply('FINE') -> +FINE
         return redis.error_reply('CODE text') -> -CODE text
         return redis.error_reply('-text') -> -ERR text
         return redis.error_reply('') -> -ERR
         return redis.error_reply(1) -> -ERR wrong number or type of arguments",
    );
}

#[test]
fn replies_become_values_of_lua() {
    Harness::new().play(
        "return type(redis.call('incr', 'x')) -> number
         return redis.call('ping') -> +PONG
         return redis.call('ping').ok -> PONG
         return tostring(redis.call('get', 'x')) -> false
         redis.setresp(3); return tostring(redis.call('get', 'x')) -> nil
         return redis.call('list', 'a', 'b', 3, 0.5) -> [a b 3 0.5]
         return redis.call('map') -> [a 1]
         redis.setresp(3); return redis.call('map').map.a -> 1
         redis.setresp(3); return redis.call('map') -> {a=1}
         redis.setresp(3); return tostring(redis.call('set').set.a) -> true
         return redis.call('double') -> 1.5
         redis.setresp(3); return redis.call('double').double * 2 -> 3
         redis.setresp(3); return redis.call('yes') -> #true
         return redis.call('version') -> 2
         return redis.call('list', 2^53, 0.1) -> [9007199254740992 0.10000000000000001]",
    );
}

#[test]
fn errors_have_their_place_in_the_script() {
    let mut harness = Harness::new();
    let sha = |code: &str| muesli_scripts::sha1_hex(code.as_bytes());
    for (code, expected) in [
        ("error('no')", "ERR user_script:1: no"),
        ("error('no', 0)", "ERR no"),
        ("error({err='MINE no'})", "MINE no"),
        (
            "return a.b",
            "ERR user_script:1: Script attempted to access nonexistent global variable 'a'",
        ),
        ("a = 1", "ERR user_script:1: Attempt to modify a readonly table"),
        ("redis.call('fail')", "WRONGTYPE it is of another type"),
        ("redis.call()", "ERR Please specify at least one argument for this redis lib call"),
        ("redis.call({})", "ERR Lua redis lib command arguments must be strings or integers"),
        (
            "redis.call('echo', true)",
            "ERR Lua redis lib command arguments must be strings or integers",
        ),
        ("redis.sha1hex()", "ERR wrong number of arguments"),
        ("redis.setresp(4)", "ERR RESP version must be 2 or 3."),
        ("redis.log(1)", "ERR redis.log() requires two arguments or more."),
        (
            "redis.set_repl(9)",
            "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
        ),
        (
            "string.rep()",
            "ERR user_script:1: bad argument #1 to 'rep' (string expected, got no value)",
        ),
        (
            "cjson.encode(print)",
            "ERR user_script:1: Script attempted to access nonexistent global variable 'print'",
        ),
        ("cjson.encode(type)", "ERR user_script:1: Cannot serialise function: type not supported"),
    ] {
        let expected = format!("{expected} script: {}, on @user_script:1.", sha(code));
        assert_eq!(harness.text(code), expected, "{code}");
    }
    let text = harness.text("local a = 1\nreturn b");
    assert!(text.ends_with("on @user_script:2."), "{text}");
    let text = harness.text("return b b");
    assert!(
        text.starts_with("ERR Error compiling script (new function): user_script:1:"),
        "{text}"
    );
    let end = harness.finish(ScriptTask::Compile { code: b"return 1".as_slice().into() });
    assert_eq!(end, ScriptEnd::Compiled);
}

#[test]
fn errors_are_caught_as_text() {
    Harness::new().play(
        "return redis.pcall('fail') -> -WRONGTYPE it is of another type
         return {pcall(redis.call, 'fail')} -> [nil WRONGTYPE it is of another type]
         return {pcall(error, 'x')} -> [nil x]
         return {pcall(function() return redis.call('incr') end)} -> [1 7]
         return select(2, pcall(function() local x = nil; return x.y end)) -> \
         user_script:1: attempt to index local 'x' (a nil value)
         return {xpcall(function() error('x', 0) end, function(e) return e .. '!' end)}
         -> [nil x!]",
    );
}

#[test]
fn keys_and_arguments_are_there_for_one_run() {
    let mut harness = Harness::new();
    let code = "return {KEYS[1], KEYS[2], ARGV[1], #KEYS, #ARGV}";
    assert_eq!(
        format!("{:?}", harness.run_with(code, &["a", "b"], &["c"])),
        format!("{:?}", harness.run("return {'a', 'b', 'c', 2, 1}")),
    );
    assert_eq!(harness.text("return #KEYS"), "0");
}

#[test]
fn commands_are_called_within_anything() {
    let mut harness = Harness::new();
    harness.play(
        "local co = coroutine.wrap(function() coroutine.yield(redis.call('incr')) end)
         return co() -> 7
         local t = {3,1,2}; table.sort(t, function(a, b) redis.call('incr'); return a < b end)
         return t -> [1 2 3]
         return (string.gsub('ab', '%w', function(c) return redis.call('echo', c .. c) end)) -> aabb
         local t = setmetatable({}, {__index = function(_, k) return redis.call('echo', k) end})
         return t.x -> x
         for c in string.gmatch('a b', '%w') do redis.call('echo', c) end -> nil",
    );
    assert!(harness.called.iter().any(|it| it == "echo b"));
}

#[test]
fn random_numbers_come_from_the_seed() {
    let mut harness = Harness::new();
    let code = "math.randomseed(10); return tostring(math.random())";
    assert_eq!(harness.text(code), harness.text(code));
    assert_eq!(harness.text("return math.random(5, 5)"), "5");
    let text = harness.text("for i = 1, 100 do assert(math.random(3) <= 3) end return 'fine'");
    assert_eq!(text, "fine");
    let text = harness.text("return math.random(0)");
    assert!(text.contains("bad argument #1 to 'random' (interval is empty)"), "{text}");
}
