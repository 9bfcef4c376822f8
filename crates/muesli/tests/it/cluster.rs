//! Databases on a cluster, over TCP within one process: servers on threads, native clients.

use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;

use muesli::{BatchLinks, Batching, Connect, Db, Error, LinkBatch, Nanos, SpaceOptions};
use muesli_cluster::spaces::parts::SpaceParts;
use muesli_cluster::spaces::register::{self, Register};
use muesli_cluster::{LoopFailure, Server, ServerOptions, StopServer};
use muesli_core::{NodeId, Settings, SmallBytes};

pub struct Servers {
    pub addresses: Vec<String>,
    stops: Vec<StopServer>,
    threads: Vec<JoinHandle<Result<(), LoopFailure>>>,
}

/// Addresses that are free now: they are bound and let go. They are of a loopback address that
/// belongs to this process: no other program takes their ports before the servers do.
pub fn free_addresses(count: usize) -> Vec<String> {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let own = std::net::Ipv4Addr::new(127, 1, high, low);
    let bound: Vec<_> =
        (0..count).map(|_| std::net::TcpListener::bind((own, 0)).unwrap()).collect();
    bound.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect()
}

fn start(count: u32, repositories: usize, replicas: usize) -> Servers {
    start_with(count, |_| ServerOptions { repositories, replicas, ..ServerOptions::default() })
}

/// Servers that are told, each, what `options` says beside addresses.
pub fn start_with(count: u32, like: impl Fn(NodeId) -> ServerOptions) -> Servers {
    let addresses = free_addresses(count as usize);
    let servers: Vec<_> = (0..count).map(NodeId).zip(addresses.iter().cloned()).collect();
    let (mut stops, mut threads) = (Vec::new(), Vec::new());
    for (node, listen) in &servers {
        let options = ServerOptions {
            node: *node,
            listen: listen.clone(),
            servers: servers.clone(),
            ..like(*node)
        };
        let (sender, receiver) = std::sync::mpsc::channel();
        threads.push(std::thread::spawn(move || {
            let server = Server::open(options).unwrap();
            sender.send(server.stop()).unwrap();
            server.run()
        }));
        stops.push(receiver.recv().unwrap());
    }
    Servers { addresses, stops, threads }
}

impl Servers {
    /// Stops one of them, before the others.
    pub fn stop_one(&self, which: usize) {
        self.stops[which].stop();
    }

    pub fn stop(self) {
        for stop in &self.stops {
            stop.stop();
        }
        for thread in self.threads {
            thread.join().unwrap().unwrap();
        }
    }
}

pub fn increment(db: &Db) -> Result<i64, Error> {
    let counters = db.space("counters")?.typed::<u64, i64>();
    db.blocking().transact(async move |tx| {
        let mut sum = 0;
        for key in 0..8 {
            let value = counters.get(tx, &key).await?.unwrap_or(0);
            counters.put(tx, &key, &(value + 1)).await?;
            sum += value;
        }
        Ok(sum)
    })
}

/// Servers and clients let their messages wait for each other; what is held when one of them ends
/// in order leaves before.
#[test]
fn batches_lose_nothing_when_clients_and_servers_end() {
    let batch = LinkBatch::new(8, Nanos::from_millis(2)).unwrap();
    let batching = Batching::over(BatchLinks::All, batch);
    let servers = start_with(3, |_| ServerOptions {
        repositories: 3,
        settings: Settings { batching, ..Settings::default() },
        ..ServerOptions::default()
    });
    let connect = || {
        let addresses = servers.addresses.clone();
        Db::connect_with(Connect { addresses, batching, ..Connect::default() }).unwrap()
    };
    let first = connect();
    first.create_space("counters", SpaceOptions::default()).unwrap();
    for round in 0..4 {
        let db = connect();
        for count in 0..10 {
            assert_eq!(increment(&db.strict()).unwrap(), (10 * round + count) * 8);
        }
        // What it has decided last is held; whoever comes next does not find it in doubt for long.
        db.close();
    }
    assert_eq!(increment(&first.strict()).unwrap(), 40 * 8);
    let traffic = first.traffic();
    assert!(traffic.messages > 0 && first.packets() == traffic.writes);
    drop(first);
    servers.stop();
}

#[test]
fn clients_of_three_servers_see_each_others_commits() {
    let servers = start(3, 3, 2);
    let first = Db::connect(servers.addresses.clone()).unwrap();
    first.create_space("counters", SpaceOptions::default()).unwrap();
    first.create_space("counters", SpaceOptions::default()).unwrap();
    let second = Db::connect([servers.addresses[2].clone()]).unwrap();
    let threads: Vec<_> = [first, second]
        .into_iter()
        .map(|db| {
            std::thread::spawn(move || {
                for _ in 0..50 {
                    increment(&db).unwrap();
                }
                db
            })
        })
        .collect();
    let dbs: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(increment(&dbs[0].strict()).unwrap(), 100 * 8);
    let again = dbs[1].create_space(
        "counters",
        muesli::SpaceOptions { index: muesli::Index::Hash, ..SpaceOptions::default() },
    );
    assert!(matches!(again, Err(Error::Options(_))), "{again:?}");
    drop(dbs);
    servers.stop();
}

