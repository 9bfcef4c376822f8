//! Trees of validators on real processes.

use std::path::Path;

use serde_json::Value;

use super::cluster::{Cluster, bank_holds, muesli, output_text};
use super::commands::{assert_refused, muesli as run, status, text};

const HIERARCHY: [&str; 4] = ["--memory", "--protocol", "hierarchy", "--nodes"];

fn file_of_tree() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/trees/two-sites.txt");
    path.display().to_string()
}

/// What `muesli admin` says, if it is done.
fn admin(cluster: &Cluster, arguments: &[&str]) -> Result<String, String> {
    let (addresses, secret) = (cluster.addresses().join(","), cluster.secret());
    let common = ["--connect", &addresses, "--secret-file", &secret];
    let common = [&common[..], &["--protocol", &cluster.protocol]].concat();
    let output = muesli(&[&["admin"], arguments, &common].concat()).output().unwrap();
    let printed = output_text(&output);
    if output.status.code() == Some(0) { Ok(printed) } else { Err(printed) }
}

/// What all validators of a cluster have counted, each with its node.
fn counted(cluster: &Cluster, what: &str) -> Vec<(u64, u64)> {
    let json = admin(cluster, &["tree", "--json", "--seconds", "0.1"]).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    let inner = json["inner"].as_array().unwrap();
    let validators = inner.iter().flat_map(|it| it["validators"].as_array().unwrap());
    let of = |it: &Value| (it["node"].as_u64().unwrap(), it[what].as_u64().unwrap());
    validators.map(of).collect()
}

