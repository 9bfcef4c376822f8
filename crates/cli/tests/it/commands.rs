//! The commands as scripts use them: exit status, JSON, files, and what is said to wrong options.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use muesli_sim::hardware::costs::Costs;
use muesli_sim::time::Span;
use serde_json::Value;

pub(crate) fn muesli(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_muesli"));
    command.args(arguments).output().expect("the binary can be run")
}

pub(crate) fn status(output: &Output) -> i32 {
    output.status.code().expect("it was not killed")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it speaks UTF-8")
}

/// Refused with status 2 and an error, of which only the first line stands at the margin, that says
/// all of this.
pub(crate) fn assert_refused(arguments: &[&str], printed: &[&str]) {
    let output = muesli(arguments);
    let error = text(&output.stderr);
    assert_eq!(status(&output), 2, "{arguments:?}: {error}");
    let mut lines = error.lines();
    assert!(lines.next().is_some_and(|it| it.starts_with("muesli: ")), "{arguments:?}: {error}");
    assert!(lines.all(|it| it.starts_with("  ")), "{arguments:?}: {error}");
    for part in printed {
        assert!(error.contains(part), "{arguments:?}: `{part}` is not in: {error}");
    }
}

fn json(output: &Output) -> Value {
    let message = || format!("{} {}", text(&output.stdout), text(&output.stderr));
    assert_eq!(status(output), 0, "{}", message());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", message()))
}

const FIELDS: &[&str] = &[
    "workload",
    "protocol",
    "driver",
    "nodes",
    "repositories",
    "replicas",
    "clients",
    "seconds",
    "committed",
    "aborted",
    "unknown",
    "throughput",
    "abort_rate",
    "messages_per_commit",
    "packets_per_commit",
    "batch",
];

#[test]
fn bench_writes_every_field_on_both_drivers() {
    for driver in ["embedded", "sim"] {
        for (workload, few) in [("bank", "objects=50"), ("ycsb", "keys=50"), ("append", "keys=50")]
        {
            let output = muesli(&[
                "bench",
                workload,
                "--driver",
                driver,
                "--nodes",
                "2",
                "--repositories",
                "3",
                "--replicas",
                "2",
                "--clients",
                "4",
                "--transactions",
                "400",
                "--json",
                "-",
                "--param",
                few,
            ]);
            let result = json(&output);
            for field in FIELDS {
                assert!(result.get(field).is_some(), "{driver} {workload}: no {field}: {result}");
            }
            for quantile in ["p50", "p95", "p99", "max"] {
                assert!(result["latency_us"][quantile].as_f64().unwrap() > 0.0, "{result}");
            }
            assert_eq!(
                (&result["workload"], &result["driver"]),
                (&workload.into(), &driver.into())
            );
            assert!(result["committed"].as_u64().unwrap() > 200, "{result}");
            let messages = result["messages_per_commit"].as_f64().unwrap();
            let packets = result["packets_per_commit"].as_f64().unwrap();
            assert!(0.0 < packets && packets < messages * 1.5, "{result}");
            assert_eq!(result["bytes_per_commit"].is_f64(), driver == "sim", "{result}");
            let checks = result["checks"].as_array().unwrap();
            assert!(checks.len() > 2 && checks.iter().all(|check| check["ok"] == true), "{result}");
            assert!(checks.iter().all(|check| check["name"].is_string()));
        }
    }
}

#[test]
fn bench_tells_how_long_messages_waited_for_each_other() {
    let options = ["--driver", "sim", "--nodes", "4", "--tree", "2x2", "--transactions", "500"];
    let batches = ["--batch", "20", "--batch-timeout", "300us", "--batch-links", "tree"];
    let protocol = ["--protocol", "hierarchy", "--json", "-"];
    let result = json(&muesli(&[&["bench", "bank"], &options[..], &batches, &protocol].concat()));
    let held = |name: &str| result["held_us"][name].as_f64().unwrap();
    assert!(0.0 < held("mean") && held("mean") <= held("max"), "{result}");
    let kinds = result["messages_by_kind"].as_object().unwrap();
    let sum: f64 = kinds.values().map(|each| each.as_f64().unwrap()).sum();
    let all = result["messages_per_commit"].as_f64().unwrap();
    assert!(kinds.contains_key("Prepare") && (sum - all).abs() < 0.1, "{result}");
}

