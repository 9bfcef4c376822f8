//! `cargo xtask transcripts`: the output of the transcripts, written anew.

use super::{Done, program};

pub fn run(names: &[&str]) -> Done {
    let filter =
        names.first().map_or("transcripts".to_owned(), |name| format!("transcripts::{name}"));
    let test = ["test", "--locked", "-p", "muesli-protocols", "--test", "it", &filter];
    super::run(program("cargo").args(test).env("UPDATE_GOLDENFILES", "1"))?;
    println!("Read the difference before it is committed:");
    super::run(program("git").args([
        "--no-pager",
        "diff",
        "--stat",
        "crates/protocols/tests/transcripts",
    ]))
}
