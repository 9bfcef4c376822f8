//! Files that benchmarks write.

use std::io::{Write, stdout};
use std::path::Path;

use anyhow::Context;
use serde::Serialize;

/// Writes results as JSON: an array if there are several; `-` is standard output.
///
/// # Errors
/// The system does not let it.
pub fn write_json(results: &[impl Serialize], path: &Path) -> anyhow::Result<()> {
    let text = match results {
        [one] => serde_json::to_string_pretty(one)?,
        several => serde_json::to_string_pretty(several)?,
    };
    if path == Path::new("-") {
        return writeln!(stdout(), "{text}").context("cannot write to standard output");
    }
    let message = || format!("cannot write the results to {}", path.display());
    std::fs::write(path, format!("{text}\n")).with_context(message)
}
