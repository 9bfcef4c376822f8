//! What is inside of an interpreter: a state of Lua with the sandbox, and how jobs are done there.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use corosensei::Yielder;
use mlua::{
    ChunkMode, FromLuaMulti, Function, HookTriggers, IntoLuaMulti, Lua, LuaOptions, Scope, StdLib,
    String as LuaString, Table, Value, VmState,
};

use crate::budget::Budget;
use crate::convert::{ReplyBuilder, argument, field, strings, to_lua};
use crate::hash::sha1_hex;
use crate::job::{
    LibraryCode, LibraryFunction, ScriptEnd, ScriptInput, ScriptJob, ScriptStep, ScriptTask,
};
use crate::natives::{Native, Natives, PAUSE};
use crate::registering::Registering;
use crate::value::ScriptValue;
use crate::{modules, patterns};

/// The budget is looked at after so many instructions.
const HOOK_EVERY: u32 = 500;
/// So many values of Lua can be held by functions in Rust at a time. Place for them is made before
/// memory has a bound: where that were met as they need more, Lua would end the process.
const HANDLES: usize = 7000;
/// So many scripts stay compiled.
const COMPILED_MAX: usize = 256;
/// With more memory than this after a run, or than this share of what it may have, what is not
/// needed is taken away at once.
const MEMORY_SWEPT: usize = 4 << 20;
const MEMORY_SHARE: usize = 8;
/// The code of the sandbox, which is one chunk of Lua.
const SANDBOX: &str = concat!(
    include_str!("sandbox/base.lua"),
    include_str!("sandbox/strings.lua"),
    include_str!("sandbox/modules.lua"),
    include_str!("sandbox/redis.lua"),
    include_str!("sandbox/entry.lua"),
);
/// What scripts find as the version of Redis.
const VERSION: (&str, u32) = ("7.0.15", 0x0007_000f);

/// By what the interpreter and its driver meet.
pub(crate) type ScriptYielder = Yielder<ScriptInput, ScriptStep>;

/// Does jobs until there are no more.
pub(crate) fn serve(yielder: &ScriptYielder, first: ScriptInput, budget: &Rc<Budget>) {
    let mut input = first;
    if let Err(error) = serve_in_state(yielder, &mut input, budget) {
        // The state could not be made.
        while let ScriptInput::Job(_) = input {
            let why = format!("ERR no script can be run: {error}");
            input = yielder.suspend(ScriptStep::Done(ScriptEnd::Failed(why.into_bytes())));
        }
    }
}

fn serve_in_state(
    yielder: &ScriptYielder,
    input: &mut ScriptInput,
    budget: &Rc<Budget>,
) -> mlua::Result<()> {
    let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
    let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
    let natives = Rc::new(Natives { budget: budget.clone(), random: Cell::new(0) });
    let held = (0..HANDLES).map(|_| lua.create_string("held")).collect::<mlua::Result<Vec<_>>>()?;
    drop(held);
    lua.scope(|scope| {
        let running = LuaState::new(&lua, scope, yielder, &natives)?;
        loop {
            match std::mem::replace(input, ScriptInput::End) {
                ScriptInput::Job(job) => {
                    let end = running.run(&job);
                    budget.end(running.swept_memory());
                    *input = yielder.suspend(ScriptStep::Done(end));
                }
                _ => return Ok(()),
            }
        }
    })
}

/// The functions of a library that has been loaded, by their names in small letters.
type Functions = HashMap<String, Function>;
/// The functions of a library as they were registered, and by their names.
type LoadedLibrary = (Vec<LibraryFunction>, Functions);

/// A state of Lua with the sandbox.
struct LuaState<'a> {
    lua: &'a Lua,
    natives: Rc<Natives>,
    /// Whether replies of commands are of the third version of the protocol.
    resp3: Rc<Cell<bool>>,
    registering: Rc<Registering>,
    globals: Table,
    function_globals: Table,
    run_script: Function,
    run_function: Function,
    load_library: Function,
    compiled: RefCell<HashMap<String, Function>>,
    /// The libraries that have been loaded, each with the hash of its code.
    libraries: RefCell<HashMap<String, (String, Functions)>>,
}