/// Runs transfers once more, over the data of an earlier run.
fn bank_goes_on(cluster: &Cluster) {
    let addresses = cluster.addresses().join(",");
    let driver = ["bench", "bank", "--driver", "cluster", "--connect", &addresses];
    let rest = ["--protocol", &cluster.protocol, "--transactions", "1000", "--clients", "8"];
    let output = muesli(&[&driver[..], &rest].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
}

#[test]
fn votes_climb_the_tree_of_a_cluster() {
    let cluster = Cluster::up(&[&HIERARCHY[..], &["4", "--tree", "2x2"]].concat());
    bank_holds(&cluster, 2_000);
    let decided = counted(&cluster, "decided");
    assert_eq!(decided.iter().map(|(node, _)| *node).collect::<Vec<_>>(), [0, 0, 2]);
    assert!(decided.iter().all(|(_, count)| *count > 50), "{decided:?}");
    let passed_up = counted(&cluster, "passed-up");
    assert!(passed_up[0].1 == 0 && passed_up[1].1 > 50 && passed_up[2].1 > 50, "{passed_up:?}");
    let drawn = admin(&cluster, &["tree", "--seconds", "0.1"]).unwrap();
    assert!(drawn.starts_with("tree of epoch 1; inner nodes: 3, validators: 3"), "{drawn}");
    for part in ["inner node 0", "├─ inner node 1", "│  └─ repository 1", "   └─ repository 3"]
    {
        assert!(drawn.contains(part), "{part} is not in\n{drawn}");
    }
    let numbers = admin(&cluster, &["status"]).unwrap();
    assert!(numbers.contains("validator-2-decided"), "{numbers}");
}

#[test]
fn validators_live_on_servers_of_their_own_and_share_the_transactions() {
    let tree = ["3", "--tree", "3", "--validators", "2", "--validator-nodes", "2"];
    let cluster = Cluster::up(&[&HIERARCHY[..], &tree].concat());
    bank_holds(&cluster, 2_000);
    let decided = counted(&cluster, "decided");
    assert_eq!(decided.iter().map(|(node, _)| *node).collect::<Vec<_>>(), [3, 4]);
    let (least, most) =
        (decided.iter().min_by_key(|it| it.1), decided.iter().max_by_key(|it| it.1));
    let (least, most) = (least.unwrap().1, most.unwrap().1);
    assert!(least > 100 && most < 2 * least, "{decided:?}");
    let members = admin(&cluster, &["members"]).unwrap();
    assert_eq!(members.lines().filter(|line| line.contains("127.0.0.1")).count(), 3, "{members}");
}

/// How many transfers new clients commit in a second, over the data of an earlier run.
fn committed_in_a_second(cluster: &Cluster) -> u64 {
    let addresses = cluster.addresses().join(",");
    let driver = ["bench", "bank", "--driver", "cluster", "--connect", &addresses];
    let rest = ["--protocol", &cluster.protocol, "--seconds", "1", "--clients", "8"];
    let file = cluster.node(0).join("bench.json");
    let file = file.display().to_string();
    let output = muesli(&[&driver[..], &rest, &["--json", &file]].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    let json: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let run = json.as_array().map_or(&json, |runs| &runs[0]);
    run["committed"].as_u64().unwrap()
}

/// They never had a link to its server, and gather the votes themselves that would pass there: were
/// each such commit to wait for its coordinator's patience, a tenth would commit, at all times.
/// What else runs on the machine decides, too: so they have several tries.
#[test]
fn clients_that_come_after_a_validator_died_do_not_wait_for_it() {
    let tree = ["3", "--tree", "3", "--validators", "2", "--validator-nodes", "2"];
    let cluster = Cluster::up(&[&HIERARCHY[..], &tree].concat());
    bank_holds(&cluster, 500);
    let alive = committed_in_a_second(&cluster);
    cluster.signal(4, rustix::process::Signal::KILL);
    let mut tries = (0..8).map(|_| committed_in_a_second(&cluster));
    assert!(tries.any(|gone| gone * 4 > alive), "of {alive} a quarter at no time");
}

#[test]
fn groups_have_a_tree_too() {
    let tree = ["4", "--group", "3", "--tree", "2x2"];
    let cluster = Cluster::up(&[&HIERARCHY[..], &tree].concat());
    bank_holds(&cluster, 500);
    let decided = counted(&cluster, "decided");
    assert!(decided.len() == 3 && decided.iter().all(|(_, count)| *count > 10), "{decided:?}");
    let printed = admin(&cluster, &["tree", "set", "4", "--on", "3"]).unwrap();
    assert_eq!(printed, "the tree of epoch 2 is `3(r0 r1 r2 r3)`\n");
    bank_goes_on(&cluster);
    assert!(counted(&cluster, "decided")[0].1 > 50);
}

/// Every client goes on while trees come and go, and all that bank looks at holds.
#[test]
fn a_tree_is_changed_while_transactions_run() {
    let cluster = Cluster::up(&[&HIERARCHY[..], &["8", "--tree", "2x4"]].concat());
    let file = file_of_tree();
    let trees: [&[&str]; 6] = [
        &["8"],
        &["2x2x2", "--validators", "2"],
        &["none"],
        &[&file],
        &["4x2", "--on", "6,7"],
        &["2x4"],
    ];
    std::thread::scope(|scope| {
        let runs = scope.spawn(|| bank_holds(&cluster, 6_000));
        for (epoch, tree) in (2..).zip(trees) {
            let printed = admin(&cluster, &[&["tree", "set"], tree].concat()).unwrap();
            assert!(printed.starts_with(&format!("the tree of epoch {epoch} is ")), "{printed}");
        }
        runs.join().unwrap();
    });
    bank_goes_on(&cluster);
    let decided = counted(&cluster, "decided");
    assert!(decided.iter().all(|(_, count)| *count > 10), "{decided:?}");
    let error = admin(&cluster, &["tree", "set", "2x2"]).unwrap_err();
    assert!(error.contains("has 4 leaves, and there are 8 nodes with data"), "{error}");
    let error = admin(&cluster, &["tree", "set", "8", "--on", "9"]).unwrap_err();
    assert!(error.contains("live on node 9, which is no server of the cluster"), "{error}");
    let error = admin(&cluster, &["tree", "set", "8x"]).unwrap_err();
    assert!(error.contains("`8x` is no tree, nor `none`"), "{error}");
}

/// What is printed when all servers start again, and this one with another tree.
fn with_other_tree(cluster: &Cluster, node: usize, tree: &str) -> String {
    cluster.checked_output(&["down"]);
    let path = cluster.node(node).join("muesli.toml");
    let keys = std::fs::read_to_string(&path).unwrap();
    let changed = keys.replace("tree = \"2x2\"", &format!("tree = {tree:?}"));
    assert_ne!(changed, keys);
    std::fs::write(&path, changed).unwrap();
    let output = cluster.run(&["restart"]);
    assert_ne!(output.status.code(), Some(0));
    (0..4).map(|node| cluster.last_output(node) + "\n").collect()
}

#[test]
fn a_server_with_another_tree_is_told_both() {
    let both = ["`0(0(r0 r1) 2(r2 r3))`", "`0(r0 r1 r2 r3)`"];
    let durable = ["--protocol", "hierarchy-locking", "--nodes", "4", "--tree", "2x2"];
    let printed = with_other_tree(&Cluster::up(&durable), 1, "4");
    let expected = format!("`tree` was {} and is {}", both[0], both[1]);
    assert!(printed.contains(&expected) && printed.contains("admin tree set"), "{printed}");
    // In memory nothing is kept, and the others tell.
    let cluster = Cluster::up(&[&HIERARCHY[..], &["4", "--tree", "2x2"]].concat());
    let printed = with_other_tree(&cluster, 3, "4");
    let refused = format!("its tree is {}, and that known here {}", both[0], both[1]);
    assert!(printed.contains(&refused), "{printed}");
}

/// A tree that was set is kept by servers that start again.
#[test]
fn a_tree_that_was_set_is_there_after_a_restart() {
    let cluster = Cluster::up(&["--protocol", "hierarchy", "--nodes", "4"]);
    let drawn = admin(&cluster, &["tree", "--seconds", "0.1"]).unwrap();
    assert!(drawn.starts_with("no tree was set: a root above all"), "{drawn}");
    let printed = admin(&cluster, &["tree", "set", "2x2", "--validators", "2"]).unwrap();
    assert_eq!(printed, "the tree of epoch 2 is `0+1(0+1(r0 r1) 2+3(r2 r3))`\n");
    cluster.checked_output(&["down"]);
    cluster.checked_output(&["restart"]);
    let drawn = admin(&cluster, &["tree", "--seconds", "0.1"]).unwrap();
    assert!(drawn.starts_with("tree of epoch 2; inner nodes: 3, validators: 6"), "{drawn}");
    bank_holds(&cluster, 300);
}

#[test]
fn the_same_file_is_for_all_drivers() {
    let file = file_of_tree();
    for driver in ["embedded", "sim", "cluster"] {
        let start = ["bench", "bank", "--driver", driver, "--protocol", "hierarchy"];
        let rest = ["--transactions", "300", "--clients", "4", "--json", "-"];
        let output = run(&[&start[..], &["--tree", &file], &rest].concat());
        assert_eq!(status(&output), 0, "{}", text(&output.stderr));
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["nodes"], 8);
        let checks = result["checks"].as_array().unwrap();
        assert!(checks.len() > 2 && checks.iter().all(|check| check["ok"] == true), "{result}");
    }
    let sim = ["sim", "bank", "--seeds", "1..4", "--protocol", "hierarchy", "--nodes", "8"];
    let apart = ["--tree", &file, "--validators", "2", "--validator-nodes", "3"];
    let output = run(&[&sim[..], &apart, &["--faults", "all"]].concat());
    assert_eq!(status(&output), 0, "{}{}", text(&output.stdout), text(&output.stderr));
}

#[test]
fn what_is_wrong_with_a_tree_is_said() {
    let bench = ["bench", "bank", "--transactions", "10"];
    let refused = |more: &[&str], parts: &[&str]| {
        assert_refused(&[&bench[..], more].concat(), parts);
    };
    let hierarchy = ["--protocol", "hierarchy"];
    let of = |more: &[&'static str]| [&hierarchy[..], more].concat();
    refused(&of(&["--tree", "2x2", "--nodes", "3"]), &["has 4 leaves, and there are 3 nodes"]);
    refused(&["--tree", "2x2"], &["protocol `score` goes by no tree"]);
    refused(&of(&["--tree", "2x"]), &["`2x` is no shape of a tree", "nor is it a file"]);
    refused(&of(&["--validators", "2"]), &["--tree"]);
    refused(&of(&["--tree", "2", "--validators", "3"]), &["3 validators for each inner node"]);
    let connect = ["--driver", "cluster", "--connect", "127.0.0.1:1", "--tree", "2"];
    refused(&of(&connect), &["not --connect", "admin tree set"]);
    let start = ["start", "--protocol", "score", "--tree", "1", "--durability", "memory"];
    assert_refused(&start, &["goes by no tree"]);
}

/// Four nodes in two racks, on a driver, with these options.
fn in_racks(driver: &str, more: &[&str]) -> std::process::Output {
    let options = ["--driver", driver, "--nodes", "4", "--tree", "2x2", "--clients", "4"];
    let objects = ["--param", "objects=160", "--param", "updates=4", "--param", "subtrees=2"];
    let racks = ["--machine", "rack-nodes=2", "--machine", "rack-packets=5000", "--json", "-"];
    let protocol = ["bench", "objects", "--protocol", "hierarchy-locking"];
    run(&[&protocol, &options[..], &objects, &racks, more].concat())
}

#[test]
fn racks_share_scarce_links_in_the_simulator_and_on_a_cluster() {
    for driver in ["sim", "cluster"] {
        let output = in_racks(driver, &["--transactions", "200"]);
        assert_eq!(status(&output), 0, "{driver}: {}", text(&output.stderr));
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        // At least two reads and two prepares go to the other rack, and are answered.
        let seen = result["throughput"].as_f64().expect("a number");
        assert!(seen < 2.0 * 5_000.0 / 8.0 * 1.2, "{driver}: {result}");
        let between = &result["between_racks"];
        assert_eq!(between.is_object(), driver == "sim", "{result}");
        assert!(driver != "sim" || between["packets"].as_f64() > Some(4.0), "{result}");
    }
    for (driver, more, expected) in [
        ("embedded", &[][..], "racks are for the driver sim, and for clusters"),
        ("cluster", &["--machine", "read-us=3"], "--machine is for the driver sim"),
        ("sim", &["--machine", "rack-nodes=3"], "4 nodes with data do not fill racks of 3"),
        ("sim", &["--machine", "rack-nodes=0"], "rack-packets and rack-mb are for racks"),
        ("cluster", &["--machine", "rack-nodes=3"], "4 servers do not fill racks of 3"),
    ] {
        let output = in_racks(driver, more);
        let error = text(&output.stderr);
        assert!(status(&output) != 0 && error.contains(expected), "{driver}: {error}");
    }
}
