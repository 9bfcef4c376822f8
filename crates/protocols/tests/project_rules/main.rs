//! The rules of this project, over the sources of all its crates.

mod assertions;
mod circles;
mod imports;
mod modules;
mod protocol_folders;
mod references;
mod structure;
mod switches;
mod tokens;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Longest file, in lines; 400 is the aim.
const FILE_LINES_MAX: usize = 600;
/// Longest function, in lines.
const FUNCTION_LINES_MAX: usize = 70;
/// Longest line, in characters.
const LINE_WIDTH_MAX: usize = 100;

/// What a state machine may not touch, or it could not be replayed from its inputs.
const HIDDEN_INPUTS: [&str; 14] = [
    "std::time",
    "SystemTime",
    "Instant::",
    "std::thread",
    "thread_local!",
    "std::fs",
    "std::net",
    "std::io",
    "std::env",
    "std::process",
    "rand::",
    "fastrand",
    // Their iteration order is chance; ordered maps, or tables for look-ups alone, are not.
    "HashMap",
    "HashSet",
];

/// Exceptions, each with its reason.
const ALLOWED: [(&str, &str, &str); 3] = [
    (
        "core/src/client/mod.rs",
        "thread_local!",
        "the driver's port: client code finds the engine that polls it; no protocol looks there",
    ),
    (
        "core/src/requests/procedure.rs",
        "HashMap",
        "procedures by name and version, looked up at every call and never walked through",
    ),
    (
        "core/src/client/operations.rs",
        "HashMap",
        "the drivers' side: looked up by number, on every answer that was waited for",
    ),
];

/// Which of our crates a crate may use; tests may use more.
const MAY_USE: [(&str, &[&str]); 21] = [
    ("derive", &[]),
    ("peers", &["core", "protocols", "cluster", "muesli"]),
    ("core", &[]),
    ("threads", &["core"]),
    ("log", &[]),
    ("broadcast", &["core"]),
    ("group", &["core"]),
    ("protocols", &["core", "broadcast"]),
    ("registry", &["core", "protocols", "group"]),
    ("check", &[]),
    ("sim", &["core", "check"]),
    ("samples", &["core"]),
    ("commands", &["core", "broadcast", "sim", "cluster"]),
    ("cluster", &["core", "threads", "log", "protocols", "group", "registry"]),
    (
        "muesli",
        &[
            "core",
            "broadcast",
            "derive",
            "threads",
            "log",
            "protocols",
            "group",
            "registry",
            "sim",
            "check",
            "cluster",
        ],
    ),
    ("placement", &["core"]),
    ("rdb", &[]),
    ("resp", &["muesli", "rdb", "scripts"]),
    ("scripts", &[]),
    (
        "workloads",
        &[
            "core",
            "log",
            "protocols",
            "group",
            "registry",
            "placement",
            "sim",
            "check",
            "cluster",
            "muesli",
        ],
    ),
    (
        "cli",
        &[
            "core",
            "log",
            "protocols",
            "group",
            "registry",
            "placement",
            "sim",
            "check",
            "cluster",
            "muesli",
            "rdb",
            "resp",
            "workloads",
            "broadcast",
            "commands",
        ],
    ),
];

/// Words that belong to how the code came about, not to the code.
const FOREIGN: [&str; 6] = [
    concat!("cla", "ude"),
    concat!("anth", "ropic"),
    concat!("chat", "gpt"),
    concat!("co", "pilot"),
    concat!("/work/", "shared"),
    concat!("/tmp/", "team"),
];

/// The folder of all crates.
fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files below a folder with one of these endings, by their path from the folder of all
/// crates, with their text.
fn files(endings: &[&str]) -> BTreeMap<String, String> {
    let (root, mut found) = (crates(), BTreeMap::new());
    let mut open = vec![root.clone()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                if path.file_name().is_none_or(|name| name != "target") {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|end| endings.iter().any(|it| end == *it)) {
                let name = path.strip_prefix(&root).expect("below it").display().to_string();
                found.insert(name, fs::read_to_string(&path).expect("sources are text"));
            }
        }
    }
    assert!(found.len() > 3, "the sources were not found");
    found
}

fn none(offences: &[String]) {
    assert!(offences.is_empty(), "\n{}", offences.join("\n"));
}

#[test]
fn files_are_short() {
    let mut offences = Vec::new();
    for (file, text) in files(&["rs"]) {
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX {
            offences.push(format!("{file} has {lines} lines"));
        }
    }
    none(&offences);
}

#[test]
fn lines_are_short() {
    let mut offences = Vec::new();
    for (file, text) in files(&["rs"]) {
        for (place, line) in text.lines().enumerate() {
            let width = line.chars().count();
            if width > LINE_WIDTH_MAX {
                offences.push(format!("{file}:{} is {width} wide", place + 1));
            }
        }
    }
    none(&offences);
}