impl<'a> LuaState<'a> {
    fn new<'scope, 'env: 'scope>(
        lua: &'a Lua,
        scope: &'scope Scope<'scope, 'env>,
        yielder: &'env ScriptYielder,
        natives: &Rc<Natives>,
    ) -> mlua::Result<LuaState<'a>> {
        let (resp3, registering) = (Rc::new(Cell::new(false)), Rc::new(Registering::default()));
        let native = lua.create_table()?;
        modules::register(lua, &native, natives)?;
        patterns::register(lua, &native, natives)?;
        registering.register(lua, &native)?;
        add_of_state(lua, &native, natives, &resp3)?;
        add_of_driver(scope, &native, yielder, natives, &resp3)?;
        let own = natives.clone();
        let pause = move |_: &Lua, ()| {
            own.budget.suspend();
            let input = yielder.suspend(ScriptStep::Pause);
            own.budget.resume();
            own.budget.has_paused();
            stop_unless(&own, matches!(input, ScriptInput::Continue), input)
        };
        lua.set_named_registry_value(PAUSE, scope.create_function(pause)?)?;
        let prelude = lua.load(SANDBOX).set_name("=prelude");
        let entry: Table = prelude.call(native)?;
        let globals: Table = entry.raw_get("globals")?;
        lua.set_globals(globals.clone())?;
        let own = natives.clone();
        let hook = move |lua: &Lua, _: &mlua::Debug<'_>| {
            own.charge(lua, u64::from(HOOK_EVERY)).map(|()| VmState::Continue)
        };
        lua.set_global_hook(HookTriggers::new().every_nth_instruction(HOOK_EVERY), hook)?;
        lua.gc_collect()?;
        Ok(LuaState {
            lua,
            natives: natives.clone(),
            resp3,
            registering,
            globals,
            function_globals: entry.raw_get("function_globals")?,
            run_script: entry.raw_get("run_script")?,
            run_function: entry.raw_get("run_function")?,
            load_library: entry.raw_get("load_library")?,
            compiled: RefCell::default(),
            libraries: RefCell::default(),
        })
    }

    /// Does a job. A panic is its end, too.
    fn run(&self, job: &ScriptJob) -> ScriptEnd {
        let budget = &self.natives.budget;
        budget.begin(job.limits);
        self.natives.random.set(job.seed & ((1 << 48) - 1));
        self.resp3.set(false);
        let run = std::panic::AssertUnwindSafe(|| self.run_task(&job.task));
        let end = match std::panic::catch_unwind(run) {
            Ok(Ok(end)) => end,
            Ok(Err(error)) => ScriptEnd::Failed(format!("ERR {error}").into_bytes()),
            Err(_) => {
                let text = "ERR the interpreter has failed at this script; nothing of it was done";
                budget.stop(text.to_owned());
                ScriptEnd::Stopped(text.to_owned())
            }
        };
        match budget.reason() {
            Some(reason) => ScriptEnd::Stopped(reason),
            None => end,
        }
    }

    /// Bytes of memory that Lua has, after what it does not need was taken away if that is much.
    fn swept_memory(&self) -> usize {
        let _ = self.lua.set_memory_limit(0);
        let most = self.natives.memory_bytes() / MEMORY_SHARE;
        if self.lua.used_memory() > most.min(MEMORY_SWEPT) {
            let _ = self.lua.gc_collect();
        }
        self.lua.used_memory()
    }

    fn run_task(&self, task: &ScriptTask) -> mlua::Result<ScriptEnd> {
        match task {
            ScriptTask::Compile { code } => match self.compile(code)? {
                Ok(_) => Ok(ScriptEnd::Compiled),
                Err(why) => Ok(ScriptEnd::Invalid(why)),
            },
            ScriptTask::Run { sha, code, keys, args } => {
                let known = self.compiled.borrow().get(sha).cloned();
                let function = match known {
                    Some(known) => known,
                    None => match self.compile(code)? {
                        Ok(function) => self.keep_compiled(sha, function),
                        Err(why) => return Ok(ScriptEnd::Invalid(why)),
                    },
                };
                let (keys, args) = (strings(self.lua, keys)?, strings(self.lua, args)?);
                let ran: (bool, Value) = self.call(&self.run_script, (function, keys, args))?;
                Ok(self.ended(ran, sha))
            }
            ScriptTask::Load { code } => match self.load(code)? {
                Ok((functions, _)) => Ok(ScriptEnd::Loaded(functions)),
                Err(why) => Ok(ScriptEnd::Invalid(why)),
            },
            ScriptTask::Call { library, function, keys, args } => {
                let found = match self.function(library, function)? {
                    Ok(found) => found,
                    Err(why) => return Ok(ScriptEnd::Failed(why)),
                };
                let (keys, args) = (strings(self.lua, keys)?, strings(self.lua, args)?);
                let ran: (bool, Value) = self.call(&self.run_function, (found, keys, args))?;
                Ok(self.ended(ran, function))
            }
        }
    }

    /// Calls a function of the sandbox, with a bound of memory.
    fn call<T: FromLuaMulti>(
        &self,
        function: &Function,
        arguments: impl IntoLuaMulti,
    ) -> mlua::Result<T> {
        self.lua.set_memory_limit(self.natives.memory_bytes())?;
        let called = function.call(arguments);
        self.lua.set_memory_limit(0)?;
        called
    }

    fn keep_compiled(&self, sha: &str, function: Function) -> Function {
        let mut compiled = self.compiled.borrow_mut();
        if compiled.len() == COMPILED_MAX {
            compiled.clear();
        }
        compiled.insert(sha.to_owned(), function.clone());
        function
    }

    fn compile(&self, code: &[u8]) -> mlua::Result<Result<Function, Vec<u8>>> {
        self.compile_in(code, "@user_script", &self.globals, "compiling script (new function)")
    }

    fn compile_in(
        &self,
        code: &[u8],
        name: &str,
        globals: &Table,
        doing: &str,
    ) -> mlua::Result<Result<Function, Vec<u8>>> {
        let chunk = self.lua.load(code).set_name(name).set_mode(ChunkMode::Text);
        self.lua.set_memory_limit(self.natives.memory_bytes())?;
        let function = chunk.set_environment(globals.clone()).into_function();
        self.lua.set_memory_limit(0)?;
        match function {
            Ok(function) => Ok(Ok(function)),
            Err(mlua::Error::SyntaxError { message, .. }) => {
                Ok(Err(format!("ERR Error {doing}: {message}").into_bytes()))
            }
            Err(error) => Err(error),
        }
    }

    /// Loads a library: what it registers, by their names in small letters as well.
    fn load(&self, code: &[u8]) -> mlua::Result<Result<LoadedLibrary, Vec<u8>>> {
        let globals = &self.function_globals;
        let function =
            match self.compile_in(code, "@user_function", globals, "compiling function")? {
                Ok(function) => function,
                Err(why) => return Ok(Err(why)),
            };
        self.registering.begin();
        let ran = self.call::<(bool, Value)>(&self.load_library, function);
        let registered = self.registering.end();
        let (fine, value) = ran?;
        if !fine {
            let why = error_text(&value);
            return Ok(Err([b"ERR Error registering functions: ", &why[..]].concat()));
        }
        if registered.is_empty() {
            return Ok(Err(b"ERR No functions registered".to_vec()));
        }
        let by_name = registered.iter().map(|it| (it.0.name.to_ascii_lowercase(), it.1.clone()));
        let by_name = by_name.collect();
        Ok(Ok((registered.into_iter().map(|it| it.0).collect(), by_name)))
    }

    /// A function of a library, which is loaded if it was not, or was another one.
    fn function(
        &self,
        library: &LibraryCode,
        name: &str,
    ) -> mlua::Result<Result<Function, Vec<u8>>> {
        let is_known = {
            let libraries = self.libraries.borrow();
            libraries.get(&library.name).is_some_and(|it| it.0 == library.sha)
        };
        if !is_known {
            let functions = match self.load(&library.code)? {
                Ok((_, functions)) => functions,
                Err(why) => return Ok(Err(why)),
            };
            let mut libraries = self.libraries.borrow_mut();
            libraries.insert(library.name.clone(), (library.sha.clone(), functions));
        }
        let libraries = self.libraries.borrow();
        let found =
            libraries.get(&library.name).and_then(|it| it.1.get(&name.to_ascii_lowercase()));
        Ok(found.cloned().ok_or_else(|| b"ERR Function not found".to_vec()))
    }

    /// How a script has ended, which is called by this name.
    fn ended(&self, (fine, value): (bool, Value), name: &str) -> ScriptEnd {
        if fine {
            let bytes_left = self.natives.memory_bytes();
            let mut answers = ReplyBuilder { resp3: self.resp3.get(), bytes_left };
            return match answers.value(&value, 0) {
                Ok(value) => ScriptEnd::Answered(value),
                Err(why) => ScriptEnd::Stopped(why),
            };
        }
        let mut text = error_text(&value);
        if let Value::Table(error) = &value
            && let (Value::String(source), Some(line)) =
                (field(error, "source"), crate::convert::number(&field(error, "line")))
        {
            let source = source.to_string_lossy();
            text.extend(format!(" script: {name}, on {source}:{line}.").into_bytes());
        }
        ScriptEnd::Failed(text)
    }
}

