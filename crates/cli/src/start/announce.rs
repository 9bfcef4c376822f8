//! What a server says of itself when it serves.

use std::io::{Write, stdout};

/// Says a line. Whoever started the process may read it; that it has gone away is no matter.
pub fn announce(line: &str) {
    let mut out = stdout();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}
