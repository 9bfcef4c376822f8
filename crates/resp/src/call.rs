//! A command as its handler sees it, and how handlers answer.

#[cfg(feature = "scripts")]
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;

#[cfg(feature = "scripts")]
use crate::engine::{ScriptEngine, ScriptsTaken};
use crate::keyspace::scope::KeyScope;
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::numbers;
use crate::protocol::reply::{RespReply, RespVersion};
use crate::protocol::request::RespCommand;
#[cfg(feature = "scripts")]
use crate::users::UserRole;

/// What a handler gives.
pub(crate) type Answer = Result<RespReply, CommandStop>;

/// The future of a handler.
pub(crate) type Answering<'a> = Pin<Box<dyn Future<Output = Answer> + 'a>>;

/// A handler of commands that work on data.
pub(crate) type Handler = for<'a> fn(&'a CommandCall<'a>) -> Answering<'a>;

/// A command that a script calls.
#[cfg(feature = "scripts")]
pub(crate) struct ScriptedCommand<'a> {
    pub scope: &'a KeyScope<'a>,
    pub command: &'a RespCommand,
    pub version: RespVersion,
    /// The database that the script has chosen.
    pub db: &'a Cell<u8>,
    /// Whether the script has called a command that writes.
    pub has_written: &'a Cell<bool>,
    pub may_write: bool,
    /// What the client may do that runs the script.
    pub role: UserRole,
    /// It is run where the server has more memory than it may.
    pub may_grow: bool,
}

/// The server, as scripts need it.
#[cfg(feature = "scripts")]
pub(crate) trait ScriptHost {
    /// Runs a command that a script calls.
    fn command<'a>(&'a self, asked: ScriptedCommand<'a>) -> Answering<'a>;

    /// Whether a user of this role may give a command; `None`: there is no such command.
    fn may_give(&self, role: UserRole, words: &[Vec<u8>]) -> Option<bool>;

    /// Whether the server has more memory than it may.
    fn is_over_memory(&self) -> bool;

    fn engine(&self) -> &ScriptEngine;
}

/// A command in a transaction.
pub(crate) struct CommandCall<'a> {
    pub scope: &'a KeyScope<'a>,
    #[cfg(feature = "scripts")]
    pub host: &'a dyn ScriptHost,
    /// What scripts have taken in this transaction, with the attempts before.
    #[cfg(feature = "scripts")]
    pub taken: &'a ScriptsTaken,
    /// What its client may do.
    #[cfg(feature = "scripts")]
    pub role: UserRole,
    /// The database that its client has chosen.
    pub db: u8,
    pub command: &'a RespCommand,
    pub version: RespVersion,
    /// A script has called it.
    pub from_script: bool,
    /// Its client has waited, and looks again: what is of another type is still to come.
    pub waited: bool,
    /// A reply may become so long, about, where a short command can ask for any length.
    pub reply_bytes_max: usize,
}

/// # Errors
/// Replies have become so long that nothing is to be added.
pub(crate) fn check_reply_bytes(bytes: usize, most: usize) -> Result<(), CommandStop> {
    if bytes <= most {
        return Ok(());
    }
    CommandStop::refused(format!(
        "LIMIT the replies to a command or transaction may have {most} bytes \
         (`proto-max-bulk-len`); nothing was changed"
    ))
}

impl<'a> CommandCall<'a> {
    /// How many words there are, the name included.
    pub fn len(&self) -> usize {
        self.command.len()
    }

    /// The word at this place; the name is at 0.
    pub fn arg(&self, at: usize) -> &'a [u8] {
        self.command.word(at)
    }

    /// The words from this place on.
    pub fn args(
        &self,
        from: usize,
    ) -> impl DoubleEndedIterator<Item = &'a [u8]> + ExactSizeIterator {
        let command = self.command;
        (from..command.len()).map(move |at| command.word(at))
    }

    /// Whether the word at this place is this one, in letters of any size.
    pub fn is(&self, at: usize, word: &str) -> bool {
        at < self.len() && self.arg(at).eq_ignore_ascii_case(word.as_bytes())
    }

    /// # Errors
    /// What is to be answered has so many bytes already that nothing is to be added.
    pub fn check_reply(&self, bytes: usize) -> Result<(), CommandStop> {
        check_reply_bytes(bytes, self.reply_bytes_max)
    }

    pub fn is_resp3(&self) -> bool {
        self.version == RespVersion::Resp3
    }

    pub fn integer(&self, at: usize) -> Result<i64, CommandStop> {
        match self.command.iter().nth(at).and_then(numbers::integer) {
            Some(number) => Ok(number),
            None if at < self.len() => CommandStop::refused(texts::NO_INTEGER),
            None => CommandStop::refused(texts::SYNTAX),
        }
    }

    /// The number behind the key of a command that takes no more than these: how many it is about.
    pub fn optional_count(&self) -> Result<Option<usize>, CommandStop> {
        match self.len() {
            2 => Ok(None),
            3 => match usize::try_from(self.integer(2)?) {
                Ok(count) => Ok(Some(count)),
                Err(_) => CommandStop::refused("ERR value is out of range, must be positive"),
            },
            _ => CommandStop::refused(texts::SYNTAX),
        }
    }

    pub fn double(&self, at: usize) -> Result<f64, CommandStop> {
        match numbers::double(self.arg(at)) {
            Some(number) => Ok(number),
            None => CommandStop::refused(texts::NO_FLOAT),
        }
    }
}

/// An integer, or a text of its own for what is none.
pub(crate) fn integer_or(text: &[u8], otherwise: &str) -> Result<i64, CommandStop> {
    numbers::integer(text).map_or_else(|| CommandStop::refused(otherwise), Ok)
}

/// Redis's text for a command with the wrong number of words.
pub(crate) fn wrong_number(name: &str) -> String {
    format!("ERR wrong number of arguments for '{name}' command")
}

/// The bounds of a range of indices as Redis counts, of which negative ones are from the end, in
/// something so long: from, and before which. `None`: nothing is in it.
pub(crate) fn index_range(start: i64, stop: i64, length: i64) -> Option<(i64, i64)> {
    let from_end = |index: i64| if index < 0 { index.saturating_add(length) } else { index };
    let (start, stop) = (from_end(start).max(0), from_end(stop).min(length - 1));
    (start <= stop && start < length).then_some((start, stop + 1))
}