/// The text of an error that the sandbox has located.
fn error_text(value: &Value) -> Vec<u8> {
    match value {
        Value::Table(table) => match field(table, "err") {
            Value::String(text) => text.as_bytes().to_vec(),
            _ => b"ERR unknown error".to_vec(),
        },
        Value::String(text) => [b"ERR ", &text.as_bytes()[..]].concat(),
        _ => b"ERR unknown error".to_vec(),
    }
}

/// Goes on where the driver has answered as it was asked; otherwise the run is to stop.
fn stop_unless(natives: &Natives, goes_on: bool, input: ScriptInput) -> mlua::Result<()> {
    if goes_on {
        return Ok(());
    }
    natives.budget.stop(match input {
        ScriptInput::Stop(why) => why,
        _ => "ERR the script was given up".to_owned(),
    });
    Err(natives.stopped())
}

/// Functions that need nothing but the state.
fn add_of_state(
    lua: &Lua,
    native: &Table,
    natives: &Rc<Natives>,
    resp3: &Rc<Cell<bool>>,
) -> mlua::Result<()> {
    native.raw_set("null", Value::NULL)?;
    native.raw_set("version", VERSION.0)?;
    native.raw_set("version_number", VERSION.1)?;
    let own = natives.clone();
    let is_stopped = move |_: &Lua, ()| Ok(own.budget.is_stopped());
    native.raw_set("is_stopped", lua.create_function(is_stopped)?)?;
    let own = natives.clone();
    let collected = move |lua: &Lua, ()| own.charge_bytes(lua, lua.used_memory());
    native.raw_set("collected", lua.create_function(collected)?)?;
    let version = resp3.clone();
    let set_version = move |_: &Lua, chosen: f64| {
        version.set(chosen == 3.0);
        Ok(())
    };
    native.raw_set("set_version", lua.create_function(set_version)?)?;
    let sha1hex = |_: &Lua, text: LuaString| Ok(sha1_hex(&text.as_bytes()));
    native.raw_set("sha1hex", lua.create_function(sha1hex)?)?;
    native.raw_set("location", lua.create_function(|lua: &Lua, ()| Ok(location(lua)))?)
}

