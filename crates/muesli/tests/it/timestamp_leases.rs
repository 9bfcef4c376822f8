//! Clients that are ended and start again, with timestamp leases and without, at servers whose
//! clocks do not agree.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use muesli::procedures::builtin::{Amount, Keyed};
use muesli::{Connect, Db, Error, Space, SpaceOptions, Timestamp};
use muesli_cluster::ServerOptions;
use muesli_core::{NodeId, Settings};

use crate::cluster::{Servers, start_with};

/// What the process that is killed is told, and where.
const THIS_TEST: &str = "timestamp_leases::a_client_that_was_killed_lies_after_what_it_was_told";
const LEASE_VARIABLE: &str = "MUESLI_TEST_TIMESTAMP_LEASE";

fn settings() -> Settings {
    Settings { procedures: muesli::procedures::builtin::all(), ..Settings::default() }
}

/// Servers of this protocol, the last of which has a clock that is an hour ahead. Not in groups:
/// once another member leads there, no clock comes to the end of a lease for an hour.
fn servers(dir: &Path, protocol: &str, group: u16) -> Servers {
    let last = u32::from(group).max(2) - 1;
    std::fs::write(dir.join("fast.clock"), "3600000").unwrap();
    start_with(last + 1, |node| ServerOptions {
        protocol: protocol.to_owned(),
        repositories: 2,
        settings: settings(),
        group,
        trouble: (node == NodeId(last) && group == 1).then(|| dir.join("fast")),
        ..ServerOptions::default()
    })
}

fn with(addresses: &[String], protocol: &str, lease: Option<PathBuf>) -> Connect {
    Connect {
        addresses: addresses.to_vec(),
        protocol: protocol.to_owned(),
        timestamp_lease: lease,
        ..Connect::default()
    }
}

fn counters(db: &Db) -> Space {
    db.create_space("counters", SpaceOptions::default()).unwrap()
}

/// A key of this partition, which lives at the repository of the same number.
fn key_at(db: &Db, space: Space, partition: u16) -> u64 {
    (0..)
        .find(|key: &u64| db.partition_of(space, key.to_be_bytes().as_slice()) == partition)
        .unwrap()
}

fn add(db: &Db, partition: u16) -> Result<Timestamp, Error> {
    let space = counters(db);
    let key = key_at(db, space, partition).to_be_bytes();
    let call =
        db.call("add", 1).at(space.place(key.as_slice()), &Amount::of(space, key.as_slice(), 1));
    call.wait().map(|answers| answers.at())
}

fn look(db: &Db, partition: u16) -> Timestamp {
    let space = counters(db);
    let key = key_at(db, space, partition).to_be_bytes();
    let keys = Keyed { space, keys: vec![muesli::procedures::Bytes(key.as_slice().into())] };
    db.call("get", 1).at(space.place(key.as_slice()), &keys).wait().unwrap().at()
}

