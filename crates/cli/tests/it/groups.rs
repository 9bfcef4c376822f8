//! Groups of real processes: leaders die, folders are lost, members move, nodes come and go.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use muesli_cluster::lifecycle::visit::Visit;
use muesli_cluster::wire::control::Control;
use muesli_core::{Index, ReplicaRole, RepositoryId, SpaceOptions};
use muesli_workloads::available::find;
use muesli_workloads::connected::Clients;
use muesli_workloads::history::by_versions;
use muesli_workloads::simulated::guarantee;
use muesli_workloads::tally::Tallies;

use crate::cluster::{Cluster, muesli, output_text};

const CLIENTS: u32 = 8;
/// Whatever is waited for comes long before.
const PATIENCE: Duration = Duration::from_secs(120);

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The members of a node with their roles; none if it does not answer.
fn replica_roles(cluster: &Cluster, node: usize) -> Vec<(RepositoryId, ReplicaRole)> {
    let asked = Visit::begin(&cluster.addresses()[node], Duration::from_secs(5))
        .and_then(|mut visit| visit.ask(&Control::AskMembers));
    match asked {
        Ok(Control::Members { members, .. }) => members,
        _ => Vec::new(),
    }
}

pub(crate) fn all_take_part(cluster: &Cluster, nodes: &[usize]) {
    wait_until("all members take part", || {
        nodes.iter().all(|&node| {
            let mut replica_roles = replica_roles(cluster, node);
            replica_roles.retain(|(_, role)| *role != ReplicaRole::Moved);
            !replica_roles.is_empty() && replica_roles.iter().all(|(_, role)| role.takes_part())
        })
    });
}

/// The node whose member of the first group leads it.
fn leader(cluster: &Cluster, nodes: usize) -> usize {
    let mut found = None;
    wait_until("the first group has a leader", || {
        let leads = |node: &usize| {
            let first = |(member, role): &(RepositoryId, ReplicaRole)| {
                member.0 < 9 && *role == ReplicaRole::Leads
            };
            replica_roles(cluster, *node).iter().any(first)
        };
        found = (0..nodes).find(leads);
        found.is_some()
    });
    found.unwrap()
}

fn admin(cluster: &Cluster, arguments: &[&str]) -> String {
    let addresses = cluster.addresses().join(",");
    let output = muesli(
        &[&["admin", "--connect", &addresses, "--secret-file", &cluster.secret()], arguments]
            .concat(),
    )
    .output()
    .unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", output_text(&output));
    output_text(&output)
}

/// Runs transfers while `meanwhile` does its worst, and judges all that was seen. `meanwhile` is
/// given a way to wait until the clients have got on.
pub(crate) fn under_load(cluster: &Cluster, meanwhile: impl FnOnce(&dyn Fn(&str)) + Send) {
    under_load_of(cluster, vec![cluster.connect(true), cluster.connect(true)], meanwhile);
}

/// The same, with these clients.
pub(crate) fn under_load_of(
    cluster: &Cluster,
    dbs: Vec<muesli::Db>,
    meanwhile: impl FnOnce(&dyn Fn(&str)) + Send,
) {
    let clients = Clients {
        dbs,
        workload: find("bank").unwrap().build(&["objects=200".to_owned()], CLIENTS).unwrap(),
        tallies: Arc::new(Tallies::new(CLIENTS)),
        seed: 1,
        pause_most: Duration::from_millis(4),
        stop: Arc::default(),
    };
    clients.load().unwrap();
    let get_on = |when: &str| {
        let before = clients.tallies.total().committed;
        wait_until(&format!("clients got on when {when}"), || {
            clients.tallies.total().committed > before + 200
        });
    };
    std::thread::scope(|scope| {
        let ran = scope.spawn(|| clients.run());
        let stop = Stop(&clients);
        meanwhile(&get_on);
        drop(stop);
        ran.join().unwrap().unwrap();
    });
    let checks = clients.check(PATIENCE).unwrap();
    assert!(checks.iter().all(|check| check.ok), "{checks:?}");
    let catalog = clients.dbs[0].catalog();
    let history = by_versions(&clients.close(), &catalog, Default::default()).unwrap();
    let (level, options) = guarantee(&cluster.protocol).unwrap();
    let verdict = muesli_check::check(&history, level, &options);
    assert!(verdict.holds(), "{verdict}");
}