#[test]
fn a_lone_server_is_connected_to_by_whatever_port_it_got() {
    let (sender, receiver) = std::sync::mpsc::channel::<(SocketAddr, StopServer)>();
    let thread = std::thread::spawn(move || {
        let options = ServerOptions { listen: "127.0.0.1:0".to_owned(), ..Default::default() };
        let server = Server::open(options).unwrap();
        sender.send((server.address(), server.stop())).unwrap();
        server.run()
    });
    let (address, stop) = receiver.recv().unwrap();
    let db = Db::connect([address.to_string()]).unwrap();
    db.create_space("counters", SpaceOptions::default()).unwrap();
    for before in 0..20 {
        assert_eq!(increment(&db).unwrap(), before * 8);
    }
    stop.stop();
    thread.join().unwrap().unwrap();
}

#[test]
fn nobody_there_is_an_error_that_says_who_was_asked() {
    let address = free_addresses(1).remove(0);
    let connect = Connect {
        addresses: vec![address.clone()],
        connect_within: Duration::from_millis(200),
        ..Connect::default()
    };
    let error = Db::connect_with(connect).unwrap_err();
    assert!(error.to_string().contains(&address), "{error}");
    assert!(matches!(Db::connect(Vec::<String>::new()), Err(Error::Unreachable(_))));
}

#[test]
fn whoever_waits_for_longer_than_servers_remember_is_refused() {
    let give_up_after = Duration::from_millis(120_001);
    let connect = Connect { give_up_after, ..Connect::default() };
    let error = Db::connect_with(connect).map(drop).unwrap_err();
    let text = "`give_up_after` is 120001 ms, and may be at most 120000 ms";
    assert!(matches!(&error, Error::Options(message) if message == text), "{error}");
}

/// Objects go to and fro between two clients that are near to different servers.
#[test]
fn clients_are_near_to_servers_with_data() {
    let protocol = || "tfa".to_owned();
    let options =
        |_| ServerOptions { repositories: 2, protocol: protocol(), ..ServerOptions::default() };
    let servers = start_with(2, options);
    let near = |server| {
        let (addresses, near) = (servers.addresses.clone(), Some(server));
        Db::connect_with(Connect { addresses, near, protocol: protocol(), ..Connect::default() })
    };
    let error = near(9).map(drop).unwrap_err();
    let text = "`near` names server 9; those with data are 0, 1";
    assert!(matches!(&error, Error::Options(message) if message == text), "{error}");
    let clients = [near(0).unwrap(), near(1).unwrap()];
    clients[0].create_space("counters", SpaceOptions::default()).unwrap();
    for before in 0..20 {
        assert_eq!(increment(&clients[before as usize % 2].strict()).unwrap(), before * 8);
    }
    drop(clients);
    servers.stop();
}

/// Any client may write the row that holds the spaces of groups. What makes no sense there is
/// written again, and others go on making spaces.
#[test]
fn a_row_of_the_spaces_that_makes_no_sense_is_written_again() {
    let options = |_| ServerOptions { group: 3, ..ServerOptions::default() };
    let servers = start_with(3, options);
    let db = Db::connect(servers.addresses.clone()).unwrap();
    db.create_space("counters", SpaceOptions::default()).unwrap();
    let row = db.space(register::SPACE).unwrap();
    let named = |name: &str| SpaceParts::of(name, &SpaceOptions::default());
    let others = ["a", "b", "c", "d", "e", "f", "g", "h"].map(named).to_vec();
    let long = vec![named(register::SPACE), named("counters"), named(&"n".repeat(300))];
    let wrong = [
        SmallBytes::new(b"tea"),
        Register { epoch: u64::MAX, spaces: Vec::new() }.to_row(),
        Register { epoch: 9, spaces: others }.to_row(),
        Register { epoch: 4, spaces: long }.to_row(),
    ];
    for (number, wrong) in wrong.into_iter().enumerate() {
        let written = wrong.clone();
        let put = db.blocking().transact(async move |tx| {
            tx.put(row, SmallBytes::new(register::KEY), written.as_slice().to_vec()).await
        });
        put.unwrap();
        let name = format!("later-{number}");
        db.create_space(&name, SpaceOptions::default()).unwrap();
        let other = Db::connect([servers.addresses[number % 3].clone()]).unwrap();
        let key = SmallBytes::new(register::KEY);
        let found =
            other.strict().blocking().transact(async move |tx| tx.get(row, key.clone()).await);
        let found = Register::of_row(&found.unwrap().unwrap()).unwrap();
        let names: Vec<_> = found.spaces.iter().map(|space| space.name.as_str()).collect();
        assert_eq!(names[..2], [register::SPACE, "counters"], "{names:?}");
        assert_eq!(names.last(), Some(&name.as_str()), "{names:?}");
        assert_eq!(found.epoch, names.len() as u64 + 1);
    }
    assert_eq!(increment(&db).unwrap(), 0);
    drop(db);
    servers.stop();
}
