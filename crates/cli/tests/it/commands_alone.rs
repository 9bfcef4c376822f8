//! `muesli bench commands`, as a person and as a script asks for it.

use serde_json::Value;

use crate::commands::{assert_refused, muesli, status, text};

const FIELDS: &[&str] = &[
    "protocol",
    "driver",
    "nodes",
    "limit",
    "seconds",
    "commands",
    "throughput",
    "over_first",
    "latency_us",
    "messages_per_command",
    "packets_per_command",
    "bytes_per_command",
    "checked",
    "order",
];

fn results(options: &[&str]) -> Value {
    let seconds: &[&str] =
        if options.contains(&"--seconds") { &[] } else { &["--seconds", "0.05"] };
    let few = ["--limit", "8", "--objects", "20", "--most", "2000"];
    let line = [&["bench", "commands", "--json", "-"], &few[..], seconds, options].concat();
    let output = muesli(&line);
    let table = text(&output.stderr);
    assert_eq!(status(&output), 0, "{line:?}: {table}");
    assert!(table.contains("commands/s") && table.contains("in one order: "), "{table}");
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

#[test]
fn commands_are_ordered_in_the_simulator_and_over_tcp() {
    for driver in ["sim", "tcp"] {
        let names = "m2paxos,epaxos,pob,pob-fast,multipaxos";
        let all = results(&["--driver", driver, "--protocol", names, "--locality", "50"]);
        let all = all.as_array().expect("one for each");
        assert_eq!(all.len(), 5);
        for (one, name) in all.iter().zip(names.split(',')) {
            assert_eq!(
                (one["protocol"].as_str(), one["driver"].as_str()),
                (Some(name), Some(driver))
            );
            for field in FIELDS {
                assert!(one.get(field).is_some(), "{driver} {name}: no {field}: {one}");
            }
            let number = |field: &str| one[field].as_f64().expect("a number");
            assert!(number("commands") > 5.0 && number("checked") > number("commands"), "{one}");
            assert!(number("messages_per_command") >= 4.0, "{one}");
            assert_eq!(one["busy"].is_array(), driver == "sim", "{one}");
            assert!(one["latency_us"]["p50"].as_f64() <= one["latency_us"]["p99"].as_f64());
        }
    }
}

#[test]
fn a_simulated_run_comes_out_the_same_again() {
    let options = ["--protocol", "m2paxos", "--complex", "30", "--nodes", "4", "--seed", "7"];
    let first = results(&options);
    assert_eq!(results(&options), first);
    let other = results(&[&options[..6], &["--seed", "8"]].concat());
    assert_ne!(other["order"], first["order"]);
}

#[test]
fn sites_are_far_and_packets_can_be_single() {
    let near = results(&["--nodes", "3", "--batching", "off"]);
    assert_eq!(near["messages_per_command"], near["packets_per_command"], "{near}");
    let far = results(&["--nodes", "3", "--geo", "seven", "--sites", "3", "--seconds", "2"]);
    let p50 = |result: &Value| result["latency_us"]["p50"].as_f64().expect("a number");
    assert!(p50(&far) > 60_000.0 && p50(&near) < 5_000.0, "{near} {far}");
    let apart = results(&["--delay", "2ms"]);
    assert!(p50(&apart) > 4_000.0, "two delays: {apart}");
}

#[test]
fn what_cannot_be_is_answered_with_what_can() {
    let refused = |options: &[&str], printed: &[&str]| {
        assert_refused(&[&["bench", "commands"], options].concat(), printed);
    };
    refused(&["--protocol", "zab"], &["m2paxos", "epaxos", "pob-fast", "multipaxos"]);
    refused(&["--protocol", "m2paxs"], &["'m2paxos'"]);
    refused(&["--nodes", "0"], &["nodes 0", "1 to 99"]);
    refused(&["--nodes", "1", "--complex", "5"], &["no other node"]);
    refused(&["--locality", "101"], &["locality 101", "0 to 100 percent"]);
    refused(&["--limit", "0"], &["limit 0", "1 to 100000"]);
    refused(&["--payload", "1000000"], &["payload 1000000", "0 to 65536"]);
    refused(&["--think", "soon"], &["soon"]);
    refused(&["--batching", "perhaps"], &["on, off"]);
    refused(&["--seconds", "0"], &["--seconds 0", "above 0"]);
    refused(&["--geo", "eight"], &["`seven`"]);
    refused(&["--driver", "tcp", "--nodes", "10"], &["1 to 9"]);
    refused(&["--driver", "tcp", "--geo", "seven"], &["driver sim"]);
    refused(&["--driver", "tcp", "--batching", "off"], &["driver sim"]);
    let figure = ["reproduce", "turcu-10.1", "--quick", "--param", "colour=1"];
    assert_refused(&figure, &["`colour=1`", "locality, complex"]);
}
