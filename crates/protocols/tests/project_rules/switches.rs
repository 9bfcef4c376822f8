//! Switches: where they stand, and that a test disables each.

use super::{files, none};

/// A rule that tests can break: its variant, and its name in scripts.
type NamedSwitch = (String, String);

/// The rules that tests can break, by the file that lists them.
fn switches() -> Vec<(String, Vec<NamedSwitch>)> {
    let lists = files(&["rs"]).into_iter().filter_map(|(path, text)| {
        let (_, list) = text.split_once("\nbreakable! {\n")?;
        let (list, _) = list.split_once("\n}\n")?;
        let code = list.lines().map(str::trim).filter(|line| !line.starts_with("///"));
        let named = code.filter_map(|line| {
            let (variant, name) = line.trim_end_matches(',').split_once(" = ")?;
            Some((variant.to_owned(), name.trim_matches('"').to_owned()))
        });
        Some((path.clone(), named.collect()))
    });
    lists.collect()
}

/// What tests say: their own files, the ends of others, and the scripts of transcripts.
fn tests() -> Vec<String> {
    let tests = files(&["rs", "txt", "toml"]).into_iter().filter_map(|(path, text)| {
        match path.contains("/tests/") || path.ends_with("tests.rs") {
            true => Some(text),
            false => text.split_once("#[cfg(test)]").map(|(_, tests)| tests.to_owned()),
        }
    });
    tests.collect()
}

/// Whether a test disables a switch: code names it with its enum, a script after `off=`.
fn disables(text: &str, (variant, name): &NamedSwitch) -> bool {
    let in_script = |line: &str| line.split_once("off=").is_some_and(|(_, list)| names(list, name));
    names(text, &format!("Switch::{variant}")) || text.lines().any(in_script)
}

/// Whether a text has this name, and no longer one that ends so.
fn names(text: &str, name: &str) -> bool {
    let is_in_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        let is_whole = name.contains("::") || !before.ends_with(is_in_name);
        is_whole && !after.starts_with(is_in_name)
    })
}

#[test]
fn switches_stand_in_the_file_of_that_name() {
    let defines = ["pub struct Switches", "pub type Switches", "pub enum Switches", "breakable! {"];
    let mut offences = Vec::new();
    for (path, text) in files(&["rs"]) {
        let is_protocol = path.starts_with("protocols/src/") && path.matches('/').count() == 3;
        if is_protocol && !path.ends_with("/switches.rs") {
            let found = defines.iter().filter(|it| text.lines().any(|line| line.starts_with(**it)));
            offences.extend(found.map(|it| format!("{path}: {it}")));
        }
    }
    none(&offences);
}

#[test]
fn each_switch_is_disabled_by_a_test() {
    let (switches, tests) = (switches(), tests());
    assert!(switches.len() >= 4, "the family's, and those of three protocols");
    let all: Vec<_> =
        switches.iter().flat_map(|(path, all)| all.iter().map(move |it| (path, it))).collect();
    assert!(all.len() >= 70, "only {} switches were found", all.len());
    let is_disabled = |switch: &NamedSwitch| tests.iter().any(|text| disables(text, switch));
    let others = all.into_iter().filter(|(_, switch)| !is_disabled(switch));
    none(&others.map(|(path, (variant, _))| format!("{path}: {variant}")).collect::<Vec<_>>());
}