fn refused(connect: Connect) -> String {
    match Db::connect_with(connect) {
        Err(Error::Lease(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// What another process of this test does, until it is killed.
fn be_the_client_that_is_killed(given: &str) -> ! {
    let (lease, addresses) = given.split_once('|').unwrap();
    let addresses: Vec<_> = addresses.split(',').map(str::to_owned).collect();
    let db = Db::connect_with(with(&addresses, "granola", Some(lease.into()))).unwrap();
    let at = add(&db, 1).unwrap();
    // On a line of its own: the test's name has no end yet.
    println!("\nat {}", at.0);
    std::io::stdout().flush().unwrap();
    loop {
        std::thread::park();
    }
}

/// Runs a client with this lease in a process of its own, and kills it when it has told where its
/// transaction lies.
fn kill_a_client(servers: &Servers, lease: &Path) -> Timestamp {
    let given = format!("{}|{}", lease.display(), servers.addresses.join(","));
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", THIS_TEST, "--nocapture"])
        .env(LEASE_VARIABLE, given)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let at = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("at ")?.parse().ok());
    child.kill().unwrap();
    child.wait().unwrap();
    Timestamp(at.expect("it did its transaction"))
}

#[test]
fn a_client_that_was_killed_lies_after_what_it_was_told() {
    if let Ok(given) = std::env::var(LEASE_VARIABLE) {
        be_the_client_that_is_killed(&given);
    }
    let dir = tempfile::tempdir().unwrap();
    let servers = servers(dir.path(), "granola", 1);
    let lease = dir.path().join("lease");
    counters(&Db::connect_with(with(&servers.addresses, "granola", None)).unwrap());
    let x = kill_a_client(&servers, &lease);
    // Without the lease, what it does next lies an hour before what it did.
    let forgetful = Db::connect_with(with(&servers.addresses, "granola", None)).unwrap();
    assert!(add(&forgetful, 0).unwrap() < x);
    let again = Db::connect_with(with(&servers.addresses, "granola", Some(lease))).unwrap();
    for db in [&again, &again.session()] {
        let y = add(db, 0).unwrap();
        assert!(y > x, "{y} is not after {x}");
        assert!(look(&db.session(), 0) > y && look(db, 1) > y);
    }
    drop((forgetful, again));
    servers.stop();
}

#[test]
fn every_protocol_whose_timestamps_follow_clocks_has_leases_and_groups_have_them_too() {
    let all = ["granola", "granola-passing", "granola-locking", "sinfonia"];
    let shapes = all.into_iter().map(|protocol| (protocol, 1)).chain([("granola", 3)]);
    for (protocol, group) in shapes {
        let dir = tempfile::tempdir().unwrap();
        let servers = servers(dir.path(), protocol, group);
        let (lease, killed) = (dir.path().join("lease"), dir.path().join("killed"));
        let connect = || with(&servers.addresses, protocol, Some(lease.clone()));
        let mut seen = Timestamp::ZERO;
        for partition in [1, 0, 1] {
            let db = Db::connect_with(connect()).unwrap();
            let at = add(&db, partition).unwrap();
            assert!(at > seen, "{protocol} in groups of {group}: {at} is not after {seen}");
            seen = at.max(look(&db.session(), 0)).max(look(&db, 1));
            std::fs::copy(&lease, &killed).unwrap();
            drop(db);
            // As if it had been killed: what it had on its disk before it was closed.
            std::fs::rename(&killed, &lease).unwrap();
        }
        servers.stop();
    }
}

#[test]
fn a_lease_is_of_one_client_at_a_time_and_goes_on_where_it_was_closed() {
    let dir = tempfile::tempdir().unwrap();
    let servers = servers(dir.path(), "granola", 1);
    let lease = dir.path().join("of a client/lease");
    let connect = || with(&servers.addresses, "granola", Some(lease.clone()));
    let first = Db::connect_with(connect()).unwrap();
    let x = add(&first, 1).unwrap();
    let before = std::fs::read(&lease).unwrap();
    assert!(refused(connect()).contains("is in use"));
    assert_eq!(std::fs::read(&lease).unwrap(), before);
    drop(first);
    assert_ne!(std::fs::read(&lease).unwrap(), before, "it was given back");
    let second = Db::connect_with(connect()).unwrap();
    assert!(add(&second, 0).unwrap() > x);
    drop(second);
    std::fs::write(&lease, &before[..before.len() - 1]).unwrap();
    let error = refused(connect());
    assert!(error.contains("is damaged") && error.contains("remove it"), "{error}");
    assert_eq!(std::fs::read(&lease).unwrap(), &before[..before.len() - 1]);
    servers.stop();
}

#[test]
fn what_no_lease_can_cover_is_told_to_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let servers = servers(dir.path(), "granola", 1);
    let lease = dir.path().join("lease");
    let connect = Connect {
        timestamp_lease_ahead: Duration::from_millis(1),
        ..with(&servers.addresses, "granola", Some(lease.clone()))
    };
    let db = Db::connect_with(connect.clone()).unwrap();
    let x = add(&db, 0).unwrap();
    // From here on no lease can be written, and the other repository is an hour ahead. Until here
    // any message may have led to a longer one, also while this is asked for.
    let in_the_way = dir.path().join("lease.new");
    while let Err(error) = std::fs::create_dir(&in_the_way) {
        assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists, "{error}");
    }
    let before = std::fs::read(&lease).unwrap();
    for what in ["the answer that is not told", "whatever comes after"] {
        let given = add(&db, 1);
        let Err(Error::Lease(why)) = &given else { panic!("{what}: {given:?}") };
        assert!(why.contains("lease cannot be read or written"), "{why}");
        assert!(why.contains("may have taken effect"), "{why}");
    }
    assert_eq!(std::fs::read(&lease).unwrap(), before);
    std::fs::remove_dir(in_the_way).unwrap();
    // Who has lost its lease does not keep others from its file.
    let again = Db::connect_with(connect).unwrap();
    assert!(add(&again, 1).unwrap() > x);
    drop((db, again));
    servers.stop();
}

#[test]
fn servers_that_do_not_come_to_the_end_of_a_lease_are_named_with_what_they_lack() {
    let dir = tempfile::tempdir().unwrap();
    let lease = dir.path().join("lease");
    let fast = servers(dir.path(), "granola", 1);
    let db = Db::connect_with(with(&fast.addresses, "granola", Some(lease.clone()))).unwrap();
    add(&db, 1).unwrap();
    drop(db);
    fast.stop();
    let before = std::fs::read(&lease).unwrap();
    // The same cluster, whose servers have lost everything, with clocks that are right.
    let options = || ServerOptions {
        protocol: "granola".to_owned(),
        settings: settings(),
        ..ServerOptions::default()
    };
    let servers = start_with(1, |_| options());
    let connect = Connect {
        connect_within: Duration::from_millis(500),
        timestamp_lease_ahead: Duration::from_millis(1),
        ..with(&servers.addresses, "granola", Some(lease.clone()))
    };
    let error = refused(connect.clone());
    assert!(error.contains("Their clocks are behind"), "{error}");
    assert!(error.contains("by the clock of this machine it is"), "{error}");
    assert!(error.contains("ms before") && error.contains("remove the file"), "{error}");
    assert_eq!(std::fs::read(&lease).unwrap(), before);
    // The way out that it names.
    std::fs::remove_file(&lease).unwrap();
    add(&Db::connect_with(connect.clone()).unwrap(), 0).unwrap();
    let ahead = Connect { timestamp_lease_ahead: Duration::from_secs(3_600), ..connect };
    assert!(refused(ahead).contains("may be from 1 to 600000 ms"));
    servers.stop();
}

#[test]
fn protocols_whose_timestamps_follow_no_clock_have_no_leases() {
    let dir = tempfile::tempdir().unwrap();
    let servers = start_with(1, |_| ServerOptions::default());
    let error = refused(with(&servers.addresses, "score", Some(dir.path().join("lease"))));
    assert!(error.contains("`score` has no timestamp leases"), "{error}");
    assert!(error.contains("granola-passing") && error.contains("sinfonia"), "{error}");
    assert!(!dir.path().join("lease").exists());
    servers.stop();
}
