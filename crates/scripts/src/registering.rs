//! What a library registers while it is loaded.

use std::cell::RefCell;
use std::rc::Rc;

use mlua::{Function, Lua, Table, Value};

use crate::job::LibraryFunction;
use crate::natives::{Native, fail, fine};
use crate::shebang::{BAD_NAME, ScriptFlags, is_name};

/// A library may have so many functions.
const FUNCTIONS_MAX: usize = 1024;
/// A description may have so many bytes.
const DESCRIPTION_BYTES_MAX: usize = 4096;

/// The functions that were registered; `None`: no library is being loaded.
#[derive(Default)]
pub(crate) struct Registering(RefCell<Option<Vec<(LibraryFunction, Function)>>>);

/// What a call of `redis.register_function` has named.
#[derive(Default)]
struct NamedArguments {
    name: Option<String>,
    description: Option<String>,
    callback: Option<Function>,
    flags: Vec<String>,
}

impl Registering {
    pub fn begin(&self) {
        *self.0.borrow_mut() = Some(Vec::new());
    }

    /// What was registered.
    pub fn end(&self) -> Vec<(LibraryFunction, Function)> {
        self.0.borrow_mut().take().unwrap_or_default()
    }

    /// Adds the functions by which libraries register theirs.
    pub fn register(self: &Rc<Self>, lua: &Lua, native: &Table) -> mlua::Result<()> {
        let own = self.clone();
        let is_loading = move |_: &Lua, ()| Ok(own.0.borrow().is_some());
        native.raw_set("is_loading", lua.create_function(is_loading)?)?;
        let own = self.clone();
        let positional = move |lua: &Lua, (name, callback): (mlua::String, Function)| {
            let name = name.to_string_lossy();
            let arguments = NamedArguments { name: Some(name), ..NamedArguments::default() };
            own.add(lua, arguments, callback)
        };
        native.raw_set("register", lua.create_function(positional)?)?;
        let own = self.clone();
        let named = move |lua: &Lua, table: Table| -> Native {
            let mut arguments = match named(&table)? {
                Ok(arguments) => arguments,
                Err(why) => return fail(lua, why),
            };
            match arguments.callback.take() {
                _ if arguments.name.is_none() => {
                    fail(lua, "redis.register_function must get a function name argument")
                }
                Some(callback) => own.add(lua, arguments, callback),
                None => fail(lua, "redis.register_function must get a callback argument"),
            }
        };
        native.raw_set("register_named", lua.create_function(named)?)
    }

    fn add(&self, lua: &Lua, arguments: NamedArguments, callback: Function) -> Native {
        let NamedArguments { name, description, flags, .. } = arguments;
        let name = name.unwrap_or_default();
        let mut functions = self.0.borrow_mut();
        let Some(functions) = &mut *functions else {
            return fail(
                lua,
                "redis.register_function can only be called on FUNCTION LOAD command",
            );
        };
        if !is_name(&name) {
            return fail(lua, BAD_NAME);
        }
        if functions.iter().any(|it| it.0.name.eq_ignore_ascii_case(&name)) {
            return fail(lua, "Function already exists in the library");
        }
        if functions.len() == FUNCTIONS_MAX {
            return fail(lua, "a library has no more than 1024 functions");
        }
        functions.push((LibraryFunction { name, description, flags }, callback));
        fine(Value::Nil)
    }
}

/// The arguments of a table, or what is wrong with it.
fn named(table: &Table) -> mlua::Result<Result<NamedArguments, &'static str>> {
    let mut arguments = NamedArguments::default();
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        let Value::String(key) = key else {
            return Ok(Err("named argument key given to redis.register_function is not a string"));
        };
        let text = match &value {
            Value::String(text) => Some(text.to_string_lossy()),
            other => {
                crate::convert::argument(other).map(|it| String::from_utf8_lossy(&it).into_owned())
            }
        };
        match &*key.to_string_lossy().to_ascii_lowercase() {
            "function_name" => match text {
                Some(text) => arguments.name = Some(text),
                None => {
                    return Ok(Err(
                        "function_name argument given to redis.register_function must \
                                   be a string",
                    ));
                }
            },
            "description" => match text {
                Some(text) if text.len() > DESCRIPTION_BYTES_MAX => {
                    return Ok(Err("a description has no more than 4096 bytes"));
                }
                Some(text) => arguments.description = Some(text),
                None => {
                    return Ok(Err(
                        "description argument given to redis.register_function must be \
                                   a string",
                    ));
                }
            },
            "callback" => match value {
                Value::Function(function) => arguments.callback = Some(function),
                _ => {
                    return Ok(Err(
                        "callback argument given to redis.register_function must be a \
                                   function",
                    ));
                }
            },
            "flags" => match value {
                Value::Table(table) => match flags(&table)? {
                    Some(flags) => arguments.flags = flags,
                    None => return Ok(Err("unknown flag given")),
                },
                _ => {
                    return Ok(Err("flags argument to redis.register_function must be a table \
                                   representing function flags"));
                }
            },
            _ => return Ok(Err("unknown argument given to redis.register_function")),
        }
    }
    Ok(Ok(arguments))
}

/// The flags in a table; `None`: there is something else in it.
fn flags(table: &Table) -> mlua::Result<Option<Vec<String>>> {
    let mut names: Vec<String> = Vec::new();
    for at in 1.. {
        match table.raw_get::<Value>(at)? {
            Value::Nil => break,
            Value::String(name) => {
                let name = name.to_string_lossy();
                if !ScriptFlags::default().add(&name) {
                    return Ok(None);
                }
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            _ => return Ok(None),
        }
    }
    Ok(Some(names))
}
