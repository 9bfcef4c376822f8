//! Partitions that move, through the library: embedded and on a cluster.

use std::thread;

use muesli::procedures::builtin::{self, Amount};
use muesli::{Connect, Db, Error, Options, RepositoryId, Space, SpaceOptions};
use muesli_cluster::ServerOptions;
use muesli_core::Settings;

use super::cluster::start_with;

const KEYS: u8 = 40;

fn add(db: &Db, space: Space, number: u8) -> Result<i64, Error> {
    let key = format!("key {number}");
    db.call("add", 1).at(space.place(&*key), &Amount::of(space, &*key, 1)).wait()?.of(0)
}

fn repository_of(db: &Db, partition: u16) -> RepositoryId {
    let all = muesli::blocking::block_on(db.partitions()).unwrap();
    assert_eq!(all[usize::from(partition)].partition, partition);
    all[usize::from(partition)].holders[0]
}

fn relocate(db: &Db, partition: u16, to: u16) -> Result<u64, Error> {
    muesli::blocking::block_on(db.move_partition(partition, None, RepositoryId(to)))
}

/// Adds to all keys while their partitions go round; nothing is lost, and nobody is told of it.
fn keys_go_round(db: &Db, other: &Db, space: Space) {
    let partitions = muesli::blocking::block_on(db.partitions()).unwrap().len() as u16;
    thread::scope(|scope| {
        let adds = scope.spawn(|| {
            for round in 1..=20 {
                for number in 0..KEYS {
                    assert_eq!(add(other, space, number), Ok(round), "key {number}");
                }
            }
        });
        for step in 0..2 * partitions {
            let to = (step + step / partitions + 1) % 2;
            relocate(db, step % partitions, to).unwrap();
            assert_eq!(repository_of(db, step % partitions), RepositoryId(to));
        }
        adds.join().unwrap();
    });
    for number in 0..KEYS {
        assert_eq!(add(db, space, number), Ok(21));
    }
}

fn open(protocol: &str) -> (Db, Space) {
    let protocol = protocol.to_owned();
    let options = Options {
        repositories: 2,
        partitions_per_repository: 4,
        loops: 2,
        protocol,
        ..Options::default()
    };
    let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
    let space = db.space("s").unwrap();
    (db, space)
}

#[test]
fn keys_go_round_in_a_process() {
    for protocol in ["granola", "granola-locking", "granola-passing", "sinfonia"] {
        let (db, space) = open(protocol);
        keys_go_round(&db, &db.session(), space);
        db.close();
    }
}

#[test]
fn keys_go_round_in_a_cluster() {
    let protocol = || "granola".to_owned();
    let servers = start_with(2, |_| ServerOptions {
        repositories: 2,
        partitions_per_repository: 3,
        protocol: protocol(),
        settings: Settings { procedures: builtin::all(), ..Settings::default() },
        ..ServerOptions::default()
    });
    let connect = || {
        let addresses = servers.addresses.clone();
        Db::connect_with(Connect { addresses, protocol: protocol(), ..Connect::default() })
    };
    let db = connect().unwrap();
    let space = db.create_space("s", SpaceOptions::default()).unwrap();
    let other = connect().unwrap();
    assert_eq!(other.space("s"), Ok(space));
    keys_go_round(&db, &other, space);
    db.close();
    other.close();
    servers.stop();
}

#[test]
fn orders_that_cannot_be_are_refused_with_a_reason() {
    let (db, space) = open("granola");
    let partition = db.partition_of(space, "key 1");
    let here = repository_of(&db, partition);
    let there = RepositoryId(1 - here.0);
    let assert_refused = |done: Result<u64, Error>, what: &str| match done {
        Err(Error::Procedure(text)) => assert!(text.contains(what), "{text}"),
        other => panic!("{other:?}"),
    };
    assert_refused(relocate(&db, 8, 0), "no partition 8 of 8");
    assert_refused(relocate(&db, 0, 2), "2 repositories");
    let wrong = db.move_partition(partition, Some(there), there);
    assert_refused(muesli::blocking::block_on(wrong), "is at repository");
    assert_eq!(relocate(&db, partition, here.0), Ok(0), "it was there");
    db.close();
    let (db, _) = open("score");
    assert_refused(relocate(&db, 0, 1), "procedure");
    db.close();
}