#[test]
fn bench_runs_for_a_time_and_several_protocols_side_by_side() {
    let output = muesli(&[
        "bench",
        "bank",
        "--protocol",
        "score,score",
        "--seconds",
        "0.3",
        "--clients",
        "2",
        "--json",
        "-",
    ]);
    let results = json(&output);
    assert_eq!(results.as_array().map(Vec::len), Some(2));
    assert!(results[1]["seconds"].as_f64().unwrap() >= 0.3);
    let table = text(&output.stderr);
    assert!(table.contains("committed/s") && table.contains("money is conserved"), "{table}");
}

#[test]
fn recorded_histories_are_judged_and_broken_ones_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    for (workload, few) in [("bank", "objects=10"), ("append", "keys=10")] {
        let file = path(workload);
        let bench = muesli(&[
            "bench",
            workload,
            "--transactions",
            "500",
            "--clients",
            "4",
            "--history",
            &file,
            "--repositories",
            "2",
            "--nodes",
            "2",
            "--param",
            few,
        ]);
        assert_eq!(status(&bench), 0, "{}", text(&bench.stderr));
        let check = muesli(&["check", &file]);
        assert_eq!(status(&check), 0, "{}", text(&check.stdout));
        assert!(text(&check.stdout).starts_with("serializable: holds"));
    }
    let skew = path("skew");
    std::fs::write(&skew, WRITE_SKEW).expect("it can be written");
    let drawing = path("cycle.dot");
    let broken = muesli(&["check", &skew, "--dot", &drawing]);
    assert_eq!(status(&broken), 1, "{}", text(&broken.stdout));
    assert!(std::fs::read_to_string(&drawing).expect("it was drawn").contains("digraph"));
    assert_eq!(status(&muesli(&["check", &skew, "--level", "rr"])), 0);
}

/// A history that ends under load is whole: what was under way as the database closed is in it.
#[test]
fn a_bench_that_ends_by_time_under_load_records_what_can_be_judged() {
    let folder = tempfile::tempdir().expect("a folder");
    for run in 0..3 {
        let file = folder.path().join(format!("history-{run}")).display().to_string();
        let setup = ["bench", "bank", "--driver", "embedded", "--protocol", "score"];
        let load = ["--repositories", "2", "--clients", "16", "--seconds", "1", "--history", &file];
        let bench = muesli(&[&setup[..], &load].concat());
        assert_eq!(status(&bench), 0, "{} {}", text(&bench.stdout), text(&bench.stderr));
        let check = muesli(&["check", &file, "--level", "serializable"]);
        assert_eq!(status(&check), 0, "run {run}: {}", text(&check.stdout));
        assert!(text(&check.stdout).starts_with("serializable: holds"), "run {run}");
    }
}

const WRITE_SKEW: &str = r#"
{"id":"a","b":1,"e":9,"st":"c","ops":[["r","x",0],["r","y",0],["w","x",1]]}
{"id":"b","b":1,"e":9,"st":"c","ops":[["r","x",0],["r","y",0],["w","y",1]]}
"#;

#[test]
fn unreadable_histories_are_refused_with_the_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("broken");
    let file = file.to_str().expect("a plain path");
    assert_refused(&["check", "/nowhere/history.jsonl"], &["/nowhere/history.jsonl", "open"]);
    std::fs::write(file, "{\"t\":\"meta\",\"kind\":\"version\"}\nnonsense\n").expect("written");
    assert_refused(&["check", file], &["line 2"]);
    assert_refused(&["check", file, "--level", "snapshot"], &["snapshot", "strict-serializable"]);
    std::fs::write(file, "").expect("written");
    assert_refused(&["check", file], &["without transactions"]);
    std::fs::write(file, WRITE_SKEW).expect("written");
    let sum = ["check", file, "--level", "rr", "--sum", "account/:100:2"];
    assert_refused(&sum, &["no transaction reads 2 keys", "`account/`"]);
}

