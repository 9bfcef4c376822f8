//! What a search for faults draws, and what it writes.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::BufReader;

use muesli_check::{History, check};
use muesli_protocols::keeps_old_versions;
use muesli_workloads::background::Backgrounds;
use muesli_workloads::registry;
use muesli_workloads::simulated::promise_of;
use muesli_workloads::trial::Trial;

/// Protocols, in groups of so many, and whether copies are kept.
const LENGTHS: [(&str, u16, bool); 8] = [
    ("score", 1, false),
    ("bumper", 1, false),
    ("gmu", 1, false),
    ("rr", 1, false),
    ("granola", 1, false),
    ("granola", 1, true),
    ("score", 3, false),
    ("granola", 3, false),
];

/// The protocols that are searched, each with a workload.
const SEARCHED: [(&str, &str); 15] = [
    ("score", "bank"),
    ("gmu", "bank"),
    ("bumper", "bank"),
    ("bumper-tw", "bank"),
    ("bumper-da", "bank"),
    ("bumper-reconciled", "bank"),
    ("2pc", "bank"),
    ("rr", "bank"),
    ("ngm", "bank"),
    ("granola", "bank"),
    ("granola", "append-procedures"),
    ("granola-locking", "bank"),
    ("granola-locking", "append-procedures"),
    ("sinfonia", "bank"),
    ("sinfonia", "append-procedures"),
];

/// Versions are collected, logs are cut and leases end in every run, whatever the seed draws.
#[test]
fn garbage_logs_and_leases_end_in_every_run() {
    for (protocol, workload) in SEARCHED {
        let trial =
            Trial { protocol: protocol.to_owned(), ..Trial::of(registry::find(workload).unwrap()) };
        let mut all = Backgrounds::default();
        for seed in 1..6 {
            let trialled = trial.run(seed, false).unwrap();
            assert_eq!(trialled.problems, Vec::<String>::new(), "{protocol}, seed {seed}");
            trialled.background.iter().for_each(|run| all.add(run));
        }
        let line = all.line(keeps_old_versions(protocol), |number| number.to_string());
        println!("{protocol} {workload}: {line}");
        let in_all = |name: &str| all.of(name).is_some_and(|it| it.runs == all.runs);
        assert!(in_all("collected") && in_all("cut"), "{protocol} {workload}: {line}");
        let leases = in_all("leases ended") || !keeps_old_versions(protocol);
        assert!(leases, "{protocol} {workload}: {line}");
    }
}

#[test]
fn every_history_that_is_judged_is_written() {
    let folder = std::env::temp_dir().join(format!("muesli-histories-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let trial = Trial {
        transactions_least: 100,
        strict: Some(true),
        histories: Some(folder.clone()),
        ..Trial::of(registry::find("bank").unwrap())
    };
    let trialled = trial.run(3, false).unwrap();
    assert_eq!(trialled.problems, Vec::<String>::new());
    let names = ["seed-3-bank.jsonl", "seed-3-append.jsonl", "seed-3-append-lists.jsonl"];
    assert_eq!(trialled.verdicts, names.len() as u64);
    let (level, options) = promise_of("score", true).unwrap();
    for name in names {
        let file = File::open(folder.join(name)).unwrap();
        let history = History::read(BufReader::new(file)).unwrap();
        assert!(history.transactions() > 100, "{name}");
        assert!(check(&history, level, &options).holds(), "{name}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

/// The list workload of each search is judged by its longest record, piece and message.
#[test]
fn nothing_grows_with_the_data_in_searches() {
    for (protocol, group, caches) in LENGTHS {
        let trial = Trial {
            protocol: protocol.to_owned(),
            group,
            caches,
            ..Trial::of(registry::find("bank").unwrap())
        };
        for seed in 1..4 {
            let trialled = trial.run(seed, false).unwrap();
            let problems = &trialled.problems;
            assert_eq!(*problems, Vec::<String>::new(), "{protocol} {group}, seed {seed}");
            let longest = trialled.longest;
            assert!(longest.record > 0 && longest.message.0 > 0, "{longest:?}: it is measured");
        }
    }
}

/// Reads of collected deletions, which the histories name, are in every search.
#[test]
fn deletions_are_collected_and_read_in_short_runs() {
    let folder = std::env::temp_dir().join(format!("muesli-deletions-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for protocol in ["score", "gmu", "granola"] {
        let trial = Trial {
            protocol: protocol.to_owned(),
            transactions_least: 200,
            histories: Some(folder.clone()),
            ..Trial::of(registry::find("append").unwrap())
        };
        let mut deletions_read = 0;
        for seed in 1..5 {
            let trialled = trial.run(seed, false).unwrap();
            assert_eq!(trialled.problems, Vec::<String>::new(), "{protocol}, seed {seed}");
            let path = folder.join(format!("seed-{seed}-append.jsonl"));
            deletions_read += count_reads_of_deletions(&fs::read_to_string(path).unwrap());
        }
        assert!(deletions_read > 20, "{protocol}: {deletions_read}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

/// Reads of absent keys that name a deletion which no repository has any more.
fn count_reads_of_deletions(history: &str) -> usize {
    let lines = || history.lines().map(|line| serde_json::from_str(line).unwrap());
    let held = lines().filter(|line: &serde_json::Value| line["t"] == "order");
    let held: BTreeSet<String> = held
        .flat_map(|line| {
            let key = line["k"].to_string();
            let versions = line["vs"].as_array().unwrap().clone();
            versions.into_iter().map(move |version| format!("{key} {version}"))
        })
        .collect();
    let operations = lines().flat_map(|line| line["ops"].as_array().cloned().unwrap_or_default());
    let absent = operations.filter(|it| it[0] == "r" && it[3].is_null() && it[2] != 0);
    absent.filter(|it| it[2] != "own" && !held.contains(&format!("{} {}", it[1], it[2]))).count()
}