/// Stops the clients, also where a test fails: their thread is waited for.
struct Stop<'a>(&'a Clients);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_group_serves_on_when_its_leader_is_killed_and_the_dead_one_catches_up() {
    let cluster = Cluster::up(&["--nodes", "3", "--group", "3", "--replicas", "2"]);
    under_load(&cluster, |get_on| {
        for _ in 0..2 {
            get_on("all is well");
            let victim = leader(&cluster, 3);
            cluster.checked_output(&["kill", &victim.to_string()]);
            get_on("a leader is dead");
            cluster.checked_output(&["restart", &victim.to_string()]);
            all_take_part(&cluster, &[0, 1, 2]);
        }
        get_on("all are back");
    });
}

#[test]
fn a_node_that_lost_its_folder_learns_everything_from_the_others() {
    // Checkpoints stand for many entries, so that it is sent one.
    let cluster = Cluster::up(&["--nodes", "3", "--group", "3", "--set", "checkpoint_bytes=40000"]);
    under_load(&cluster, |get_on| {
        get_on("all is well");
        cluster.checked_output(&["kill", "2"]);
        std::fs::remove_dir_all(cluster.node(2).join("data")).unwrap();
        get_on("a node is dead");
        cluster.checked_output(&["restart", "2"]);
        all_take_part(&cluster, &[0, 1, 2]);
        // What was committed before it was lost is needed of it now.
        cluster.checked_output(&["kill", "0"]);
        get_on("one of the others is dead");
        cluster.checked_output(&["restart", "0"]);
        all_take_part(&cluster, &[0, 1, 2]);
    });
}

/// These nodes are killed, and come back without their folders.
fn lose_folders(cluster: &Cluster, nodes: &[usize]) {
    for &node in nodes {
        cluster.checked_output(&["kill", &node.to_string()]);
        std::fs::remove_dir_all(cluster.node(node).join("data")).unwrap();
    }
    // Servers without a folder wait for each other.
    std::thread::scope(|scope| {
        for node in nodes {
            scope.spawn(move || cluster.checked_output(&["restart", &node.to_string()]));
        }
    });
}

/// How many members say that they are lost.
fn lost(cluster: &Cluster) -> usize {
    let addresses = cluster.addresses().join(",");
    // Groups without a majority are an error besides.
    let output = muesli(&["admin", "members", "--connect", &addresses]).output().unwrap();
    let table = output_text(&output);
    table.lines().filter(|line| line.contains("lost its memory")).count()
}

#[test]
fn a_group_all_of_whose_folders_are_lost_is_noticed_by_a_server_that_has_none_of_it() {
    let cluster = Cluster::up(&["--nodes", "4", "--group", "3"]);
    all_take_part(&cluster, &[0, 1, 2, 3]);
    let placed = admin(&cluster, &["placement"]);
    lose_folders(&cluster, &[0, 1, 2]);
    // All three members of the first group, and two of each of the others.
    wait_until("all of them know that they are lost", || lost(&cluster) == 9);
    let first = |node: usize| replica_roles(&cluster, node).iter().any(|(member, _)| member.0 < 3);
    assert!((0..3).all(first) && !first(3), "{placed}");
}

