//! Servers that are told to stop while clients commit: what was acknowledged is there afterwards.

use rustix::process::Signal;

use crate::cluster::Cluster;
use crate::groups::under_load;

const NODES: usize = 3;

/// Stops servers by SIGTERM under load, one after the other and all at once, and starts them again.
fn stops_lose_nothing(arguments: &[&str]) {
    let nodes = NODES.to_string();
    let cluster = Cluster::up(&[&["--nodes", &nodes, "--replicas", "2"], arguments].concat());
    under_load(&cluster, |get_on| {
        for node in 0..NODES {
            get_on("all serve");
            cluster.checked_output(&["restart", &node.to_string()]);
            let output = std::fs::read_to_string(cluster.node(node).join("output")).unwrap();
            assert!(output.contains(&format!("server {node} stopped")), "{output}");
        }
        get_on("all serve again");
        assert!(cluster.checked_output(&["down"]).contains("3 servers stopped"));
        // They wait for each other.
        assert!(cluster.checked_output(&["restart"]).contains("3 servers serve"));
        assert!(cluster.checked_output(&["restart"]).contains("all servers serve already"));
        get_on("all were stopped at once");
    });
}

#[test]
fn servers_that_stop_in_order_lose_nothing_that_was_acknowledged() {
    for protocol in ["score", "gmu", "bumper", "2pc", "ngm", "granola", "sinfonia"] {
        stops_lose_nothing(&["--protocol", protocol]);
    }
}

#[test]
fn members_of_groups_that_stop_in_order_lose_nothing_that_was_acknowledged() {
    stops_lose_nothing(&["--group", "3"]);
}

#[test]
fn servers_outlive_the_terminal_that_they_were_started_from() {
    let cluster = Cluster::up(&["--nodes", "3", "--replicas", "2"]);
    under_load(&cluster, |get_on| {
        for node in 0..NODES {
            cluster.signal(node, Signal::HUP);
            get_on("the terminal is closed");
        }
        let status = cluster.checked_output(&["status"]);
        assert!(!status.contains("dead"), "{status}");
    });
}