#[test]
fn a_history_is_read_from_standard_input() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_muesli"));
    command.args(["check", "-", "--level", "rr"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut check = command.spawn().expect("the binary can be run");
    let mut input = check.stdin.take().expect("it is piped");
    input.write_all(WRITE_SKEW.as_bytes()).expect("it reads");
    drop(input);
    let output = check.wait_with_output().expect("it ends");
    assert_eq!(status(&output), 0);
    assert!(text(&output.stdout).starts_with("rr: holds"), "{}", text(&output.stdout));
}

#[test]
fn wrong_options_are_refused() {
    let bank = |more: &[&'static str]| [&["bench", "bank"], more].concat();
    assert_refused(&["bench", "tpcx"], &["tpcx"]);
    assert_refused(&["cook"], &["cook"]);
    assert_refused(&bank(&["--replicas", "3", "--repositories", "2"]), &["3 replicas", "1 to 2"]);
    assert_refused(&bank(&["--nodes", "4", "--repositories", "2"]), &["4 nodes", "1 to 2"]);
    assert_refused(&bank(&["--nodes", "0"]), &["0 nodes"]);
    assert_refused(&bank(&["--repositories", "0", "--nodes", "1"]), &["1 nodes", "repositor"]);
    assert_refused(&bank(&["--protocol", "paxos"]), &["paxos", "score"]);
    assert_refused(&bank(&["--driver", "cloud"]), &["cloud", "embedded", "sim"]);
    assert_refused(&bank(&["--clients", "0"]), &["--clients", "1..=100"]);
    for command in [&["bench", "bank"][..], &["sim", "bank"], &["cluster", "up"]] {
        let with = |more: &[&'static str]| [command, more].concat();
        assert_refused(&with(&["--batch", "0"]), &["a batch of 0 messages", "1 to 1024"]);
        assert_refused(&with(&["--batch", "1025"]), &["1025 messages", "1 to 1024"]);
        let long = with(&["--batch", "2", "--batch-timeout", "2s"]);
        assert_refused(&long, &["2000000000 ns", "1 microsecond to 1 second"]);
        let links = with(&["--batch", "2", "--batch-links", "left"]);
        assert_refused(&links, &["left", "all, tree"]);
        assert_refused(&with(&["--batch-timeout", "1ms"]), &["--batch <SIZE>"]);
    }
    assert_refused(&bank(&["--warm-up=-1"]), &["--warm-up", "from 0"]);
    assert_refused(&bank(&["--warm-up=nan"]), &["--warm-up", "from 0"]);
    assert_refused(&bank(&["--seconds", "0"]), &["--seconds 0", "above 0"]);
    assert_refused(&bank(&["--seconds", "1", "--transactions", "2"]), &["--transactions"]);
    assert_refused(&bank(&["--transactions", "0"]), &["--transactions", "1.."]);
    assert_refused(&["sim", "bank", "--transactions", "0"], &["--transactions", "1..=10000000"]);
    let caches = ["`score` keeps no copies", "granola, granola-passing"];
    assert_refused(&["sim", "bank", "--caches"], &caches);
    assert_refused(&bank(&["--driver", "sim", "--caches"]), &caches);
    assert_refused(&bank(&["--param", "objcts=1"]), &["objcts", "objects", "locality"]);
    assert_refused(&bank(&["--param", "objects=1"]), &["objects", "from 2"]);
    assert_refused(&bank(&["--param", "objects"]), &["name=value"]);
    assert_refused(&bank(&["--protocol", "score,score", "--history", "h"]), &["one protocol"]);
    assert_refused(&bank(&["--json", "/nowhere/x.json", "--transactions", "9"]), &["/nowhere"]);
    assert_refused(&["sim", "bank", "--seeds", "9..2"], &["9..2"]);
    assert_refused(&["sim", "bank", "--faults", "flood"], &["flood", "partition"]);
    assert_refused(&["sim", "bank", "--plan", "crash n1"], &["horizon"]);
    assert_refused(
        &["sim", "bank", "--seeds", "1", "--plan", "horizon 1s; 1ms+1ms crash n9"],
        &["n9"],
    );
    assert_refused(&["sim", "bank", "--replicas", "9", "--nodes", "3"], &["9 replicas", "1 to 3"]);
    assert_refused(&["sim", "bank", "--seeds", "1..9", "--trace", "x"], &["one seed"]);
    let twice = ["--param", "calls=5", "--param", "calls=6"];
    assert_refused(&bank(&twice), &["--param calls is given twice"]);
    assert_refused(&[&["sim", "bank"][..], &twice].concat(), &["--param calls is given twice"]);
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("cluster").display().to_string();
    assert_refused(&["cluster", "up", "--servers", "0", "--dir", &dir], &["--servers", "1..=256"]);
    assert!(!Path::new(&dir).exists(), "nothing was made");
}

#[test]
fn what_is_wrong_and_what_is_allowed_stand_on_lines_of_their_own() {
    let error = text(&muesli(&["bench", "bank", "--driver", "cloud"]).stderr);
    let lines: Vec<_> = error.lines().collect();
    assert!(lines.len() > 1 && lines[0].contains("'cloud'"), "{error}");
    assert!(lines[1..].iter().any(|line| line.contains("embedded")), "{error}");
}

#[test]
fn calibrate_writes_a_table_of_costs() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("costs.txt");
    let output = muesli(&["calibrate", "--out", file.to_str().expect("a plain path")]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let written = read(&file);
    assert_eq!(written, text(&output.stdout));
    assert!(text(&output.stderr).contains("measuring a connection"));
    let first = written.lines().next().expect("a first line");
    assert!(first.starts_with("# Costs of a node's work, measured by `muesli calibrate` on 20"));
    let costs: Costs = written.parse().expect("a table of costs");
    assert!(costs.tick > Span::ZERO && costs.sync > Span::ZERO);
}

#[test]
fn sim_judges_every_seed_and_says_so_in_the_last_line() {
    let output = muesli(&["sim", "bank", "--seeds", "1..5", "--faults", "all"]);
    let printed = text(&output.stdout);
    assert_eq!(status(&output), 0, "{printed}");
    let last = printed.lines().last().expect("a last line");
    assert!(last.starts_with("4 seeds, "), "{last}");
    assert!(last.contains("12 histories judged, 0 seeds failed"), "{last}");
}

#[test]
fn sim_traces_are_those_of_the_seed_and_its_plan() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = |name: &str, seed: &str, faults: &str| {
        let file = folder.path().join(name);
        let path = file.to_str().expect("a plain path");
        let output = muesli(&[
            "sim",
            "append",
            "--seeds",
            seed,
            "--trace",
            path,
            "--faults",
            faults,
            "--nodes",
            "2",
            "--plan",
            "horizon 60ms; 12ms+9ms crash n1",
        ]);
        assert_eq!(status(&output), 0, "{}", text(&output.stdout));
        read(&file)
    };
    let first = trace("first", "7", "none");
    assert!(first.contains("crash"), "the plan was not followed");
    assert_eq!(first, trace("second", "7", "none"));
    assert_ne!(first, trace("third", "8", "none"));
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("it was written")
}

#[test]
fn help_teaches() {
    let help = |arguments: &[&str]| {
        let output = muesli(arguments);
        assert_eq!(status(&output), 0, "{arguments:?}");
        text(&output.stdout)
    };
    let whole = help(&["--help"]);
    for command in ["demo", "bench", "sim", "check", "calibrate", "Examples"] {
        assert!(whole.contains(command), "{whole}");
    }
    let bank = help(&["bench", "bank", "--help"]);
    for part in ["objects=1000", "--warm-up", "--protocol", "--json", "How many accounts"] {
        assert!(bank.contains(part), "{part} is not in: {bank}");
    }
    assert!(help(&["sim", "ycsb", "--help"]).contains("workload=a"));
    assert!(help(&["check", "--help"]).contains("strict-serializable"));
}

#[test]
fn the_demo_ends_with_what_to_type_next() {
    let output = muesli(&["demo"]);
    let printed = text(&output.stdout);
    assert_eq!(status(&output), 0, "{printed}");
    assert_eq!(printed.matches("serializable").count(), 4, "{printed}");
    let last: Vec<_> = printed.trim_end().lines().rev().take(3).collect();
    assert!(last.iter().all(|line| line.trim().starts_with("muesli ")), "{printed}");
}
