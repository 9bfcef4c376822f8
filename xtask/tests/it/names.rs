//! No name of a type stands for two things: those that still do are listed in `names.txt`, with how
//! often each is defined. The list may only get shorter.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use xtask::{files, names};

const LIST: &str = "xtask/tests/names.txt";

#[test]
fn no_name_of_a_type_stands_for_two_things() {
    let all = names::definitions();
    assert!(all.len() > 500, "{}", all.len());
    let twice: BTreeMap<_, _> = all.into_iter().filter(|(_, at)| at.len() > 1).collect();
    let list = files::text(Path::new(LIST));
    let mut listed = BTreeMap::new();
    for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, count) = line.split_once(' ').expect("a name and a number");
        listed.insert(name.to_owned(), count.trim().parse::<usize>().expect("a number"));
    }
    let mut wrong = String::new();
    for (name, at) in &twice {
        let (found, allowed) = (at.len(), listed.get(name).copied().unwrap_or(1));
        if found != allowed {
            let places: Vec<_> = at.iter().map(|path| path.display().to_string()).collect();
            let places = places.join(", ");
            let _ = writeln!(wrong, "{name} {found}, listed {allowed}: {places}");
        }
    }
    for name in listed.keys().filter(|name| !twice.contains_key(*name)) {
        let _ = writeln!(wrong, "{name} is defined once or not at all: take it off the list");
    }
    assert!(wrong.is_empty(), "give each thing a name of its own, or shorten {LIST}:\n{wrong}");
}
