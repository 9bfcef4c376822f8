//! `cargo xtask check`: what must hold before a change is given to others.

use std::env;

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
    run_all(&[&["test", "--workspace", "--locked", "--no-fail-fast"]])
}
