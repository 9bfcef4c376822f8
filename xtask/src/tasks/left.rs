//! `cargo xtask left`: the list of names of types that two things have. A number is lowered to what
//! is there, and never raised: what is too much is to be taken out.

use std::collections::BTreeMap;
use std::fs;

use xtask::{files, names};

use super::Done;

pub fn run() -> Done {
    let twice = names::definitions().into_iter().filter(|(_, at)| at.len() > 1);
    lower("xtask/tests/names.txt", &twice.map(|(name, at)| (name, vec![at.len()])).collect(), &[1])
}

/// Lowers the numbers of a list; a line of which nothing is left goes.
fn lower(path: &str, found: &BTreeMap<String, Vec<usize>>, none: &[usize]) -> Done {
    let path = files::root().join(path);
    let failure = |error: std::io::Error| format!("{}: {error}", path.display());
    let before = fs::read_to_string(&path).map_err(failure)?;
    let mut after = String::new();
    for line in before.lines() {
        if line.is_empty() || line.starts_with('#') {
            after += &format!("{line}\n");
            continue;
        }
        let mut cells = line.split_whitespace();
        let name = cells.next().unwrap_or_default();
        let listed = cells.map(|cell| cell.parse().unwrap_or(0));
        let now = found.get(name).map_or(none, Vec::as_slice).iter().copied();
        let lowered: Vec<usize> = listed.zip(now).map(|(listed, now)| now.min(listed)).collect();
        if lowered.iter().zip(none).any(|(number, none)| number > none) {
            let numbers: Vec<_> = lowered.iter().map(usize::to_string).collect();
            after += &format!("{name} {}\n", numbers.join(" "));
        }
    }
    fs::write(&path, after).map_err(failure)
}
