//! `muesli completions`: what a shell needs to complete commands, options and names.

use std::io::{Write, stdout};

use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;

const AFTER: &str = "\
Examples:
  bash  muesli completions bash > ~/.local/share/bash-completion/completions/muesli
  zsh   muesli completions zsh > ~/.zfunc/_muesli      (with ~/.zfunc in fpath)
  fish  muesli completions fish > ~/.config/fish/completions/muesli.fish";

/// The command's options.
pub fn command() -> Command {
    Command::new("completions")
        .about("Write what a shell needs to complete commands, options and names")
        .after_help(AFTER)
        .arg(
            Arg::new("shell")
                .value_name("SHELL")
                .required(true)
                .value_parser(value_parser!(Shell))
                .help("Whose completions"),
        )
}

/// Runs the command: writes the completions of the whole program.
///
/// # Errors
/// They cannot be written.
pub fn run(matches: &ArgMatches, mut program: Command) -> anyhow::Result<u8> {
    let shell = *matches.get_one::<Shell>("shell").expect("it is required");
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, name, &mut script);
    // A reader that has gone away is no matter.
    let _ = stdout().write_all(&script);
    Ok(0)
}
