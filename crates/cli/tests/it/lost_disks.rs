//! A node whose disk is lost, and which no group keeps. Under protocols that have all data at all
//! sites it comes back with the data of another one; where keys move, without what it owned, and it
//! finds the keys that others own.

use std::io::Write as _;
use std::time::{Duration, Instant};

use muesli::{Connect, Db, Error, SpaceOptions};

use crate::cluster::{Cluster, muesli, output_text};
use crate::groups::under_load_of;

/// Whatever is waited for comes long before.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the table of repositories says.
fn table(cluster: &Cluster) -> String {
    let addresses = cluster.addresses().join(",");
    output_text(&muesli(&["admin", "members", "--connect", &addresses]).output().unwrap())
}

fn wait_until_all_serve(cluster: &Cluster) {
    let deadline = Instant::now() + PATIENCE;
    while table(cluster).matches("serves").count() < 3 {
        assert!(Instant::now() < deadline, "{}", table(cluster));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A server that was killed loses its folder: it is refused, and starts where the loss is accepted.
fn comes_back_without_its_disk(cluster: &Cluster, node: usize) {
    let lose = || std::fs::remove_dir_all(cluster.node(node).join("data")).unwrap();
    lose();
    // Nobody takes it for what it was.
    let number = node.to_string();
    let refused = cluster.run(&["restart", &number]);
    assert_ne!(refused.status.code(), Some(0), "{}", output_text(&refused));
    let why = cluster.last_output(node);
    assert!(why.contains("has lost its data") && why.contains("accept_loss = true"), "{why}");
    // It ends alone.
    let table = cluster.checked_output(&["status"]);
    assert_eq!(table.matches("dead").count(), 1, "{table}");
    let keys = cluster.node(node).join("muesli.toml");
    let mut keys = std::fs::OpenOptions::new().append(true).open(keys).unwrap();
    writeln!(keys, "accept_loss = true").unwrap();
    lose();
    cluster.checked_output(&["restart", &number]);
}

#[test]
fn a_site_that_lost_its_folder_gets_its_data_back_from_the_others() {
    let cluster = Cluster::up(&["--nodes", "3", "--protocol", "alvin"]);
    // How commits ended that were asked for at the lost site nobody knows, nor their versions.
    let near = |node| {
        let (addresses, protocol) = (cluster.addresses(), cluster.protocol.clone());
        let (near, history) = (Some(node), true);
        Db::connect_with(Connect { addresses, protocol, near, history, ..Connect::default() })
    };
    under_load_of(&cluster, vec![near(0).unwrap(), near(1).unwrap()], |get_on| {
        get_on("all is well");
        cluster.checked_output(&["kill", "2"]);
        comes_back_without_its_disk(&cluster, 2);
        wait_until_all_serve(&cluster);
        get_on("it is back");
        // Half of the majority that there is now is the new member.
        cluster.checked_output(&["kill", "0"]);
        get_on("another one is dead");
        cluster.checked_output(&["restart", "0"]);
        // What it has got back is on its own disk now, and the key does no harm.
        cluster.checked_output(&["kill", "2"]);
        cluster.checked_output(&["restart", "2"]);
        wait_until_all_serve(&cluster);
        get_on("all are back");
    });
}

/// Keys move to who writes them. Those that other servers own are found again by a directory that
/// has lost its disk; those that it owned itself are gone, and can be inserted once more.
#[test]
fn a_directory_that_lost_its_folder_finds_the_keys_that_others_own() {
    const KEYS: u64 = 3_000;
    let cluster = Cluster::up(&["--nodes", "3", "--protocol", "tfa", "--replicas", "1"]);
    let near = |node| cluster.connect_near(Some(node), false);
    let (own, others) = (near(0), near(1));
    let counters = others.create_space("counters", SpaceOptions::default()).unwrap();
    let counters = counters.typed::<u64, u64>();
    let write = |db: &Db, keys: std::ops::Range<u64>, value: u64| {
        db.blocking().transact(async move |tx| {
            for key in keys.clone() {
                counters.put(tx, &key, &value).await?;
            }
            Ok::<_, Error>(())
        })
    };
    for from in (0..KEYS).step_by(500) {
        write(&others, from..from + 500, 1).unwrap();
    }
    write(&own, KEYS..KEYS + 100, 1).unwrap();
    cluster.checked_output(&["kill", "0"]);
    comes_back_without_its_disk(&cluster, 0);
    let read = |db: &Db, keys: std::ops::Range<u64>| {
        db.blocking().transact(async move |tx| {
            let keys: Vec<u64> = keys.clone().collect();
            counters.get_many(tx, &keys).await
        })
    };
    for db in [near(0), near(2), others] {
        for from in (0..KEYS).step_by(500) {
            let found = read(&db, from..from + 500).unwrap();
            assert!(found.iter().all(|value| *value == Some(1)), "{from}: {found:?}");
        }
        assert_eq!(read(&db, KEYS..KEYS + 100).unwrap(), vec![None; 100]);
    }
    let again = near(0);
    write(&again, 0..100, 2).unwrap();
    write(&again, KEYS..KEYS + 100, 2).unwrap();
    // The key does no harm now, and what was found is known after a restart.
    cluster.checked_output(&["kill", "0"]);
    cluster.checked_output(&["restart", "0"]);
    let found = read(&near(2), 0..KEYS + 100).unwrap();
    let is_written = |key: u64| !(100..KEYS).contains(&key);
    let due = (0..KEYS + 100).map(|key| Some(if is_written(key) { 2 } else { 1 }));
    assert_eq!(found, due.collect::<Vec<_>>());
}

/// A new cluster has nobody who could give data back: that is said, with what to do.
#[test]
fn servers_that_all_say_that_they_lost_their_disks_name_the_way_out() {
    let lost = ["--set", "accept_loss=true"];
    let up = [&["--nodes", "3", "--protocol", "alvin"], &lost[..]].concat();
    let cluster = Cluster::up(&up);
    let deadline = Instant::now() + PATIENCE;
    let names_it =
        |node: usize| cluster.last_output(node).contains("start them without `accept_loss`");
    while !(0..3).all(names_it) {
        assert!(Instant::now() < deadline, "{}", cluster.last_output(0));
        std::thread::sleep(Duration::from_millis(100));
    }
}
