//! Libraries: what they register, and how their functions are called.

use muesli_scripts::{LibraryCode, ScriptEnd, ScriptTask, ScriptValue, library, sha1_hex};

use crate::harness::Harness;

fn load(harness: &mut Harness, code: &str) -> Result<Vec<(String, String)>, String> {
    match harness.finish(ScriptTask::Load { code: code.as_bytes().into() }) {
        ScriptEnd::Loaded(functions) => {
            Ok(functions.into_iter().map(|it| (it.name, it.flags.join(","))).collect())
        }
        ScriptEnd::Invalid(why) => Err(String::from_utf8(why).unwrap()),
        ScriptEnd::Stopped(why) => Err(why),
        other => panic!("{other:?}"),
    }
}

fn call(harness: &mut Harness, code: &str, function: &str) -> ScriptEnd {
    let payload = format!("#!lua name=lib\n{code}");
    let (name, rest) = library(payload.as_bytes()).unwrap();
    let library = LibraryCode { name, sha: sha1_hex(payload.as_bytes()), code: rest.into() };
    let (keys, args) = (vec![b"k".to_vec()], vec![b"a".to_vec()]);
    let function = function.to_owned();
    harness.finish(ScriptTask::Call { library, function, keys, args })
}

#[test]
fn libraries_register_functions() {
    let mut harness = Harness::new();
    let code = "redis.register_function('f1', function() end) \
                redis.register_function{function_name='f2', callback=function() end, \
                description='d', flags={'no-writes', 'allow-oom'}}";
    let expected = [("f1", ""), ("f2", "no-writes,allow-oom")];
    let expected: Vec<_> = expected.map(|it| (it.0.to_owned(), it.1.to_owned())).into();
    assert_eq!(load(&mut harness, code), Ok(expected));
    for (code, expected) in [
        ("return 1", "ERR No functions registered"),
        ("bad script", "ERR Error compiling function: user_function:1: '=' expected near 'script'"),
        ("redis.register_function()", "wrong number of arguments to redis.register_function"),
        ("redis.register_function('f')", "single argument is only applicable to Lua table"),
        (
            "redis.register_function(nil, function() end)",
            "first argument to redis.register_function must be a string",
        ),
        (
            "redis.register_function('f', 1)",
            "second argument to redis.register_function must be a function",
        ),
        ("redis.register_function('a-b', function() end)", "Library names can only contain"),
        ("redis.register_function('f', type)", "nonexistent global variable 'type'"),
        ("return math.random()", "attempted to access nonexistent global variable 'math'"),
        ("return redis.call('ping')", "attempted to access nonexistent global variable 'call'"),
        ("redis.math.random()", "attempted to access nonexistent global variable 'math'"),
        ("a = 1", "Attempt to modify a readonly table"),
        ("redis.register_function{callback=function() end}", "must get a function name argument"),
        ("redis.register_function{function_name='f'}", "must get a callback argument"),
        (
            "redis.register_function{function_name='f', callback=redis.log, flags={'x'}}",
            "unknown flag given",
        ),
        (
            "redis.register_function{function_name='f', callback=function() end, x=1}",
            "unknown argument given",
        ),
        (
            "local r = redis.register_function r('f', redis.log) r('F', redis.log)",
            "Function already exists in the library",
        ),
    ] {
        let why = load(&mut harness, code).unwrap_err();
        assert!(why.contains(expected), "{code}: {why}");
    }
}

#[test]
fn many_libraries_are_loaded_beside_each_other() {
    let mut harness = Harness::new();
    let code = "for i = 1, 1000 do \
                redis.register_function('f' .. i, function() return i end) end";
    // `for` alone needs no globals, and `..` no functions.
    for at in 0..30 {
        let sha = at.to_string();
        let library = LibraryCode { name: format!("l{at}"), sha, code: code.as_bytes().into() };
        let (function, keys, args) = ("F1000".to_owned(), Vec::new(), Vec::new());
        let end = harness.finish(ScriptTask::Call { library, function, keys, args });
        assert_eq!(end, ScriptEnd::Answered(ScriptValue::Integer(1000)));
    }
}

#[test]
fn functions_are_called_with_keys_and_arguments() {
    let mut harness = Harness::new();
    let code = "local function join(a, b) return a .. b end \
                redis.register_function('f', function(k, a) return join(k[1], a[1]) end) \
                redis.register_function('g', function() return KEYS end) \
                redis.register_function('h', function() redis.register_function('i', type) end) \
                local lib = redis \
                redis.register_function('i', function() lib.register_function('j', type) end) \
                redis.register_function('j', function() lib.math = math end) \
                redis.register_function('k', function() error('no') end) \
                redis.register_function('l', function() return redis.replicate_commands end)";
    let answered = ScriptEnd::Answered(ScriptValue::Bytes(b"ka".to_vec()));
    assert_eq!(call(&mut harness, code, "f"), answered);
    assert_eq!(call(&mut harness, code, "F"), answered);
    assert_eq!(call(&mut harness, code, "l"), ScriptEnd::Answered(ScriptValue::Null));
    for (function, expected) in [
        ("g", "nonexistent global variable 'KEYS'"),
        ("h", "attempt to call field 'register_function' (a nil value)"),
        ("i", "can only be called on FUNCTION LOAD command"),
        ("j", "Attempt to modify a readonly table"),
        ("k", "ERR user_function:2: no script: k, on @user_function:2."),
        ("none", "Function not found"),
    ] {
        let ScriptEnd::Failed(why) = call(&mut harness, code, function) else {
            panic!("{function}")
        };
        let why = String::from_utf8(why).unwrap();
        assert!(why.contains(expected), "{function}: {why}");
    }
    assert_eq!(harness.text("return type(redis.replicate_commands)"), "function");
    let other = "redis.register_function('f', function() return 'other' end)";
    let answered = ScriptEnd::Answered(ScriptValue::Bytes(b"other".to_vec()));
    assert_eq!(call(&mut harness, other, "f"), answered);
}
