//! `cargo xtask transcripts`: the output of the transcripts, written anew.

use std::fs;

use xtask::files;

use super::{Done, program};

/// Where they are, a folder for each protocol, whose program of tests has its name.
const TRANSCRIPTS: &str = "crates/protocols/tests/transcripts";

pub fn run(names: &[&str]) -> Done {
    let (which, filter) = match names.first() {
        None => ("*".to_owned(), "transcripts".to_owned()),
        Some(name) => (protocol_of(name)?, format!("transcripts::{name}")),
    };
    let test = ["test", "--locked", "-p", "muesli-protocols", "--test", &which, &filter];
    super::run(program("cargo").args(test).env("UPDATE_GOLDENFILES", "1"))?;
    println!("Read the difference before it is committed:");
    super::run(program("git").args(["--no-pager", "diff", "--stat", TRANSCRIPTS]))
}

/// The protocol that has a transcript whose name begins so.
fn protocol_of(name: &str) -> Result<String, String> {
    let list = |folder| fs::read_dir(folder).into_iter().flatten().flatten();
    let begins = |file: fs::DirEntry| file.file_name().to_string_lossy().starts_with(name);
    let has_it = |folder: &fs::DirEntry| list(folder.path()).any(begins);
    let found = list(files::root().join(TRANSCRIPTS)).find(has_it);
    let found = found.ok_or_else(|| format!("no transcript begins with `{name}`"))?;
    Ok(found.file_name().to_string_lossy().into_owned())
}
