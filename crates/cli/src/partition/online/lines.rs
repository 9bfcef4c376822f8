//! Lines for whoever reads what is planned and done.

use std::io::{Write, stdout};

/// Says a line at once. That whoever reads has gone away is no matter.
pub fn print(text: &str) {
    let mut out = stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}