/// How many lines the function that begins at the first of `lines` has; `None` where none does,
/// or one without a body. Formatted code ends a body at the indentation at which it began.
fn function_lines(lines: &[&str]) -> Option<usize> {
    let first = lines.first()?;
    let code = first.trim_start();
    let begins = code.split(' ').take(5).position(|word| word == "fn")?;
    let modifiers = ["pub", "const", "async", "unsafe", "extern"];
    let only_modifiers = code
        .split(' ')
        .take(begins)
        .all(|word| modifiers.iter().any(|it| word.starts_with(it)) || word.ends_with(')'));
    if !only_modifiers {
        return None;
    }
    let end = format!("{}}}", &first[..first.len() - code.len()]);
    for (place, line) in lines.iter().enumerate() {
        let one_line = place == 0 && line.ends_with('}');
        if one_line || *line == end {
            return Some(place + 1);
        }
        let indented = line.len() - line.trim_start().len();
        if line.ends_with(';') && indented <= first.len() - code.len() + 4 && place == 0 {
            return None;
        }
        if line.trim_start().starts_with(')') && line.ends_with(';') {
            return None;
        }
    }
    None
}

#[test]
fn functions_are_short() {
    let (mut offences, mut seen) = (Vec::new(), 0);
    for (file, text) in files(&["rs"]) {
        let lines: Vec<_> = text.lines().collect();
        for place in 0..lines.len() {
            let Some(length) = function_lines(&lines[place..]) else { continue };
            seen += 1;
            if length > FUNCTION_LINES_MAX {
                offences.push(format!("{file}:{} has {length} lines", place + 1));
            }
        }
    }
    assert!(seen > 500, "only {seen} functions were found");
    none(&offences);
}

#[test]
fn function_lengths_are_counted_from_the_signature_to_the_brace() {
    let count = |text: &str| function_lines(&text.lines().collect::<Vec<_>>());
    assert_eq!(
        count("    pub(super) fn a(\n        b: u8,\n    ) {\n        c();\n    }\n}"),
        Some(5)
    );
    assert_eq!(count("fn a() {}\n"), Some(1));
    assert_eq!(count("    fn a(&self) -> u8;\n    fn b() {\n    }"), None);
    assert_eq!(count("    fn a(\n        b: u8,\n    ) -> u8;\n    fn b() {\n    }"), None);
    assert_eq!(count("let a = 1;"), None);
    assert_eq!(count("// what a fn does\n}"), None);
}

#[test]
fn state_machines_have_no_hidden_inputs() {
    let mut offences = Vec::new();
    let pure = |file: &str| {
        ["core/src", "protocols/src", "group/src"].iter().any(|root| file.starts_with(root))
    };
    for (file, text) in files(&["rs"]).into_iter().filter(|(file, _)| pure(file)) {
        for (place, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or(line);
            for word in HIDDEN_INPUTS.iter().filter(|word| code.contains(**word)) {
                let allowed = ALLOWED.iter().any(|(it, what, _)| *it == file && what == word);
                if !allowed {
                    offences.push(format!("{file}:{} uses {word}", place + 1));
                }
            }
        }
    }
    none(&offences);
}

#[test]
fn exceptions_are_still_needed() {
    let sources = files(&["rs"]);
    for (file, word, reason) in ALLOWED {
        let text = sources.get(file).unwrap_or_else(|| panic!("{file} is gone"));
        assert!(text.contains(word), "{file} no longer uses {word}: {reason}");
    }
}

/// Our crates among the dependencies of a manifest, those of tests left out.
fn uses(manifest: &str) -> Vec<String> {
    let mut counts = false;
    let mut used = Vec::new();
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            counts = section.contains("dependencies") && !section.starts_with("dev-");
        }
        if let Some((_, path)) = line.split_once("path = \"../").filter(|_| counts) {
            used.extend(path.split('"').next().map(str::to_owned));
        }
    }
    used
}

#[test]
fn crates_use_only_those_below_them() {
    let mut offences = Vec::new();
    for (file, manifest) in files(&["toml"]) {
        let Some(name) = file.strip_suffix("/Cargo.toml").filter(|name| !name.contains('/')) else {
            continue;
        };
        let Some((_, allowed)) = MAY_USE.iter().find(|(known, _)| *known == name) else {
            offences.push(format!("{name} has no place yet: say in MAY_USE what it may use"));
            continue;
        };
        for used in uses(&manifest).iter().filter(|used| !allowed.contains(&used.as_str())) {
            offences.push(format!("{name} may not use {used}"));
        }
    }
    none(&offences);
}

#[test]
fn dependencies_are_read_from_manifests() {
    let manifest = "[dependencies]\nmuesli-core = { path = \"../core\" }\nserde = \"1\"\n\
                    [dev-dependencies]\nmuesli-check = { path = \"../check\" }\n";
    assert_eq!(uses(manifest), ["core"]);
}

#[test]
fn sources_speak_of_the_project_only() {
    let mut offences = Vec::new();
    for (file, text) in files(&["rs", "toml", "md", "txt"]) {
        for (place, line) in text.lines().enumerate() {
            let line = line.to_lowercase();
            for word in FOREIGN.iter().filter(|word| line.contains(**word)) {
                offences.push(format!("{file}:{} mentions {word}", place + 1));
            }
        }
    }
    none(&offences);
}
