//! What an interpreter is given to do, what it asks for meanwhile, and how it ends.

use std::rc::Rc;
use std::time::Duration;

use crate::value::ScriptValue;

/// How much a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptLimits {
    /// Most instructions of Lua, of all attempts of its transaction.
    pub instructions: u64,
    /// The longest that Lua may run; what it waits for commands is not counted.
    pub time: Duration,
    /// Most bytes of memory that Lua may have, and that one reply may be made of.
    pub memory_bytes: usize,
}

impl Default for ScriptLimits {
    fn default() -> ScriptLimits {
        ScriptLimits {
            instructions: 2_000_000_000,
            time: Duration::from_secs(10),
            memory_bytes: 64 << 20,
        }
    }
}

/// The code of a library, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryCode {
    /// The name of the library.
    pub name: String,
    /// The hash of its code.
    pub sha: String,
    /// The code, without its first line.
    pub code: Rc<[u8]>,
}

/// A function that a library has registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryFunction {
    /// Its name, as it was given.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Its flags, as [`ScriptFlags`](crate::ScriptFlags) names them.
    pub flags: Vec<String>,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub enum ScriptTask {
    /// Is this a script?
    Compile {
        /// The code, without its first line if that begins with `#!`.
        code: Rc<[u8]>,
    },
    /// Run a script.
    Run {
        /// The hash of the whole script, which it is called by.
        sha: String,
        /// The code, without its first line if that begins with `#!`.
        code: Rc<[u8]>,
        /// What it finds as `KEYS`.
        keys: Vec<Vec<u8>>,
        /// What it finds as `ARGV`.
        args: Vec<Vec<u8>>,
    },
    /// Which functions does a library register?
    Load {
        /// Its code, without the first line.
        code: Rc<[u8]>,
    },
    /// Call a function of a library.
    Call {
        /// The library.
        library: LibraryCode,
        /// The function, in letters of any size.
        function: String,
        /// Its first argument.
        keys: Vec<Vec<u8>>,
        /// Its second argument.
        args: Vec<Vec<u8>>,
    },
}

/// What is to be done, and how much it may take.
#[derive(Clone, Debug)]
pub struct ScriptJob {
    /// What is to be done.
    pub task: Rc<ScriptTask>,
    /// How much it may take.
    pub limits: ScriptLimits,
    /// What random numbers begin with.
    pub seed: u64,
}

/// What an interpreter goes on with.
#[derive(Debug)]
pub enum ScriptInput {
    /// Something new to do.
    Job(Box<ScriptJob>),
    /// What the command has answered that was called.
    Reply(ScriptValue),
    /// What was asked for is done.
    Continue,
    /// The script is to end now, for this reason; it cannot catch that.
    Stop(String),
    /// Nothing more is to be done at all.
    End,
}

/// Where an interpreter has come to.
#[derive(Debug)]
pub enum ScriptStep {
    /// The script calls a command: goes on with [`ScriptInput::Reply`].
    Call {
        /// The command's name and arguments.
        words: Vec<Vec<u8>>,
        /// Whether its reply is to be one of the third version of the protocol.
        resp3: bool,
    },
    /// May the script call this command? Goes on with [`ScriptInput::Reply`].
    Check(Vec<Vec<u8>>),
    /// The script has something for the log of the server, with a level: goes on with
    /// [`ScriptInput::Continue`].
    Log(u8, Vec<u8>),
    /// Others may go on for a moment: goes on with [`ScriptInput::Continue`].
    Pause,
    /// The job is done: goes on with another one.
    Done(ScriptEnd),
}

/// How a job has ended.
#[derive(Clone, Debug, PartialEq)]
pub enum ScriptEnd {
    /// The script has answered this.
    Answered(ScriptValue),
    /// The script has failed, with this text, its code first.
    Failed(Vec<u8>),
    /// The script was stopped: nothing of it may stay.
    Stopped(String),
    /// It is no code of Lua, or does something that code of a library may not, as this text says.
    Invalid(Vec<u8>),
    /// It is a script.
    Compiled,
    /// It is a library, with these functions.
    Loaded(Vec<LibraryFunction>),
}
