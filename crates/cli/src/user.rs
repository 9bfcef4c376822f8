//! `muesli user`: a line of the file of users that Redis clients are asked for.

use std::io::{IsTerminal, Read, Write, stdin, stdout};

use anyhow::{Context, bail};
use clap::{Arg, ArgMatches, Command};
use muesli_resp::{RespUsers, UserRole};

/// A password that comes with more bytes is none, and is not read to its end.
const INPUT_BYTES_MAX: u64 = 4096;

const AFTER: &str = "\
The password is asked for at a terminal, or is the first line of standard input. What is printed \
has a hash of it (argon2id), and not the password.

Examples:
  muesli user ann --role admin >> users            asks for a password
  muesli user app --role write < password >> users
  muesli start --resp 0.0.0.0:6379 --users users   the server reads the file as it starts";

/// The command's options.
pub fn command() -> Command {
    Command::new("user")
        .about("Print a line for the file of users of a server for Redis clients")
        .after_help(AFTER)
        .arg(
            Arg::new("name")
                .value_name("NAME")
                .required(true)
                .help("The name of the user; `default` is who gives a password alone"),
        )
        .arg(
            Arg::new("role")
                .long("role")
                .value_name("ROLE")
                .value_parser(["read", "write", "admin"])
                .default_value("read")
                .help("What the user may do"),
        )
}

/// Runs the command.
///
/// # Errors
/// There is no such user, or no password.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let name: &String = matches.get_one("name").expect("it is required");
    let role: &String = matches.get_one("role").expect("it has a default");
    let role = UserRole::named(role).expect("it is one of three");
    let password = match stdin().is_terminal() {
        true => asked()?,
        false => first_line(stdin().lock())?,
    };
    let line = RespUsers::line(name, role, &password)?;
    writeln!(stdout(), "{line}").context("the line cannot be printed")?;
    Ok(0)
}

/// A password that is typed twice, and not shown.
fn asked() -> anyhow::Result<Vec<u8>> {
    let password = rpassword::prompt_password("Password: ").context("no password was read")?;
    let again = rpassword::prompt_password("Again: ").context("no password was read")?;
    if password != again {
        bail!("the two passwords are different");
    }
    Ok(password.into_bytes())
}

/// The first line of what comes, without its end.
fn first_line(input: impl Read) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(INPUT_BYTES_MAX).read_to_end(&mut bytes).context("no password was read")?;
    if let Some(end) = bytes.iter().position(|it| *it == b'\n') {
        bytes.truncate(end);
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_the_first_line() {
        for (input, expected) in [
            ("secret", "secret"),
            ("secret\n", "secret"),
            (" a b \r\nmore\n", " a b "),
            ("\nsecret", ""),
            ("", ""),
        ] {
            assert_eq!(first_line(input.as_bytes()).unwrap(), expected.as_bytes());
        }
    }
}
