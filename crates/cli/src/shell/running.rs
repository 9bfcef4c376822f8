//! Which command does what.

use std::io::{Write, stdout};

use anyhow::{Context, bail};

use super::calls;
use super::explain;
use super::help;
use super::session::ShellSession;
use super::tokens::{self, ShellToken};
use super::watch;

/// What a command comes to.
enum ShellAnswer {
    /// This is to be printed.
    Lines(String),
    /// The shell ends.
    Quit,
}

/// Carries out the commands of a line; false: the shell ends.
pub fn run_line(session: &mut ShellSession, line: &str) -> anyhow::Result<bool> {
    for command in tokens::commands(line)? {
        match run(session, &command)? {
            ShellAnswer::Quit => return Ok(false),
            ShellAnswer::Lines(lines) if lines.is_empty() => {}
            ShellAnswer::Lines(lines) => {
                if writeln!(stdout(), "{lines}").is_err() {
                    return Ok(false); // Nobody reads any more.
                }
            }
        }
    }
    Ok(true)
}

/// Carries out a command.
///
/// # Errors
/// It cannot be carried out; an open transaction is still there unless the error says that it
/// is not.
fn run(session: &mut ShellSession, tokens: &[ShellToken]) -> anyhow::Result<ShellAnswer> {
    let (name, rest) = tokens.split_first().context("a command is one word at least")?;
    let lines = match &*name.text().to_ascii_lowercase() {
        "quit" | "exit" => return Ok(ShellAnswer::Quit),
        "help" => help::text(),
        "spaces" => session.list_spaces(),
        "use" => session.use_space(rest)?,
        "create" => session.create(rest)?,
        "in" => return run_in(session, rest),
        "begin" => session.begin(rest)?,
        "commit" => session.commit(rest)?,
        "abort" | "rollback" => session.abort(rest)?,
        "get" => session.get(rest)?,
        "put" => session.put(rest)?,
        "delete" => session.delete(rest)?,
        "scan" => session.scan(rest)?,
        "count" => session.count(rest)?,
        "watch" => match watch::watch(session, rest)? {
            true => String::new(),
            false => return Ok(ShellAnswer::Quit), // Nobody reads any more.
        },
        "call" => calls::call(session, rest)?,
        "explain" => explain::explain(session, rest)?,
        ".histories" => session.tell_histories(),
        other => bail!("there is no command `{other}`{}", help::meant(other)),
    };
    Ok(ShellAnswer::Lines(lines))
}

/// Carries out a command that is about another space.
fn run_in(session: &mut ShellSession, tokens: &[ShellToken]) -> anyhow::Result<ShellAnswer> {
    let Some((space, command)) = tokens.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        bail!("`in` takes the name of a space and a command");
    };
    let before = session.space.replace(session.space_named(space)?);
    let answer = run(session, command);
    session.space = before;
    answer
}
