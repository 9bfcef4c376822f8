//! `muesli partition`, as a person or a script uses it.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::commands::{assert_refused, muesli, status, text};

/// What a command printed, which went well.
fn printed(arguments: &[&str]) -> String {
    let output = muesli(arguments);
    assert_eq!(status(&output), 0, "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn parsed(arguments: &[&str]) -> Value {
    let output = printed(arguments);
    serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"))
}

#[test]
fn a_plan_is_explained_for_people_and_programs() {
    let shown = printed(&["partition", "explain", "tpcw-confirm-order"]);
    for part in [
        "tpcw-confirm-order v1: single or independent",
        "customer(customer), item(cart.lines[].item)",
        "refuses alike (\"the cart has changed\")",
        "told to all participants:",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let explained = parsed(&["partition", "explain", "retwis-tweet", "--json"]);
    assert_eq!(explained["class"], "not one round");
    assert!(explained["errors"][0].as_str().is_some_and(|it| it.contains("two rounds")));
    assert_refused(
        &["partition", "explain", "tpcw-confirm-oder"],
        &["did you mean `tpcw-confirm-order`?", "auctionmark-bid"],
    );
    let help = printed(&["partition", "explain", "--help"]);
    for workload in ["tpcc-procedures", "epinions", "retwis", "tpcw", "auctionmark"] {
        assert!(help.contains(workload), "{workload} in {help}");
    }
}

/// A share that a suggestion reports.
fn share(suggested: &Value, of: &str, part: &str, what: &str) -> f64 {
    let share = &suggested["suggestion"][of][part][what];
    share.as_f64().unwrap_or_else(|| panic!("{of}.{part}.{what} in {suggested}"))
}

#[test]
fn a_suggestion_reports_the_shares_of_what_it_suggests() {
    let line = ["partition", "suggest", "tpcc-procedures", "--param", "keys=30"];
    let line = [&line[..], &["--param", "warehouses=3", "--partitions", "3", "--json"]].concat();
    let suggested = parsed(&[&line[..], &["--transactions", "700"]].concat());
    assert_eq!(suggested["suggestion"]["tables"], suggested["manual"]["tables"]);
    let found = share(&suggested, "suggested", "fresh", "distributed");
    let manual = suggested["manual"]["shares"]["fresh"]["distributed"].as_f64().unwrap();
    assert!((found - manual).abs() < 0.1, "{found} and {manual}");
    for what in ["misrouted", "crossing"] {
        assert_eq!(share(&suggested, "suggested", "fresh", what), 0.0, "{what}");
    }
    assert!(share(&suggested, "suggested", "fresh", "load") < 1.5);
    // Where nothing belongs to anything a hash does as well, and its shares are the suggestion's.
    let line = ["partition", "suggest", "epinions", "--param", "mixing=100"];
    let line = [&line[..], &["--transactions", "3000"]].concat();
    let suggested = parsed(&[&line[..], &["--json"]].concat());
    assert_eq!(suggested["suggestion"]["places_units"], false, "{suggested}");
    assert_eq!(suggested["suggestion"]["suggested"], suggested["suggestion"]["by_hash"]);
    let shown = printed(&line);
    assert!(shown.contains("a hash does as well, and is what is suggested"), "{shown}");
    assert!(shown.contains("misrouted") && shown.contains("manual, in turn"), "{shown}");
}

#[test]
fn a_trace_is_recorded_read_again_and_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a plain path").to_owned();
    let (trace, drawing) = (path("retwis.trace"), path("placement.svg"));
    let line = ["partition", "suggest", "retwis", "--param", "users=300", "--transactions", "900"];
    let mut recorded = parsed(&[&line[..], &["--record", &trace, "--json"]].concat());
    let mut read = parsed(&["partition", "suggest", "retwis", "--trace", &trace, "--json"]);
    assert_eq!((recorded["of"].take(), read["of"].take()), ("retwis".into(), trace.clone().into()));
    assert_eq!(recorded, read);
    let alone = parsed(&["partition", "suggest", "--trace", &trace, "--json"]);
    assert_eq!(alone["suggestion"], read["suggestion"]);
    assert_eq!(alone["manual"], Value::Null);
    let drawn = ["partition", "draw", "--trace", &trace, "--partitions", "4"];
    assert_eq!(printed(&[&drawn[..], &["--svg", &drawing]].concat()).trim_end(), drawing);
    let svg = std::fs::read_to_string(&drawing).expect("it was drawn");
    assert!(svg.starts_with("<svg") && svg.contains("user "), "{svg}");
    let partitions = parsed(&[&drawn[..], &["--json"]].concat());
    assert_eq!(partitions["partitions"].as_array().map(Vec::len), Some(4));
    let text = printed(&drawn);
    assert_eq!(text.lines().count(), 8, "{text}");
    // What a trace is recorded by says nothing of one that is read.
    for (option, value) in [("--seed", "2"), ("--transactions", "900"), ("--param", "users=3")] {
        let both = ["partition", "suggest", "retwis", "--trace", &trace, option, value];
        assert_refused(&both, &[option, "cannot be used with", "--trace"]);
    }
    // Another workload's trace has other tables.
    let other = ["partition", "suggest", "epinions", "--trace", &trace];
    assert_refused(&other, &["is no trace of `epinions`"]);
}

#[test]
fn the_method_of_the_dissertation_is_set_beside_as_a_baseline() {
    let line = ["partition", "suggest", "tpcc-procedures", "--param", "keys=30"];
    let line = [&line[..], &["--param", "warehouses=3", "--partitions", "3"]].concat();
    let line = [&line[..], &["--transactions", "300", "--method", "printed"]].concat();
    let suggested = parsed(&[&line[..], &["--json"]].concat());
    let printed_share = |part: &str| {
        let share = &suggested["printed"]["shares"][part]["distributed"];
        share.as_f64().unwrap_or_else(|| panic!("{suggested}"))
    };
    assert!(suggested["printed"]["rows"].as_u64().is_some_and(|rows| rows > 500), "{suggested}");
    // New rows are by a hash, as nothing explains where they belong.
    assert!(printed_share("fresh") > printed_share("in_sample") + 20.0, "{suggested}");
    assert!(printed(&line).contains("rows placed one by one"));
    assert_refused(&[&line[..7], &["--method", "printd"]].concat(), &["'printed'"]);
    // A drawing is of units, and has no other method.
    let drawn = ["partition", "draw", "retwis", "--method", "printed"];
    assert_refused(&drawn, &["unexpected argument '--method'"]);
}

#[test]
fn files_that_are_no_traces_and_traces_that_are_too_short_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        path.to_str().expect("a plain path").to_owned()
    };
    let refused = |path: &str, what: &str| {
        assert_refused(&["partition", "suggest", "--trace", path], &[path, what]);
        assert_refused(&["partition", "draw", "--trace", path], &[path, what]);
    };
    refused(&write("text", b"warehouse,district\n"), "does not begin with `muetrace`");
    refused(&write("old", b"muetrace\x01\x00"), "version 1, and version 2 is read");
    refused(&write("cut", b"muetrace\x02\x00\xff\xff\xff\xff"), "damaged");
    refused("/dev/zero", "does not begin with `muetrace`");
    let missing = folder.path().join("missing");
    refused(missing.to_str().expect("a plain path"), "cannot be read");
    let short = folder.path().join("short.trace");
    let short = short.to_str().expect("a plain path");
    let line = ["partition", "suggest", "retwis", "--param", "users=30", "--record", short];
    // A trace is written as it was recorded, and what is learnt from it is another matter.
    printed(&[&line[..], &["--transactions", "10"]].concat());
    assert_refused(&[&line[..], &["--transactions", "9"]].concat(), &["9", "10..=1000000"]);
    assert_refused(&["partition", "suggest", "bank"], &["`bank` are no plans", "auctionmark"]);
    assert_refused(&["partition", "suggest", "retwiss"], &["did you mean `retwis`?"]);
    assert_refused(
        &["partition", "suggest", "retwis", "--param", "user=30"],
        &["did you mean `users`?"],
    );
    assert_refused(&["partition", "suggest"], &["<WORKLOAD>"]);
}

/// Runs the process that units are placed in, with these bytes.
fn place_units(bytes: &[u8]) -> Output {
    let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_muesli")));
    command.args(["partition", "place-units"]).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    // A process that has seen enough does not read on.
    let _ = child.stdin.take().expect("it is piped").write_all(bytes);
    child.wait_with_output().expect("it ends")
}

#[test]
fn the_process_that_places_units_refuses_what_is_no_graph() {
    let empty: Vec<u8> = [0_u32; 5].iter().flat_map(|number| number.to_le_bytes()).collect();
    for bytes in [&b""[..], b"no graph at all", &[0xff; 64], &empty] {
        let output = place_units(bytes);
        assert_eq!(status(&output), 2, "{bytes:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).starts_with("muesli: the process that partitions the graph"));
        assert!(output.stdout.is_empty(), "{bytes:?}");
    }
    // It is no command for people.
    assert!(!printed(&["partition", "--help"]).contains("place-units"));
}
