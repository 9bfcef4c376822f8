//! Partitions of servers that run, as a person or a script moves them (`muesli partition suggest`,
//! `apply` and `watch`), or as the servers do by themselves, while clients work.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use muesli_workloads::available::find;
use muesli_workloads::embedded::{self, Embedded, Length};
use muesli_workloads::tally::Tallies;
use serde_json::Value;

use crate::cluster::{Cluster, muesli, output_text};

const CLIENTS: u32 = 8;

/// A cluster whose servers sample each transaction, with eight partitions for each of three
/// repositories.
fn sampled() -> Cluster {
    sampled_with(&[])
}

fn sampled_with(keys: &[&str]) -> Cluster {
    let set = ["--set", "spread=8", "--set", "sample_one_in=1"];
    let started = ["--nodes", "3", "--memory", "--protocol", "granola"];
    Cluster::up(&[&started, &set[..], keys].concat())
}

/// Runs pairs of groups until the commands are done; all that was added is there afterwards.
fn while_clients_work(cluster: &Cluster, commands: impl FnOnce()) {
    let given = ["groups=48", "keys=20", "partitions=8", "apart=100"].map(str::to_owned);
    let workload = find("pairs").unwrap().build(&given, CLIENTS).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut seed = 0;
            while !done.load(Ordering::Relaxed) {
                seed += 1;
                let plan = Embedded {
                    options: muesli::Options::default(),
                    warm_up: Duration::ZERO,
                    length: Length::Transactions(400),
                    seed,
                    strict: false,
                };
                let (db, tallies) = (cluster.connect(false), Arc::new(Tallies::new(CLIENTS)));
                let outcome = embedded::run_connected(&[db], &workload, &plan, &tallies).unwrap();
                assert!(outcome.checks.iter().all(|check| check.ok), "{:?}", outcome.checks);
            }
        });
        // Also where a command is not as expected: who waits for the clients would wait for ever.
        let ended = catch_unwind(AssertUnwindSafe(commands));
        done.store(true, Ordering::Relaxed);
        load.join().unwrap();
        ended.unwrap_or_else(|panic| resume_unwind(panic));
    });
}

fn partition(cluster: &Cluster, arguments: &[&str]) -> std::process::Output {
    let addresses = cluster.addresses().join(",");
    let (command, rest) = arguments.split_first().unwrap();
    let secret = cluster.secret();
    let all = ["partition", command, "--connect", &addresses, "--secret-file", &secret];
    muesli(&[&all[..], rest].concat()).output().unwrap()
}

