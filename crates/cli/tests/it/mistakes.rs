//! What somebody is told who calls a command in a way that it does not take.

use crate::cluster::muesli;

#[test]
fn mistakes_are_told_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("muesli.toml");
    std::fs::write(&file, "replicsa = 2").unwrap();
    let file = file.to_str().unwrap();
    let none = dir.path().join("none");
    let none = none.to_str().unwrap();
    let mistakes: &[(&[&str], &str)] = &[
        (&["start", "--config", file], "`replicsa`; did you mean `replicas`?"),
        (
            &["start", "--replicas", "2", "--listen", "127.0.0.1:0", "--data-dir", none],
            "2 replicas",
        ),
        (
            &["start", "--group", "3", "--listen", "127.0.0.1:0", "--data-dir", none],
            "groups of 3 on 1 nodes",
        ),
        (&["bench", "bank", "--group", "3"], "--group is for the drivers cluster and sim"),
        (&["admin", "members", "--connect", "127.0.0.1:1"], "no server of 127.0.0.1:1 answered"),
        (&["admin", "partitions", "--connect", "127.0.0.1:1"], "no server of 127.0.0.1:1 answered"),
        (&["start", "--listen", "nowhere"], "cannot listen on nowhere"),
        (
            &["start", "--dead-after-ms", "500", "--connections-max", "1", "--data-dir", none],
            "`dead_after_ms` = 500 must be at least twice `alive_every_ms` = 1000",
        ),
        (&["start", "--frame-bytes-max", "1000", "--data-dir", none], "at least 100728832"),
        (&["start", "--group-tick-ms", "86400000", "--data-dir", none], "1 to 1000"),
        (
            &["start", "--connections-max", "1", "--data-dir", none],
            "`connections_max` = 1 must be at least 9",
        ),
        (
            &["start", "--protocol", "tea", "--listen", "127.0.0.1:0"],
            "`tea`: there is no such protocol",
        ),
        (&["cluster", "status", "--dir", none], "no cluster in"),
        (&["torture", "--memory", "--faults", "pause,kill"], "loses what it holds in memory"),
        (&["torture", "--minutes", "0"], "numbers above 0"),
        (&["torture", "--faults", "flood"], "flood"),
        (&["bench", "bank", "--connect", "127.0.0.1:1"], "driver cluster"),
        (
            &["bench", "bank", "--driver", "cluster", "--connect", "127.0.0.1:1"],
            "no server of 127.0.0.1:1 answered",
        ),
    ];
    for (arguments, part) in mistakes {
        let output = muesli(arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(part), "{arguments:?}: {error}");
        assert!(error.lines().skip(1).all(|line| line.starts_with("  ")), "{error}");
    }
}
