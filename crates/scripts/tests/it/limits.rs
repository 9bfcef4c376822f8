//! No script goes on for ever, takes all memory, or ends the process.

use std::time::Duration;

use muesli_scripts::{Interpreter, ScriptEnd, ScriptJob, ScriptLimits, ScriptStep, ScriptTask};

use crate::harness::Harness;

fn limited(limits: ScriptLimits, code: &str) -> String {
    let mut harness = Harness::new();
    harness.limits = limits;
    match harness.run(code) {
        ScriptEnd::Stopped(why) => {
            assert!(!harness.interpreter.is_reusable());
            why
        }
        other => panic!("{code}: {other:?}"),
    }
}

#[test]
fn a_script_stops_at_its_instructions_whatever_it_catches() {
    let time = Duration::from_secs(3600);
    let limits = ScriptLimits { instructions: 1_000_000, time, ..ScriptLimits::default() };
    for code in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "local function f() return pcall(f) end while true do f() end",
        "while true do xpcall(function() while true do end end, function() end) end",
        "local co = coroutine.wrap(function() while true do end end) while true do pcall(co) end",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        "while true do redis.call('ping') end",
        "while true do redis.pcall('fail') end",
        "while true do collectgarbage() end",
        "local s = string.rep('[', 1e5) while true do pcall(cjson.decode, s) end",
        "string.find(string.rep('a', 10000), string.rep('.-', 12) .. 'b')",
        "string.gsub(string.rep('a', 10000), string.rep('.-', 12) .. 'b', '')",
        "for i in string.gmatch(string.rep('a', 10000), string.rep('.-', 12) .. 'b') do end",
    ] {
        let text = limited(limits, code);
        assert!(text.contains("script-instructions-limit"), "{code}: {text}");
    }
}

#[test]
fn a_script_stops_at_its_time_and_lets_others_go_on_before() {
    let limits = ScriptLimits { time: Duration::from_millis(500), ..ScriptLimits::default() };
    let mut harness = Harness::new();
    harness.limits = limits;
    for code in ["while true do end", "while true do redis.call('ping') end"] {
        harness.interpreter = Interpreter::new().unwrap();
        harness.pauses = 0;
        let ScriptEnd::Stopped(why) = harness.run(code) else { panic!() };
        assert!(why.contains("script-time-limit"), "{why}");
        assert!(harness.pauses > 0, "{}", harness.pauses);
    }
}

#[test]
fn memory_has_a_bound_and_a_script_may_go_on_without_it() {
    let limits = ScriptLimits { memory_bytes: 8 << 20, ..ScriptLimits::default() };
    for code in [
        "local t = {} for i = 1, 1e9 do t[i] = {} end",
        "local s = 'x' while true do s = s .. s end",
        "return string.rep('x', 1e9)",
        "return string.rep('x', 1e300)",
        "return string.rep(string.rep('x', 1e6), 1e6)",
        "return string.gsub(string.rep('x', 1e6), 'x', string.rep('y', 1e6))",
        "local t = {} for i = 1, 30 do t = {t, t} end return cjson.encode(t)",
        "local t = {'x'} for i = 1, 15 do t = {t, t, t, t, t, t, t, t} end return cmsgpack.pack(t)",
        "return struct.pack('c99999999', 'x')",
        "return table.concat({string.rep('x', 5e6), string.rep('x', 5e6)})",
        "local t = {} for i = 1, 7000 do t[i] = string.rep(i, 1000) end \
         return redis.call('list', unpack(t))",
    ] {
        let mut harness = Harness::new();
        harness.limits = limits;
        let text = harness.text(code);
        assert!(text.starts_with("ERR") || text.starts_with("LIMIT"), "{code}: {text:.200}");
    }
    let mut harness = Harness::new();
    harness.limits = limits;
    let code = "local fine, why = pcall(string.rep, 'x', 1e8) return why";
    assert_eq!(harness.text(code), "not enough memory");
    let code =
        "local s = string.rep('x', 1e6) return redis.call('list', s, s, s, s, s, s, s, s, s)";
    let text = harness.text(code);
    assert!(text.starts_with("ERR not enough memory for the arguments of a command"), "{text}");
    // What ends in the midst of Lua's own work may have left anything behind.
    let code = format!("return '{}'", "x".repeat(10_000_000));
    let end = harness.run(&code);
    assert!(matches!(&end, ScriptEnd::Stopped(why) if why.contains("memory")), "{end:?}");
    assert!(!harness.interpreter.is_reusable());
}

#[test]
fn a_line_of_the_log_is_one_and_short() {
    let mut harness = Harness::new();
    let code = "redis.log(2, 'a\\nb\\rc') redis.log(2, string.rep('x', 5000))";
    assert_eq!(harness.text(code), "nil");
    assert_eq!(harness.logged, ["a b c".to_owned(), "x".repeat(1024)]);
}

#[test]
fn replies_have_a_bound() {
    let mut harness = Harness::new();
    let shared = "local t = {1} for i = 1, 100 do t = {t, t} end return t";
    let text = harness.text(shared);
    assert!(text.contains("script-memory-limit"), "{text}");
    let text = Harness::new().text("local a = {} a[1] = a return a");
    assert!(text.contains("ERR reached lua stack limit"), "{text}");
}

