//! Histories that broken protocol variants produced, each judged at every level.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use muesli_check::{Checker, History, Level, Options};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/histories")
}

fn read(name: &str) -> History {
    let file = File::open(folder().join(format!("{name}.jsonl"))).unwrap();
    History::read(BufReader::new(file)).unwrap()
}

/// The level and options that a column of the table names.
fn column(name: &str) -> (Level, Options) {
    let session_order = name.ends_with(" + session order");
    let level = name.trim_end_matches(" + session order").parse().unwrap();
    (level, Options { session_order, ..Options::default() })
}

#[test]
fn every_history_is_judged_as_the_table_says() {
    let table = std::fs::read_to_string(folder().join("verdicts.csv")).unwrap();
    let mut rows = table.lines().filter(|line| !line.starts_with('#'));
    let header: Vec<&str> = rows.next().unwrap().split(',').collect();
    let columns: Vec<(Level, Options)> = header[1..].iter().map(|name| column(name)).collect();
    let mut wrong = Vec::new();
    let mut judged = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.split(',').collect();
        assert_eq!(cells.len(), header.len(), "{row}");
        let history = read(cells[0]);
        let checker = Checker::new(&history);
        for ((level, options), expected) in columns.iter().zip(&cells[1..]) {
            let verdict = checker.check(*level, options);
            if verdict.holds() != (*expected == "holds") {
                wrong.push(format!("{} should be {expected}: {verdict}", cells[0]));
            }
        }
        judged.insert(cells[0].to_owned());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(judged, stored());
}

/// The histories in the folder, so that none is left out of the table.
fn stored() -> BTreeSet<String> {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name());
    let names = files.map(|name| name.into_string().unwrap());
    names.filter_map(|name| Some(name.strip_suffix(".jsonl")?.to_owned())).collect()
}

#[test]
fn every_history_survives_being_written() {
    for name in stored() {
        let history = read(&name);
        let mut first = Vec::new();
        history.write(&mut first).unwrap();
        let again = History::read(first.as_slice()).unwrap();
        let mut second = Vec::new();
        again.write(&mut second).unwrap();
        assert_eq!(first, second, "{name}");
        for level in Level::ALL {
            let options = Options::default();
            let verdict = Checker::new(&again).check(level, &options);
            assert_eq!(verdict.holds(), Checker::new(&history).check(level, &options).holds());
        }
    }
}
