//! Clusters at several sites: what goes between them takes as long as their distance says.

use serde_json::Value;

use crate::cluster::{Cluster, muesli, output_text};

/// Two sites, and what a message and its answer take between them.
const TWO: &str = "here\nthere 60\n";
const HALF_US: f64 = 30_000.0;

fn file() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("two");
    std::fs::write(&path, TWO).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (dir, path)
}

fn bench(arguments: &[&str]) -> Value {
    let all = [&["bench", "bank", "--json", "-"], arguments].concat();
    let output = muesli(&all).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn clients_are_at_all_sites_and_commits_cross_the_distance() {
    let (_dir, two) = file();
    let writes = ["--param", "reads=0", "--transactions", "40", "--clients", "4"];
    for driver in ["sim", "embedded", "cluster"] {
        let at = ["--driver", driver, "--protocol", "alvin", "--geo", &two];
        let result = bench(&[&at[..], &writes].concat());
        assert_eq!(result["nodes"], 2, "one a site");
        // Both sites have to say something of each commit, wherever its client is.
        let p50 = result["latency_us"]["p50"].as_f64().unwrap();
        assert!(p50 >= 2.0 * HALF_US, "{driver}: {result}");
    }
}

/// Two shards with both copies at one site each, on the two nodes that are there.
#[test]
fn shards_are_at_the_sites_that_are_named_for_them() {
    let (_dir, two) = file();
    let shards = ["--shards", "here,here there,there", "--nodes", "4"];
    let writes = ["--param", "reads=0", "--transactions", "24"];
    for driver in ["sim", "embedded", "cluster"] {
        let at = ["--driver", driver, "--protocol", "sharded-pob", "--geo", &two, "--sites", "2"];
        let result = bench(&[&at[..], &shards, &writes, &["--clients", "4"]].concat());
        assert_eq!((&result["nodes"], &result["repositories"]), (&4.into(), &4.into()));
        assert_eq!(result["replicas"], 2, "{driver}");
    }
    // What concerns one shard alone never leaves its site.
    let one = ["--driver", "sim", "--protocol", "sharded-pob", "--geo", &two, "--sites", "2"];
    let one = [&one[..], &["--shards", "here,here", "--nodes", "3"]].concat();
    let result = bench(&[&one[..], &writes, &["--clients", "1"]].concat());
    let p50 = result["latency_us"]["p50"].as_f64().unwrap();
    assert!(p50 < HALF_US, "the client is here: {result}");
}

#[test]
fn a_cluster_at_sites_stays_there_when_it_is_started_again() {
    let (_dir, two) = file();
    let cluster = Cluster::up(&["--servers", "2", "--geo", &two, "--protocol", "alvin"]);
    let commits = || {
        let at = cluster.addresses().join(",");
        let to = ["--driver", "cluster", "--protocol", "alvin", "--connect", &at];
        let result = bench(&[&to[..], &["--param", "reads=0", "--transactions", "8"]].concat());
        result["latency_us"]["p50"].as_f64().unwrap()
    };
    assert!(commits() >= 2.0 * HALF_US);
    assert!(cluster.checked_output(&["down"]).contains("2 servers stopped"));
    assert!(cluster.checked_output(&["restart"]).contains("2 servers serve"));
    assert!(commits() >= 2.0 * HALF_US);
}

#[test]
fn places_that_cannot_be_are_named() {
    let (_dir, two) = file();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    let up = ["cluster", "--dir", dir, "up", "--geo"];
    let bench = ["bench", "bank", "--driver", "cluster", "--geo"];
    for (arguments, expected) in [
        (&[&up[..], &["nowhere"]].concat(), "there is no geography `nowhere`"),
        (&[&up[..], &[&two, "--sites", "3"]].concat(), "3 sites, of 2"),
        (&[&up[..], &[&two, "--sites", "2", "--servers", "1"]].concat(), "1 servers for 2 sites"),
        (&[&up[..], &[&two, "--shards", "here"]].concat(), "`score` has no shards"),
        (
            &[&up[..], &[&two, "--protocol", "sharded-pob", "--shards", "here,far"]].concat(),
            "there is no such site: there are `here`, `there`",
        ),
        (&[&bench[..], &[&two, "--shards", "here here,there"]].concat(), "shard 1 has 2 members"),
        (
            &[&bench[..], &[&two, "--shards", "here,there", "--replicas", "3"]].concat(),
            "leave --repositories and --replicas out",
        ),
        (&[&bench[..], &[&two, "--connect", "127.0.0.1:1"]].concat(), "not --connect"),
        (&[&bench[..], &[&two, "--machine", "rack-nodes=1"]].concat(), "not both"),
    ] {
        let output = muesli(arguments).output().unwrap();
        let error = output_text(&output);
        assert!(output.status.code() != Some(0) && error.contains(expected), "{error}");
    }
}
