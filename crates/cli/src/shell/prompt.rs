//! The prompt, with its history and completion.

use std::path::PathBuf;

use anyhow::Context as _;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use super::help;
use super::interrupt::TypedInterrupt;
use super::running::run_line;
use super::session::ShellSession;
use crate::data::progress::note;

/// So many lines are remembered.
const REMEMBERED: usize = 10_000;

/// Asks for lines and carries them out, until there are no more.
pub fn run(session: &mut ShellSession) -> anyhow::Result<()> {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .max_history_size(REMEMBERED)
        .and_then(|config| config.history_ignore_dups(true))
        .context("the prompt cannot be set up")?
        .build();
    session.interrupt = Some(TypedInterrupt::begin()?);
    let mut editor: Editor<ShellCompletion, FileHistory> =
        Editor::with_config(config).context("the terminal cannot be used")?;
    let file = history_file();
    if let Some(file) = &file {
        let _ = editor.load_history(file); // Nobody has typed anything yet.
    }
    let ended = ask(session, &mut editor);
    if let Some(file) = &file
        && let Err(error) = editor.save_history(file)
    {
        note(&format!("what was typed is not kept in {}: {error}", file.display()));
    }
    ended
}

fn history_file() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
    Some(PathBuf::from(home).join(".muesli_history"))
}

fn ask(
    session: &mut ShellSession,
    editor: &mut Editor<ShellCompletion, FileHistory>,
) -> anyhow::Result<()> {
    note("`help` lists the commands, `quit` ends");
    loop {
        editor.set_helper(Some(ShellCompletion { spaces: session.spaces() }));
        let line = match editor.readline(session.prompt().as_str()) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(error).context("the terminal cannot be read"),
        };
        if line.trim().is_empty() {
            continue;
        }
        let _ = editor.add_history_entry(&line); // It was remembered as it came before.
        match run_line(session, &line) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => note(&format!("{error:#}")),
        }
    }
}

/// Completes the names of commands and spaces.
struct ShellCompletion {
    spaces: Vec<String>,
}

impl ShellCompletion {
    /// Where the word begins that is being typed, and what it may become.
    fn of(&self, line: &str) -> (usize, Vec<String>) {
        let command = line.rfind(';').map_or(0, |at| at + 1);
        let begins = line.rfind([' ', ';']).map_or(0, |at| at + 1);
        let (typed, before) = (&line[begins..], line[command..begins].trim());
        let is_space = before.split_whitespace().last().is_some_and(|it| it == "use" || it == "in");
        let is_command = before.is_empty()
            || before.split_whitespace().rev().nth(1).is_some_and(|it| it == "in");
        let candidates: Vec<String> = match (is_space, is_command) {
            (true, _) => self.spaces.clone(),
            (false, true) => help::names().map(str::to_owned).collect(),
            (false, false) => Vec::new(),
        };
        let fit = candidates.into_iter().filter(|name| name.starts_with(typed));
        (begins, fit.collect())
    }
}

impl Completer for ShellCompletion {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (begins, names) = self.of(&line[..at]);
        let pair = |name: String| Pair { replacement: format!("{name} "), display: name };
        Ok((begins, names.into_iter().map(pair).collect()))
    }
}

impl Hinter for ShellCompletion {
    type Hint = String;
}

impl Highlighter for ShellCompletion {}

impl Validator for ShellCompletion {}

impl Helper for ShellCompletion {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_spaces_are_completed_where_they_stand() {
        let completion = ShellCompletion { spaces: vec!["notes".to_owned(), "users".to_owned()] };
        let of = |line: &str| completion.of(line);
        assert_eq!(of("co"), (0, vec!["count".to_owned(), "commit".to_owned()]));
        assert_eq!(of("get a; us"), (7, vec!["use".to_owned()]));
        assert_eq!(of("use n"), (4, vec!["notes".to_owned()]));
        assert_eq!(of("in "), (3, vec!["notes".to_owned(), "users".to_owned()]));
        assert_eq!(of("in notes sc"), (9, vec!["scan".to_owned()]));
        assert_eq!(of("get n"), (4, Vec::<String>::new()));
    }
}