#[test]
fn two_lost_folders_are_noticed_and_the_loss_is_accepted_by_people_only() {
    let cluster = Cluster::up(&["--nodes", "3", "--group", "3"]);
    all_take_part(&cluster, &[0, 1, 2]);
    lose_folders(&cluster, &[1, 2]);
    wait_until("they know that they are lost", || lost(&cluster) == 6);
    wait_until("one of them says so", || {
        cluster.last_output(1).contains("a majority of its group has lost its folders")
    });
    for node in [1, 2] {
        let file = cluster.node(node).join("muesli.toml");
        let keys = std::fs::read_to_string(&file).unwrap() + "accept_loss = true\n";
        std::fs::write(file, keys).unwrap();
        cluster.checked_output(&["restart", &node.to_string()]);
    }
    all_take_part(&cluster, &[0, 1, 2]);
    under_load(&cluster, |get_on| get_on("the loss is accepted"));
}

#[test]
fn members_move_while_clients_run_and_nodes_come_and_go() {
    let cluster = Cluster::up(&["--nodes", "3", "--group", "3"]);
    under_load(&cluster, |get_on| {
        get_on("all is well");
        assert!(cluster.checked_output(&["add"]).contains("server 3 serves"));
        let first = leader(&cluster, 3);
        let member =
            replica_roles(&cluster, first).iter().map(|(member, _)| member.0).min().unwrap();
        let moved = admin(&cluster, &["move", &member.to_string(), "3"]);
        assert!(moved.contains("lives on node 3 and takes part"), "{moved}");
        get_on("a leader has moved");
        let drained = admin(&cluster, &["drain", "1"]);
        assert!(drained.contains("server 1 holds no members any more"), "{drained}");
        // It is not needed for anything, and what it knew is elsewhere.
        cluster.checked_output(&["kill", "1"]);
        get_on("the drained node is dead");
        let victim = leader(&cluster, 4);
        cluster.checked_output(&["kill", &victim.to_string()]);
        get_on("a leader is dead as well");
        cluster.checked_output(&["restart", &victim.to_string()]);
    });
    all_take_part(&cluster, &[0, 2, 3]);
    let table = admin(&cluster, &["members"]);
    assert_eq!(table.matches("leads").count() + table.matches("follows").count(), 9, "{table}");
    assert!(table.contains("does not answer"), "{table}");
}

#[test]
fn a_group_grows_and_shrinks_while_clients_run_and_leaders_die() {
    let cluster = Cluster::up(&["--nodes", "5", "--group", "3"]);
    all_take_part(&cluster, &[0, 1, 2, 3, 4]);
    under_load(&cluster, |get_on| {
        get_on("all is well");
        let grown = admin(&cluster, &["grow", "0", "3"]);
        assert!(grown.contains("group 0 has 4 members; member 3 takes part"), "{grown}");
        get_on("there are four");
        let grown = admin(&cluster, &["grow", "0", "4"]);
        assert!(grown.contains("group 0 has 5 members; member 4 takes part"), "{grown}");
        get_on("there are five");
        // Two of five may be lost, also when they were those who had decided everything before.
        let first = leader(&cluster, 5);
        cluster.checked_output(&["kill", &first.to_string()]);
        get_on("the leader is dead");
        let second = leader(&cluster, 5);
        cluster.checked_output(&["kill", &second.to_string()]);
        wait_until("another one leads", || leader(&cluster, 5) != second);
        cluster.checked_output(&["restart", &second.to_string()]);
        get_on("one of two is back");
        // The other one is taken from the group while it is dead, and hears of it later.
        let shrunk = admin(&cluster, &["shrink", "0", &first.to_string()]);
        assert!(shrunk.contains("group 0 has 4 members"), "{shrunk}");
        cluster.checked_output(&["restart", &first.to_string()]);
        let led = leader(&cluster, 5);
        let shrunk = admin(&cluster, &["shrink", "0", &led.to_string()]);
        assert!(shrunk.contains("group 0 has 3 members"), "{shrunk}");
        get_on("the group has shrunk");
        assert_ne!(leader(&cluster, 5), led);
        let refused = refused(&cluster, &["shrink", "0", &led.to_string()]);
        assert!(refused.contains("no member of group 0 lives on node"), "{refused}");
        let placed = admin(&cluster, &["placement"]);
        assert!(!placed.contains("to go"), "{placed}");
        cluster.checked_output(&["kill", &led.to_string()]);
        get_on("a server that is not of the group any more is dead");
        cluster.checked_output(&["restart", &led.to_string()]);
    });
    all_take_part(&cluster, &[0, 1, 2, 3, 4]);
}

