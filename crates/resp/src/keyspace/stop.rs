//! Why a command gave no reply of its own.

use muesli::Error;

/// Why a command ended before it was done.
#[derive(Clone, Debug)]
pub(crate) enum CommandStop {
    /// The client is told so; nothing was changed.
    Refused(String),
    /// The database says so.
    Database(Error),
    /// There is nothing yet of what it waits for.
    Waits,
}

impl From<Error> for CommandStop {
    fn from(error: Error) -> CommandStop {
        CommandStop::Database(error)
    }
}

impl CommandStop {
    /// The client is told this, which begins with a code.
    pub fn refused<T>(text: impl Into<String>) -> Result<T, CommandStop> {
        Err(CommandStop::Refused(text.into()))
    }
}

/// Redis's texts, where several commands have them.
pub(crate) mod texts {
    pub const WRONG_TYPE: &str =
        "WRONGTYPE Operation against a key holding the wrong kind of value";
    pub const SYNTAX: &str = "ERR syntax error";
    pub const NO_INTEGER: &str = "ERR value is not an integer or out of range";
    pub const NO_FLOAT: &str = "ERR value is not a valid float";
    pub const OUT_OF_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";
    pub const NO_KEY: &str = "ERR no such key";
    pub const OUT_OF_RANGE: &str = "ERR index out of range";
    pub const OVERFLOW: &str = "ERR increment or decrement would overflow";
    pub const TOO_LONG: &str = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
}
