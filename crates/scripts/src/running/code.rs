//! Code that is compiled, and libraries that are loaded, for as long as the state is used.

use mlua::{ChunkMode, Function, Table, Value};

use super::state::{LuaState, error_text};
use crate::job::{LibraryCode, LibraryFunction};

/// So many scripts stay compiled.
const COMPILED_MAX: usize = 256;

/// The functions of a library as they were registered, and a table of them by their names in small
/// letters: one handle of Lua's for all of them.
type LoadedLibrary = (Vec<LibraryFunction>, Table);

impl LuaState<'_> {
    pub fn keep_compiled(&self, sha: &str, function: Function) -> Function {
        let mut compiled = self.compiled.borrow_mut();
        if compiled.len() == COMPILED_MAX {
            compiled.clear();
        }
        compiled.insert(sha.to_owned(), function.clone());
        function
    }

    pub fn compile(&self, code: &[u8]) -> mlua::Result<Result<Function, Vec<u8>>> {
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
    pub fn load(&self, code: &[u8]) -> mlua::Result<Result<LoadedLibrary, Vec<u8>>> {
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
        let by_name = self.lua.create_table()?;
        for (function, callback) in &registered {
            by_name.raw_set(function.name.to_ascii_lowercase(), callback)?;
        }
        Ok(Ok((registered.into_iter().map(|it| it.0).collect(), by_name)))
    }

    /// A function of a library, which is loaded if it was not, or was another one.
    pub fn function(
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
        let found = match libraries.get(&library.name) {
            Some((_, functions)) => functions.raw_get(name.to_ascii_lowercase())?,
            None => None,
        };
        Ok(found.ok_or_else(|| b"ERR Function not found".to_vec()))
    }
}