#[test]
fn nothing_is_too_deep() {
    let mut harness = Harness::new();
    for code in [
        "local function f() return f() + 1 end return f()",
        "local function f() return pcall(f) end f() error('fine')",
        "local function f() coroutine.wrap(f)() end f()",
        "local function f() return (string.gsub('a', 'a', f)) end return f()",
        "local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k] end \
         return t.x",
        "local t = setmetatable({}, {}) getmetatable(t).__index = t return t.x",
        "return loadstring(string.rep('(', 10000))()",
        "return loadstring('return ' .. string.rep('{', 10000))()",
        "return string.find(string.rep('a', 10000), string.rep('a?', 10000))",
        "local t = {} for i = 1, 2000 do t = {t} end return cjson.encode(t)",
        "return cjson.decode(string.rep('[', 100000))",
        "return cjson.decode(string.rep('{\"a\":', 100000))",
        "cmsgpack.unpack(string.rep('\\145', 100000))",
        "return unpack({}, 1, 1e8)",
        "return {unpack({}, 1, 1e6)}",
        "redis.call(unpack({}, 1, 1e6))",
        "local function f(n) coroutine.resume(coroutine.create(f), n + 1) \
         return redis.call(n, {}) end f(1)",
        "table.sort({1,2,3,4,5,6,7,8,9}, function() return true end) error('fine')",
    ] {
        let text = harness.text(code);
        assert!(text.starts_with("ERR"), "{code}: {text:.200}");
        harness.play("return 'fine' -> fine");
    }
}

#[test]
fn many_strings_are_passed_at_once() {
    let mut harness = Harness::new();
    let code = "local t = {} for i = 1, 7900 do t[i] = 'item' .. i end \
                return #redis.call('list', unpack(t))";
    assert_eq!(harness.text(code), "7900");
    let code = "local t = {} for i = 1, 7900 do t[i] = 'item' .. i end \
                return #cmsgpack.pack(unpack(t))";
    assert!(harness.text(code).parse::<usize>().unwrap() > 7900);
    let code = "local t = {} for i = 1, 7900 do t[i] = 'item' .. i end \
                return select('#', cmsgpack.unpack(cmsgpack.pack(unpack(t))))";
    assert_eq!(harness.text(code), "7900");
}

#[test]
fn an_interpreter_is_dropped_wherever_its_script_is() {
    for code in [
        "redis.call('ping')",
        "while true do pcall(function() redis.call('ping') end) end",
        "table.sort({3, 2, 1}, function() redis.call('ping') end)",
        "coroutine.wrap(function() redis.call('ping') end)()",
    ] {
        let mut interpreter = Interpreter::new().unwrap();
        let task = ScriptTask::Run {
            sha: "a".to_owned(),
            code: code.as_bytes().into(),
            keys: Vec::new(),
            args: Vec::new(),
        };
        let job = ScriptJob { task: task.into(), limits: ScriptLimits::default(), seed: 1 };
        assert!(matches!(interpreter.start(job), ScriptStep::Call { .. }), "{code}");
    }
}

#[test]
fn memory_may_end_anywhere() {
    let codes = [
        "return redis.call('list', 'a', string.rep('b', 3000), {1})",
        "local t = {} for i = 1, 300 do t[i] = redis.call('echo', 'item' .. i) end return t",
        "return cjson.decode(cjson.encode({a = {1, 2, {b = 'c'}}, d = string.rep('e', 500)}))",
        "return cmsgpack.unpack(cmsgpack.pack({a = {1, 2, {b = 'c'}}, d = string.rep('e', 500)}))",
        "return {struct.unpack('sss', struct.pack('sss', 'a', 'b', string.rep('c', 500)))}",
        "return {string.gsub(string.rep('ab', 200), '(a)(b)', function(a, b) return b .. a end)}",
        "return {string.gsub(string.rep('ab', 200), 'a', 'xyz'), string.match('k=1', '(%w+)')}",
        "redis.setresp(3) return {redis.call('map'), redis.call('set'), redis.call('double')}",
        "return {pcall(function() return redis.call('fail') end)}",
        "local co = coroutine.wrap(function() coroutine.yield(redis.call('ping')) end) return co()",
        "return redis.pcall('none', {}) or redis.sha1hex('a')",
        "error({err = 'MINE ' .. string.rep('x', 500)})",
        "local function f(n) if n == 0 then return 0 end return 1 + f(n - 1) end return f(2000)",
        "return loadstring('return ' .. string.rep('1 + ', 500) .. '1')()",
    ];
    let mut ends = [0, 0];
    for code in codes {
        for memory_bytes in (200 << 10..400 << 10).step_by(7_000) {
            let mut harness = Harness::new();
            harness.limits = ScriptLimits { memory_bytes, ..ScriptLimits::default() };
            let end = harness.run(code);
            ends[usize::from(matches!(end, ScriptEnd::Answered(_)))] += 1;
            harness.limits = ScriptLimits::default();
            if harness.interpreter.is_reusable() {
                harness.play("return redis.call('echo', 'fine') -> fine");
            }
        }
    }
    assert!(ends.iter().all(|it| *it > 20), "{ends:?}");
}
