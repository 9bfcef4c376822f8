//! The names of types in Rust files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::files;

/// Where each struct, enum, trait and union of the crates is defined, by its name; tests left out.
pub fn definitions() -> BTreeMap<String, Vec<PathBuf>> {
    let mut all: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for path in files::with_extension(&["rs"]).into_iter().filter(|path| is_source(path)) {
        for name in defined(&files::text(&path)) {
            all.entry(name).or_default().push(path.clone());
        }
    }
    all
}

/// Whether a file is a part of a crate, and no test of it.
fn is_source(path: &Path) -> bool {
    if !path.starts_with("crates") && !path.starts_with("xtask") {
        return false;
    }
    let mut parts = path.iter().filter_map(|part| part.to_str());
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let is_test = stem == "tests" || stem.ends_with("_tests");
    parts.any(|part| part == "src") && !parts.any(|part| part == "tests") && !is_test
}

/// The names that a file defines before its tests.
fn defined(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    code.lines().filter_map(definition).map(str::to_owned).collect()
}

fn definition(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1,
        Some(rest) => rest,
        None => line,
    };
    let mut words = line.split_whitespace();
    let kind = words.next().filter(|word| *word != "unsafe").or_else(|| words.next())?;
    if !["struct", "enum", "trait", "union"].contains(&kind) {
        return None;
    }
    let name = words.next()?;
    let end = name.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(name.len());
    let is_name = name.starts_with(|letter: char| letter.is_ascii_uppercase());
    is_name.then(|| &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_found_however_they_are_seen() {
        let text = "pub struct One<T>(T);\npub(crate) enum Two {\n    trait Three: Sized {}\n\
                    pub(in super::super) struct Four;\n/// struct five\nlet x = \"struct Six\";\n\
                    #[cfg(test)]\nmod tests {\nstruct Seven;\n";
        assert_eq!(defined(text), ["One", "Two", "Three", "Four"]);
    }
}
