//! Imports stand in three groups: first the standard library, then other crates, then this one.

use std::collections::BTreeSet;

use super::{files, none};

/// To which group the import belongs that begins with this word.
fn group(first: &str, modules_here: &BTreeSet<&str>) -> u8 {
    match first {
        "std" | "core" | "alloc" => 0,
        "crate" | "super" | "self" => 2,
        module if modules_here.contains(module) => 2,
        _ => 1,
    }
}

/// The part of a line up to the first character that no name has.
fn word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// Imports that stand below one of a later group, in one run of imports.
fn out_of_order(text: &str) -> Vec<String> {
    let declared = text.lines().filter_map(|line| line.split_once("mod ")).map(|(_, name)| name);
    let modules_here: BTreeSet<_> = declared.map(word).collect();
    let (mut last, mut in_import, mut found) = (0, false, Vec::new());
    for line in text.lines() {
        let code = line.trim_start();
        match code.strip_prefix("use ").filter(|_| !in_import) {
            Some(path) => {
                let group = group(word(path), &modules_here);
                if group < last {
                    found.push(code.to_owned());
                }
                last = group;
                in_import = !code.ends_with(';');
            }
            None if in_import => in_import = !code.ends_with(';'),
            None if code.is_empty() => {}
            None => last = 0,
        }
    }
    found
}

#[test]
fn imports_stand_in_groups() {
    let mut offences = Vec::new();
    for (path, text) in files(&["rs"]) {
        offences.extend(out_of_order(&text).into_iter().map(|line| format!("{path}: {line}")));
    }
    none(&offences);
}

#[test]
fn an_import_out_of_order_is_found() {
    let own_module = "mod parts;\nuse parts::Part;\nuse muesli_core::Txn;\n";
    assert_eq!(out_of_order(own_module), ["use muesli_core::Txn;"]);
    let over_lines = "use crate::{\n    Place,\n};\n\nuse std::fmt;\n";
    assert_eq!(out_of_order(over_lines), ["use std::fmt;"]);
    let in_order = "use std::fmt;\n\nuse super::Place;\n\nmod tests {\n    use std::rc;\n}";
    assert_eq!(out_of_order(in_order), [""; 0]);
}
