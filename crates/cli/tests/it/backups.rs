//! Older copies of servers' folders that are put back: the other servers notice.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::cluster::{Cluster, output_text};
use crate::groups::{all_take_part, under_load};

/// Until signs of life have come from everybody.
const REPORTED_WITHIN: Duration = Duration::from_millis(500);
/// What is said of an older copy.
const OLDER_COPY: &str = "are an older copy";

fn up(arguments: &[&str]) -> Cluster {
    let often = ["--nodes", "3", "--set", "alive_every_ms=100", "--set", "dead_after_ms=2000"];
    Cluster::up(&[&often, arguments].concat())
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// Kills a node and copies its folder, as backups are made.
fn back_up(cluster: &Cluster, node: usize) {
    cluster.checked_output(&["kill", &node.to_string()]);
    copy(&cluster.node(node).join("data"), &cluster.node(node).join("older"));
    cluster.checked_output(&["restart", &node.to_string()]);
}

/// Kills a node whose folder was copied, and puts the copy back; the newest folder is put aside.
fn put_back(cluster: &Cluster, node: usize) {
    std::thread::sleep(REPORTED_WITHIN);
    cluster.checked_output(&["kill", &node.to_string()]);
    let folder = cluster.node(node);
    fs::rename(folder.join("data"), folder.join("newest")).unwrap();
    copy(&folder.join("older"), &folder.join("data"));
}

/// Starts a node, which is refused because its folder is an older copy.
fn is_refused(cluster: &Cluster, node: usize) -> String {
    let output = cluster.run(&["restart", &node.to_string()]);
    assert_eq!(output.status.code(), Some(2), "{}", output_text(&output));
    assert!(output_text(&output).contains(OLDER_COPY), "{}", output_text(&output));
    output_text(&output)
}

fn bring_newest(cluster: &Cluster, node: usize) {
    let folder = cluster.node(node);
    fs::remove_dir_all(folder.join("data")).unwrap();
    fs::rename(folder.join("newest"), folder.join("data")).unwrap();
    cluster.checked_output(&["restart", &node.to_string()]);
}

#[test]
fn a_member_with_an_older_folder_is_refused_and_the_others_go_on() {
    let cluster = up(&["--group", "3"]);
    under_load(&cluster, |get_on| {
        back_up(&cluster, 2);
        all_take_part(&cluster, &[0, 1, 2]);
        get_on("a folder was copied");
        put_back(&cluster, 2);
        assert!(is_refused(&cluster, 2).contains("had said that record"));
        get_on("the older copy was refused");
        bring_newest(&cluster, 2);
        all_take_part(&cluster, &[0, 1, 2]);
        get_on("all are back");
        // It begins anew with an empty folder; the one from before that is of another life.
        cluster.checked_output(&["kill", "2"]);
        fs::rename(cluster.node(2).join("data"), cluster.node(2).join("newest")).unwrap();
        cluster.checked_output(&["restart", "2"]);
        all_take_part(&cluster, &[0, 1, 2]);
        cluster.checked_output(&["kill", "2"]);
        fs::rename(cluster.node(2).join("data"), cluster.node(2).join("of the new life")).unwrap();
        fs::rename(cluster.node(2).join("newest"), cluster.node(2).join("data")).unwrap();
        assert!(is_refused(&cluster, 2).contains("begun anew since"));
        // An empty one will do.
        fs::remove_dir_all(cluster.node(2).join("data")).unwrap();
        cluster.checked_output(&["restart", "2"]);
        all_take_part(&cluster, &[0, 1, 2]);
    });
}

/// Its clock was ten years ahead as its data began. What it begins with after it lost them is older
/// by the clock, and is let in all the same; the lost folder is an older copy from then on.
#[test]
fn a_server_whose_clock_was_wrong_comes_back_with_an_empty_folder() {
    const YEARS_MS: u64 = 10 * 365 * 86_400_000;
    let cluster = up(&["--group", "3"]);
    under_load(&cluster, |get_on| {
        let folder = cluster.node(2);
        let (data, clock) = (folder.join("data"), folder.join("trouble.clock"));
        let file = folder.join("muesli.toml");
        let keys = fs::read_to_string(&file).unwrap();
        let trouble = format!("trouble_file = {:?}\n", folder.join("trouble"));
        cluster.checked_output(&["kill", "2"]);
        fs::write(&file, keys + &trouble).unwrap();
        fs::write(&clock, YEARS_MS.to_string()).unwrap();
        fs::remove_dir_all(&data).unwrap();
        cluster.checked_output(&["restart", "2"]);
        all_take_part(&cluster, &[0, 1, 2]);
        get_on("the clock is wrong");
        cluster.checked_output(&["kill", "2"]);
        fs::remove_file(&clock).unwrap();
        fs::rename(&data, folder.join("older")).unwrap();
        cluster.checked_output(&["restart", "2"]);
        all_take_part(&cluster, &[0, 1, 2]);
        get_on("the clock is right");
        put_back(&cluster, 2);
        assert!(is_refused(&cluster, 2).contains("begun anew since"));
        bring_newest(&cluster, 2);
        all_take_part(&cluster, &[0, 1, 2]);
    });
}

#[test]
fn without_groups_an_older_folder_is_refused_also_when_all_were_stopped() {
    let cluster = up(&["--replicas", "2"]);
    under_load(&cluster, |get_on| {
        back_up(&cluster, 0);
        get_on("a folder was copied");
        put_back(&cluster, 0);
        is_refused(&cluster, 0);
        bring_newest(&cluster, 0);
        get_on("the newest folder is back");
    });
    put_back_again(&cluster);
}

/// All are stopped, and one begins with an older folder.
fn put_back_again(cluster: &Cluster) {
    std::thread::sleep(REPORTED_WITHIN);
    cluster.checked_output(&["down"]);
    let folder = cluster.node(0);
    fs::rename(folder.join("data"), folder.join("newest")).unwrap();
    fs::rename(folder.join("older"), folder.join("data")).unwrap();
    std::thread::scope(|scope| {
        // They wait for the one that is refused, for as long as the command has patience.
        let others = ["1", "2"].map(|node| scope.spawn(move || cluster.run(&["restart", node])));
        is_refused(cluster, 0);
        others.into_iter().for_each(|it| drop(it.join().unwrap()));
    });
    // Somebody accepts the loss.
    let file = folder.join("muesli.toml");
    let keys = fs::read_to_string(&file).unwrap();
    fs::write(&file, keys + "accept_loss = true\n").unwrap();
    cluster.checked_output(&["restart", "0"]);
    // And the newest folder is the older one from then on.
    cluster.checked_output(&["kill", "0"]);
    fs::rename(folder.join("data"), folder.join("accepted")).unwrap();
    fs::rename(folder.join("newest"), folder.join("data")).unwrap();
    let keys = fs::read_to_string(&file).unwrap().replace("accept_loss = true\n", "");
    fs::write(&file, keys).unwrap();
    assert!(is_refused(cluster, 0).contains("begun anew since"));
}