fn checked_output(cluster: &Cluster, arguments: &[&str]) -> String {
    let output = partition(cluster, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", output_text(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Moves cost nothing that counts: whether they pay is no matter of how fast this machine is.
const CHEAP: [&str; 6] = ["--row-us", "0.001", "--move-ms", "0.001", "--horizon", "100000"];

/// What is suggested, once enough was sampled.
fn suggested(cluster: &Cluster) -> Value {
    for _ in 0..200 {
        let line = [&["suggest", "--json", "--seconds", "0.3"], &CHEAP[..]].concat();
        let found = parsed(&checked_output(cluster, &line));
        if !["few-samples", "idle"].contains(&found["plan"]["verdict"]["kind"].as_str().unwrap()) {
            return found;
        }
    }
    panic!("nothing was sampled");
}

fn share(suggested: &Value, when: &str) -> f64 {
    suggested["plan"]["fresh"][when]["distributed"].as_f64().unwrap()
}

#[test]
fn partitions_are_suggested_and_moved_within_a_budget_while_clients_work() {
    let (cluster, folder) = (sampled(), tempfile::tempdir().unwrap());
    let path = folder.path().join("plan.json");
    let plan = path.to_str().unwrap();
    while_clients_work(&cluster, || {
        let first = suggested(&cluster);
        assert_eq!(first["plan"]["verdict"]["kind"], "pays", "{first}");
        let (before, after) = (share(&first, "before"), share(&first, "after"));
        assert!(before > 40.0 && after < 0.7 * before, "{first}");
        let moves = first["plan"]["moves"].as_array().unwrap().clone();
        assert!(moves.iter().all(|it| it["rows"].as_u64() > Some(0)), "{first}");
        assert_eq!(first["servers"], 3);
        std::fs::write(&path, first.to_string()).unwrap();
        // A budget without room moves nothing; one with room for half of the rows, about half.
        let apply = |budget: &str| {
            let line = ["apply", "--plan", plan, "--budget", budget, "--json"];
            let text = checked_output(&cluster, &line);
            parsed(text.lines().last().unwrap())
        };
        assert_eq!(apply("0")["made"], 0);
        let rows = first["plan"]["rows"].as_u64().unwrap();
        let half = apply(&(rows / 2).to_string());
        let made = half["made"].as_u64().unwrap();
        assert!(0 < made && made < moves.len() as u64, "{half}");
        // Given again, it goes on where it was. (There may be more rows than when it was planned.)
        let rest = apply(&(10 * rows).to_string());
        assert_eq!((rest["there"].as_u64(), rest["left"].as_u64()), (Some(made), Some(0)));
        assert_eq!(rest["made"].as_u64(), Some(moves.len() as u64 - made));
        let second = suggested(&cluster);
        assert!(share(&second, "before") < 0.7 * before, "{first} {second}");
        let text = checked_output(&cluster, &["suggest", "--seconds", "0.3"]);
        for part in ["3 servers: ", "distributed, %", "fragments/s now"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        // A plan of before is refused where somebody else has moved a partition since.
        let moved = &moves[0];
        let number = |name: &str| moved[name].to_string();
        let other = (0..3).map(|it: u16| it.to_string());
        let mut other = other.filter(|it| *it != number("from") && *it != number("to"));
        admin(&cluster, &["move-partition", &number("partition"), &other.next().unwrap()]);
        let stale = partition(&cluster, &["apply", "--plan", plan, "--budget", "1000000"]);
        assert_eq!(stale.status.code(), Some(2), "{}", output_text(&stale));
        assert!(output_text(&stale).contains("make a new plan"), "{}", output_text(&stale));
    });
}

fn admin(cluster: &Cluster, arguments: &[&str]) -> String {
    let (addresses, secret) = (cluster.addresses().join(","), cluster.secret());
    let all = ["admin", "--connect", &addresses, "--secret-file", &secret];
    let all = [&all[..], &["--protocol", "granola"], arguments].concat();
    let output = muesli(&all).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", output_text(&output));
    output_text(&output)
}

#[test]
fn partitions_follow_the_load_period_after_period() {
    let cluster = sampled();
    while_clients_work(&cluster, || {
        let first = share(&suggested(&cluster), "before");
        let watch = ["watch", "--every", "0.4", "--times", "6", "--json", "--apply"];
        let line = [&watch[..], &["--budget", "1000000"], &CHEAP].concat();
        let lines = checked_output(&cluster, &line);
        let all: Vec<Value> = lines.lines().map(parsed).collect();
        let periods = all.iter().filter(|it| it["decision"].is_object());
        assert_eq!(periods.count(), 6, "{lines}");
        assert!(all.iter().any(|it| it["result"] == "made"), "{lines}");
        assert!(share(&suggested(&cluster), "before") < 0.7 * first, "{lines}");
        let text = checked_output(&cluster, &["watch", "--every", "0.2", "--times", "1"]);
        assert!(text.starts_with("period 1: ") && text.contains("% distributed"), "{text}");
    });
}

#[test]
fn servers_that_are_told_to_move_partitions_by_themselves() {
    let cluster = sampled_with(&["--set", "follow_every_s=1"]);
    let moved = |node: usize| {
        let text = std::fs::read_to_string(cluster.node(node).join("output")).unwrap();
        let lines = text.lines().filter(|it| it.starts_with("partitions follow their use: "));
        lines.filter(|it| it.contains(": repository ")).map(str::to_owned).collect::<Vec<_>>()
    };
    while_clients_work(&cluster, || {
        let begun = Instant::now();
        while moved(0).is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(120), "{}", cluster.last_output(0));
            std::thread::sleep(Duration::from_millis(100));
        }
        // It is said where partitions are now.
        assert!(suggested(&cluster)["plan"]["fresh"].is_object());
    });
    // The server with the lowest number did it.
    assert_eq!((moved(1).len(), moved(2).len()), (0, 0));
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let cluster = sampled();
    let refused = |arguments: &[&str], parts: &[&str]| {
        let output = partition(&cluster, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", output_text(&output));
        let error = output_text(&output);
        assert!(parts.iter().all(|part| error.contains(part)), "{arguments:?}: {error}");
    };
    assert!(admin(&cluster, &["sample", "0"]).contains("3 servers sample no transactions"));
    refused(&["suggest"], &["samples no transactions", "muesli admin sample 16"]);
    assert!(admin(&cluster, &["sample", "4"]).contains("one transaction in 4"));
    let idle = checked_output(&cluster, &["suggest", "--seconds", "0.1"]);
    assert!(idle.contains("0 sampled"), "{idle}");
    refused(&["apply"], &["--budget"]);
    refused(&["watch", "--apply"], &["--budget"]);
    refused(&["suggest", "--horizon=-1"], &["--horizon"]);
    refused(&["suggest", "retwis"], &["cannot be used with"]);
    refused(&["apply", "--budget", "1", "--plan", "/dev/null"], &["is no plan"]);
    refused(&["suggest", "--protocol", "score"], &["granola"]);
    // Without the secret nobody says what is sampled.
    let addresses = cluster.addresses().join(",");
    let output = muesli(&["admin", "--connect", &addresses, "sample", "1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", output_text(&output));
}
