//! `cargo xtask check`: what must hold before a change is given to others.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use xtask::failures::Failures;
use xtask::files;

use super::{Done, program};

fn run_all(steps: &[&[&str]]) -> Done {
    steps.iter().try_for_each(|step| super::run(program("cargo").args(*step)))
}

pub fn run() -> Done {
    run_all(&[
        &["fmt", "--all", "--check"],
        &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
        // As programs are built: without the features that tests turn on.
        &["check", "--package", "muesli-cli", "--locked"],
    ])?;
    let mut doc = program("cargo");
    doc.args(["doc", "--workspace", "--lib", "--no-deps", "--document-private-items", "--locked"]);
    super::run(doc.env("RUSTDOCFLAGS", "-D rustdoc::broken_intra_doc_links"))?;
    // The fuzzer's own library is C++.
    if program("c++").arg("--version").output().is_ok() {
        // Into the folder of the others: what they are built on is checked already.
        let target =
            files::root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()));
        let mut fuzz = program("cargo");
        fuzz.args(["check", "--manifest-path", "fuzz/Cargo.toml", "--locked", "--target-dir"]);
        super::run(fuzz.arg(target))?;
    }
    test()
}

/// Builds and runs all tests, and prints at the end once more what failed: it is easily lost among
/// the names of some thousand others.
fn test() -> Done {
    super::run(program("cargo").args(["test", "--workspace", "--locked", "--no-run"]))?;
    let mut command = program("cargo");
    command.args(["test", "--workspace", "--locked", "--no-fail-fast"]).stdout(Stdio::piped());
    let line = super::line(&command);
    println!("$ {line}");
    let run = |error| format!("{line} cannot be run: {error}");
    let mut child = command.spawn().map_err(run)?;
    let mut failures = Failures::default();
    let printed = child.stdout.take().expect("its output is piped");
    for text in BufReader::new(printed).split(b'\n') {
        let text = String::from_utf8_lossy(&text.map_err(run)?).into_owned();
        println!("{text}");
        failures.take(&text);
    }
    let status = child.wait().map_err(run)?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{line} ended with {status}\n{failures}")),
    }
}