#[test]
fn a_drained_server_leaves_for_good_dead_or_alive() {
    let cluster = Cluster::up(&["--nodes", "3", "--group", "3"]);
    cluster.checked_output(&["add"]);
    let refused = |arguments: &[&str]| refused(&cluster, arguments);
    assert!(
        refused(&["leave", "1"]).contains("server 1 holds members 1, 9, 20: `muesli admin drain")
    );
    assert!(refused(&["leave", "0"]).contains("server 0 holds members"));
    assert!(refused(&["leave", "7"]).contains("there is no server 7"));
    // One that runs hears of it, stops, and says so.
    admin(&cluster, &["drain", "1"]);
    assert!(admin(&cluster, &["leave", "1"]).contains("server 1 has left the cluster for good"));
    wait_until("it has stopped", || cluster.last_output(1).contains("was taken off"));
    // One that is dead hears of it when it comes back.
    cluster.checked_output(&["add"]);
    cluster.checked_output(&["kill", "4"]);
    admin(&cluster, &["leave", "4"]);
    assert!(
        output_text(&cluster.run(&["restart", "4"]))
            .contains("node 4 was taken off its cluster's list")
    );
    assert!(
        output_text(&cluster.run(&["restart", "1"]))
            .contains("node 1 was taken off its cluster's list")
    );
    assert!(refused(&["drain", "4"]).contains("server 4 has left the cluster"));
    assert!(refused(&["move", "0", "4"]).contains("there is no node 4"));
    assert!(refused(&["leave", "4"]).contains("server 4 has left the cluster"));
    assert!(refused(&["join", "4", "127.0.0.1:1"]).contains("the next server to join is node 5"));
    assert!(cluster.checked_output(&["add"]).contains("server 5 serves"));
    all_take_part(&cluster, &[0, 2, 3]);
    assert!(!admin(&cluster, &["members"]).contains("does not answer"));
}

#[test]
fn the_first_server_leaves_and_spaces_are_made_without_it() {
    let cluster = Cluster::up(&["--nodes", "3", "--group", "3"]);
    cluster.checked_output(&["add"]);
    let db = cluster.connect(false);
    let space = |name: &str| db.create_space(name, SpaceOptions::default());
    let first = space("first").unwrap();
    under_load(&cluster, |get_on| {
        get_on("all is well");
        // Nobody makes the spaces alone: not the first one either, while it is there.
        cluster.checked_output(&["kill", "0"]);
        let second = space("second").unwrap();
        assert_ne!(first, second);
        get_on("the first server is dead");
        admin(&cluster, &["drain", "0"]);
        assert!(
            admin(&cluster, &["leave", "0"]).contains("server 0 has left the cluster for good")
        );
        assert_eq!(space("second").unwrap(), second);
        space("third").unwrap();
        get_on("the first server has left");
    });
    let message = output_text(&cluster.run(&["restart", "0"]));
    assert!(message.contains("node 0 was taken off its cluster's list"), "{message}");
    // Somebody else, who comes now, makes the same ones.
    let other = cluster.connect(false);
    assert_eq!(other.create_space("first", SpaceOptions::default()).unwrap(), first);
    let hash = SpaceOptions { index: Index::Hash, ..SpaceOptions::default() };
    let refused = other.create_space("third", hash).unwrap_err().to_string();
    assert!(refused.contains("exists already with other options"), "{refused}");
    all_take_part(&cluster, &[1, 2, 3]);
}

