//! Servers of a protocol whose keys move to who commits them, killed while clients at different
//! servers take them from each other.

use crate::cluster::{Cluster, every_account_is_there, write_all_accounts};
use crate::groups::under_load_of;

const NODES: u32 = 3;
/// As many as `under_load_of` has.
const ACCOUNTS: u32 = 200;

/// Kills servers one after the other, and all at once, and starts them again.
fn kill_and_restart(cluster: &Cluster, get_on: &dyn Fn(&str)) {
    for victim in 0..NODES {
        get_on("all serve");
        cluster.checked_output(&["kill", &victim.to_string()]);
        cluster.checked_output(&["restart", &victim.to_string()]);
    }
    get_on("all serve again");
    for victim in 0..NODES {
        cluster.checked_output(&["kill", &victim.to_string()]);
    }
    cluster.checked_output(&["restart"]);
    get_on("all were dead at once");
}

#[test]
fn keys_that_move_are_found_and_keep_what_was_committed_when_servers_are_killed() {
    let nodes = NODES.to_string();
    let up = ["--protocol", "tfa", "--nodes", &nodes, "--replicas", "1"];
    let cluster = Cluster::up(&up);
    let clients = (0..NODES).map(|node| cluster.connect_near(Some(node), true)).collect();
    under_load_of(&cluster, clients, |get_on| kill_and_restart(&cluster, get_on));
    every_account_is_there(&cluster, ACCOUNTS);
}

/// What a client at one server has written is there: it goes on without the others, who were where
/// the keys were before.
#[test]
fn who_has_moved_keys_to_one_server_goes_on_when_all_others_are_dead() {
    let cluster = Cluster::up(&["--protocol", "tfa", "--nodes", "3", "--replicas", "1"]);
    let clients = (0..NODES).map(|node| cluster.connect_near(Some(node), true)).collect();
    under_load_of(&cluster, clients, |get_on| get_on("all serve"));
    let client = cluster.connect_near(Some(0), false);
    write_all_accounts(&client, ACCOUNTS);
    for victim in ["1", "2"] {
        cluster.checked_output(&["kill", victim]);
    }
    write_all_accounts(&client, ACCOUNTS);
    cluster.checked_output(&["restart"]);
    every_account_is_there(&cluster, ACCOUNTS);
}