/// Where the innermost function of a script is at.
fn location(lua: &Lua) -> (Option<String>, Option<usize>) {
    /// Frames of the sandbox and of Lua's own functions that may be above it.
    const LEVELS: usize = 64;
    for level in 0..LEVELS {
        let found = lua.inspect_stack(level, |debug| {
            let source = debug.source().source.map(|it| it.into_owned());
            (source, debug.current_line())
        });
        match found {
            None => break,
            Some((Some(source), line)) if source.starts_with("@user_") => {
                return (Some(source), line);
            }
            Some(_) => {}
        }
    }
    (None, None)
}

/// Functions that ask the driver for something.
fn add_of_driver<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    native: &Table,
    yielder: &'env ScriptYielder,
    natives: &Rc<Natives>,
    resp3: &Rc<Cell<bool>>,
) -> mlua::Result<()> {
    let (own, version) = (natives.clone(), resp3.clone());
    let call = move |lua: &Lua, (values, count): (Table, usize)| -> Native {
        let words = match arguments(&values, count)? {
            Ok(words) => words,
            Err(why) => return raised(lua, why),
        };
        let resp3 = version.get();
        let reply = asked(yielder, &own, ScriptStep::Call { words, resp3 })?;
        let fine = !matches!(reply, ScriptValue::Error(_));
        Ok((fine, to_lua(lua, reply, resp3)?))
    };
    native.raw_set("call", scope.create_function(call)?)?;
    let own = natives.clone();
    let check = move |lua: &Lua, (values, count): (Table, usize)| -> Native {
        let words = match arguments(&values, count)? {
            Ok(words) => words,
            Err(why) => return raised(lua, why),
        };
        let reply = asked(yielder, &own, ScriptStep::Check(words))?;
        let fine = !matches!(reply, ScriptValue::Error(_));
        Ok((fine, to_lua(lua, reply, true)?))
    };
    native.raw_set("check", scope.create_function(check)?)?;
    let own = natives.clone();
    let log = move |_: &Lua, (level, text): (f64, LuaString)| {
        let step = ScriptStep::Log(level as u8, text.as_bytes().to_vec());
        own.budget.suspend();
        let input = yielder.suspend(step);
        own.budget.resume();
        stop_unless(&own, matches!(input, ScriptInput::Continue), input)
    };
    native.raw_set("log", scope.create_function(log)?)
}

fn raised(lua: &Lua, why: &str) -> Native {
    Ok((false, to_lua(lua, ScriptValue::error(why), false)?))
}

/// What the driver replies.
fn asked(
    yielder: &ScriptYielder,
    natives: &Natives,
    step: ScriptStep,
) -> mlua::Result<ScriptValue> {
    if natives.budget.is_stopped() {
        return Err(natives.stopped());
    }
    natives.budget.suspend();
    let input = yielder.suspend(step);
    natives.budget.resume();
    match input {
        ScriptInput::Reply(reply) => Ok(reply),
        other => stop_unless(natives, false, other).map(|()| ScriptValue::Null),
    }
}

/// The name of a command and its arguments.
fn arguments(values: &Table, count: usize) -> mlua::Result<Result<Vec<Vec<u8>>, &'static str>> {
    if count == 0 {
        return Ok(Err("ERR Please specify at least one argument for this redis lib call"));
    }
    let mut words = Vec::with_capacity(count);
    for at in 1..=count {
        match argument(&values.raw_get(at)?) {
            Some(word) => words.push(word),
            None => {
                return Ok(Err("ERR Lua redis lib command arguments must be strings or integers"));
            }
        }
    }
    Ok(Ok(words))
}
