//! A site whose disk is lost, under protocols that have all data at all sites: it comes back with
//! the data of another one.

use std::io::Write as _;
use std::time::{Duration, Instant};

use muesli::{Connect, Db};

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
        let lose = || std::fs::remove_dir_all(cluster.node(2).join("data")).unwrap();
        lose();
        // Nobody takes it for what it was.
        let refused = cluster.run(&["restart", "2"]);
        assert_ne!(refused.status.code(), Some(0), "{}", output_text(&refused));
        let why = cluster.last_output(2);
        assert!(why.contains("has lost its data") && why.contains("accept_loss = true"), "{why}");
        let keys = cluster.node(2).join("muesli.toml");
        let mut keys = std::fs::OpenOptions::new().append(true).open(keys).unwrap();
        writeln!(keys, "accept_loss = true").unwrap();
        lose();
        cluster.checked_output(&["restart", "2"]);
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
