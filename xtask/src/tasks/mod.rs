//! The tasks, and how they run programs.

pub mod bench;
pub mod check;
pub mod clients;
pub mod compile_times;
pub mod explore;
pub mod left;
pub mod profile;
pub mod python;
pub mod sim;
pub mod trace;
pub mod transcripts;

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use xtask::files;

/// How a task ended, or why not well.
pub type Done = Result<(), String>;

/// A program that is run in the project's folder.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.current_dir(files::root());
    command
}

/// Says what is run, runs it, and fails where it does. What takes long says how long it took.
pub fn run(command: &mut Command) -> Done {
    println!("$ {}", line(command));
    let began = Instant::now();
    let status = command.status();
    if began.elapsed().as_secs() >= 10 {
        println!("  took {} s", began.elapsed().as_secs());
    }
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{} ended with {status}", line(command))),
        Err(error) => Err(format!("{} cannot be run: {error}", line(command))),
    }
}

/// What a program prints.
pub fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{}: {error}", line(command)))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!(
            "{} ended with {}\n{}",
            line(command),
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

/// The command as one would type it.
pub fn line(command: &Command) -> String {
    let all = std::iter::once(command.get_program()).chain(command.get_args());
    let quoted =
        |word: &str| if word.contains(' ') { format!("'{word}'") } else { word.to_owned() };
    all.map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// Where cargo puts what it builds.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| files::root().join("target"), PathBuf::from)
}

/// Builds `muesli` as the tests do, whose assertions are on; its path.
pub fn muesli() -> Result<PathBuf, String> {
    run(program("cargo").args(["build", "--profile", "test", "--locked", "-p", "muesli-cli"]))?;
    Ok(built())
}

/// Builds `muesli` for searches of hours; its path.
pub fn muesli_for_searches() -> Result<PathBuf, String> {
    run(program("cargo").args(["build", "--profile", "search", "--locked", "-p", "muesli-cli"]))?;
    Ok(target().join("search").join("muesli"))
}

/// Where `muesli` is that the tests have built.
pub fn built() -> PathBuf {
    target().join("debug").join("muesli")
}