#[test]
fn no_server_of_several_loops_ever_holds_two_members_of_a_group() {
    let up = ["--nodes", "3", "--loops", "2", "--group", "3", "--memory"];
    let cluster = Cluster::up(&up);
    // Members 0, 1 and 2 are on the first loops of the three: on nodes 0, 2 and 4.
    let moved = refused(&cluster, &["move", "0", "3"]);
    let message = "lives on node 2, which is another loop of the server of node 3";
    assert!(moved.contains(message), "{moved}");
    assert!(refused(&cluster, &["drain", "1"]).contains("finds no other node"));
    assert!(admin(&cluster, &["move", "0", "1"]).contains("member 0 lives on node 1"));
    assert!(cluster.checked_output(&["add"]).contains("server 3 serves"));
    let drained = admin(&cluster, &["drain", "1"]);
    assert!(drained.contains("server 1 holds no members any more"), "{drained}");
    admin(&cluster, &["leave", "1"]);
    let placed = admin(&cluster, &["placement"]);
    let numbers = |line: &str| -> Vec<u32> {
        line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    let rows: Vec<_> = placed.lines().map(numbers).filter(|row| row.len() == 5).collect();
    assert_eq!(rows.len(), 18, "{placed}");
    for members in rows.chunks(3) {
        let mut servers: Vec<_> = members.iter().map(|row| row[3] / 2).collect();
        servers.sort_unstable();
        assert_eq!(servers, [0, 2, 3], "{placed}");
    }
}

/// What is said about a command that is refused.
fn refused(cluster: &Cluster, arguments: &[&str]) -> String {
    let addresses = cluster.addresses().join(",");
    let secret = cluster.secret();
    let all = [&["admin", "--connect", &addresses, "--secret-file", &secret], arguments].concat();
    let output = muesli(&all).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", output_text(&output));
    output_text(&output)
}

#[test]
fn mistakes_of_those_who_look_after_groups_are_told() {
    let cluster = Cluster::up(&["--nodes", "3", "--group", "3", "--memory"]);
    all_take_part(&cluster, &[0, 1, 2]);
    let refused = |arguments: &[&str]| refused(&cluster, arguments);
    assert!(refused(&["move", "0", "1"]).contains("member 1 of the same group lives on node 1"));
    assert!(refused(&["move", "0", "7"]).contains("there is no node 7"));
    assert!(refused(&["move", "3", "1"]).contains("there is no member 3"));
    assert!(refused(&["drain", "0"]).contains("finds no other node"));
    assert!(refused(&["grow", "0", "1"]).contains("lives on node 1"));
    assert!(refused(&["grow", "7", "1"]).contains("there is no group 7"));
    assert!(refused(&["shrink", "0", "7"]).contains("no member of group 0 lives on node 7"));
    assert!(refused(&["join", "7", "127.0.0.1:1"]).contains("the next server to join is node 3"));
    let lone = Cluster::up(&["--nodes", "1", "--memory"]);
    let addresses = lone.addresses().join(",");
    let output = muesli(&["admin", "grow", "0", "0", "--connect", &addresses]).output().unwrap();
    assert!(
        output_text(&output).contains("this cluster has no groups"),
        "{}",
        output_text(&output)
    );
}

#[test]
fn a_lost_majority_is_an_error() {
    let cluster = Cluster::up(&["--servers", "3", "--group", "3"]);
    let members = || {
        let addresses = cluster.addresses().join(",");
        muesli(&["admin", "members", "--connect", &addresses]).output().unwrap()
    };
    let output = members();
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    cluster.checked_output(&["kill", "0"]);
    wait_until("two of three go on", || members().status.code() == Some(0));
    cluster.checked_output(&["kill", "1"]);
    wait_until("the majority is lost", || members().status.code() == Some(1));
    let text = output_text(&members());
    assert!(text.contains("muesli: group 0 has no majority: "), "{text}");
    assert!(text.contains("serves again when 2 do"), "{text}");
}
