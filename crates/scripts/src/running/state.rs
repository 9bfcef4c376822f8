//! A state of Lua with the sandbox, and how tasks are done in it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use mlua::{FromLuaMulti, Function, IntoLuaMulti, Lua, Scope, Table, Value};

use super::ScriptYielder;
use super::asking::add_of_driver;
use super::counting::begin_counting;
use super::stateful::add_of_state;
use crate::convert::{ReplyBuilder, field, number, strings};
use crate::job::{ScriptEnd, ScriptJob, ScriptTask};
use crate::natives::Natives;
use crate::registering::Registering;
use crate::{modules, patterns};

/// With more memory than this after a run, or than this share of what it may have, what is not
/// needed is taken away at once.
const MEMORY_SWEPT: usize = 4 << 20;
const MEMORY_SHARE: usize = 8;
/// The code of the sandbox, which is one chunk of Lua.
const SANDBOX: &str = concat!(
    include_str!("../sandbox/base.lua"),
    include_str!("../sandbox/strings.lua"),
    include_str!("../sandbox/tables.lua"),
    include_str!("../sandbox/modules.lua"),
    include_str!("../sandbox/redis.lua"),
    include_str!("../sandbox/entry.lua"),
);

/// A state of Lua with the sandbox.
pub(super) struct LuaState<'a> {
    pub lua: &'a Lua,
    pub natives: Rc<Natives>,
    /// Whether replies of commands are of the third version of the protocol.
    resp3: Rc<Cell<bool>>,
    pub registering: Rc<Registering>,
    pub globals: Table,
    pub function_globals: Table,
    run_script: Function,
    run_function: Function,
    pub load_library: Function,
    pub compiled: RefCell<HashMap<String, Function>>,
    /// The libraries that have been loaded, each with the hash of its code, and a table of its
    /// functions by their names in small letters.
    pub libraries: RefCell<HashMap<String, (String, Table)>>,
}

impl<'a> LuaState<'a> {
    pub fn new<'scope, 'env: 'scope>(
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
        add_of_driver(lua, scope, &native, yielder, natives, &resp3)?;
        let prelude = lua.load(SANDBOX).set_name("=prelude");
        let entry: Table = prelude.call(native)?;
        let globals: Table = entry.raw_get("globals")?;
        lua.set_globals(globals.clone())?;
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
    pub fn run(&self, job: &ScriptJob) -> ScriptEnd {
        let budget = &self.natives.budget;
        budget.begin(job.limits);
        self.natives.random.set(job.seed & ((1 << 48) - 1));
        self.resp3.set(false);
        let run = std::panic::AssertUnwindSafe(|| {
            begin_counting(self.lua, &self.natives)?;
            self.run_task(&job.task)
        });
        let end = match std::panic::catch_unwind(run) {
            Ok(Ok(end)) => end,
            // What it has left behind is not known.
            Ok(Err(error)) => {
                let text = format!("ERR {error}");
                budget.stop(text.clone());
                ScriptEnd::Stopped(text)
            }
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
    pub fn swept_memory(&self) -> usize {
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
                    Some(known) => {
                        // It may have given itself another one in the run before.
                        known.set_environment(self.globals.clone())?;
                        known
                    }
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
    pub fn call<T: FromLuaMulti>(
        &self,
        function: &Function,
        arguments: impl IntoLuaMulti,
    ) -> mlua::Result<T> {
        self.lua.set_memory_limit(self.natives.memory_bytes())?;
        let called = function.call(arguments);
        self.lua.set_memory_limit(0)?;
        called
    }

    /// How a script has ended, which is called by this name.
    fn ended(&self, (fine, value): (bool, Value), name: &str) -> ScriptEnd {
        if fine {
            let mut answers = ReplyBuilder {
                lua: self.lua,
                natives: &self.natives,
                resp3: self.resp3.get(),
                bytes_left: self.natives.memory_bytes(),
            };
            return match answers.value(&value, 0) {
                Ok(value) => ScriptEnd::Answered(value),
                Err(why) => ScriptEnd::Stopped(why),
            };
        }
        let mut text = error_text(&value);
        if let Value::Table(error) = &value
            && let (Value::String(source), Some(line)) =
                (field(error, "source"), number(&field(error, "line")))
        {
            let source = source.to_string_lossy();
            text.extend(format!(" script: {name}, on {source}:{line}.").into_bytes());
        }
        ScriptEnd::Failed(text)
    }
}

/// The text of an error that the sandbox has located.
pub(super) fn error_text(value: &Value) -> Vec<u8> {
    match value {
        Value::Table(table) => match field(table, "err") {
            Value::String(text) => text.as_bytes().to_vec(),
            _ => b"ERR unknown error".to_vec(),
        },
        Value::String(text) => [b"ERR ", &text.as_bytes()[..]].concat(),
        _ => b"ERR unknown error".to_vec(),
    }
}
