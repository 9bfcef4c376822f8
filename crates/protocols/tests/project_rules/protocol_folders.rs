//! Folders of protocols have the same names inside, and who goes by static placement says so.

use std::collections::BTreeSet;

use super::{files, none};

/// What can be in the folder of a protocol, and what it holds there: a file, or a folder of it.
const PARTS: [(&str, &str); 11] = [
    ("mod", "the story, the protocol's type and its policies"),
    ("switches", "what its users choose, and what tests can break"),
    ("message", "messages and records: what they say, their bytes and sizes"),
    ("judge", "which messages and records of others can be"),
    ("coordinator", "the role that runs transactions"),
    ("participant", "the role that keeps a repository"),
    ("locator", "where things are, if they move"),
    ("snapshot", "what a transaction reads at, if that is more than a timestamp"),
    ("place", "what votes say, and where they put a transaction"),
    ("state", "what a repository keeps beside versions, locks and queue"),
    ("time", "how a repository tells time, if not as the family does"),
];

/// What protocols share, and is no protocol itself.
const SHARED: &str = "two_phase";

/// Who may ask by static placement: where nothing moves, or where it is the first guess.
const ASK_STATIC_PLACEMENT: [(&str, &str); 6] = [
    ("core/src/parts/locator/", "it is defined here, and says who holds what never moved"),
    ("protocols/src/two_phase/", "nothing moves under this family"),
    ("protocols/src/granola/locator.rs", "of partitions without a move, and of the name service"),
    ("muesli/src/procedures/invocation.rs", "the loop that is asked first is a guess"),
    ("cli/src/shell/explain.rs", "where keys are that have not moved"),
    ("workloads/src/", "benchmarks choose keys of their own node, and move nothing"),
];

/// The folders of protocols, with the name of each part inside.
fn folders() -> BTreeSet<(String, String)> {
    let all = files(&["rs"]);
    let inside = all.keys().filter_map(|path| path.strip_prefix("protocols/src/"));
    let parts = inside.filter_map(|path| path.split_once('/'));
    let parts = parts.map(|(folder, path)| {
        let part = path.split('/').next().expect("a path has a first part");
        (folder.to_owned(), part.trim_end_matches(".rs").to_owned())
    });
    parts.filter(|(folder, _)| folder != SHARED).collect()
}

#[test]
fn folders_of_protocols_have_the_same_names() {
    let known = |part: &str| PARTS.iter().any(|(name, _)| *name == part);
    let strange = folders().into_iter().filter(|(_, part)| !known(part));
    let strange = strange.map(|(folder, part)| format!("protocols/src/{folder}: {part}"));
    none(&strange.collect::<Vec<_>>());
    let protocols: BTreeSet<_> = folders().into_iter().map(|(folder, _)| folder).collect();
    assert!(protocols.len() >= 7, "{protocols:?}");
}

#[test]
fn each_name_is_that_of_a_part_of_some_protocol() {
    let parts: BTreeSet<_> = folders().into_iter().map(|(_, part)| part).collect();
    let unused = PARTS.iter().filter(|(name, _)| !parts.contains(*name));
    none(&unused.map(|(name, what)| format!("{name}: {what}")).collect::<Vec<_>>());
}

#[test]
fn who_goes_by_static_placement_is_listed() {
    let (mut offences, mut seen) = (Vec::new(), BTreeSet::new());
    for (path, text) in files(&["rs"]) {
        if !path.contains("/src/") || path.ends_with("tests.rs") || !text.contains("Static.") {
            continue;
        }
        match ASK_STATIC_PLACEMENT.iter().find(|(start, _)| path.starts_with(start)) {
            Some((start, _)) => drop(seen.insert(*start)),
            None => offences.push(path),
        }
    }
    none(&offences);
    assert_eq!(seen.len(), ASK_STATIC_PLACEMENT.len(), "an entry is for nobody: {seen:?}");
}

#[test]
fn the_protocol_to_start_from_is_one_file_of_200_lines() {
    let all = files(&["rs"]);
    let central = &all["samples/src/central.rs"];
    assert!(central.lines().count() <= 200, "{} lines", central.lines().count());
    assert!(!central.contains("crate::"), "it uses nothing but the public contract");
}
