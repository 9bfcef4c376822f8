//! Maps with many long spaces: they fit into a frame, and those who have proven nothing are not
//! shown more of them at a time than there is a share for.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use muesli_cluster::lifecycle::visit;
use muesli_cluster::wire::frame::{self, FrameKind};
use muesli_cluster::wire::hello::Hello;
use muesli_cluster::{Client, ClientOptions, Network, Server, ServerOptions};
use muesli_core::limits::Limits;
use muesli_core::{Partitioning, Settings, SmallBytes, SpaceOptions, Wire};

use crate::running::{self, on_loopback};
use crate::until::until;

const PATIENCE: Duration = Duration::from_secs(20);

fn with_server(options: ServerOptions, run: impl FnOnce(SocketAddr)) {
    let server = running::serve(options);
    run(server.address);
    server.stop();
}

/// A lone server with room for many splits, and limits of this size.
fn options(transaction_bytes: usize, network: Network) -> ServerOptions {
    let (key_bytes, value_bytes) = (1 << 10, 1 << 14);
    let limits = Limits { key_bytes, value_bytes, transaction_bytes, ..Limits::default() };
    let settings = Settings { limits, ..Settings::default() };
    ServerOptions { settings, partitions_per_repository: 1_024, ..on_loopback(network) }
}

fn client(address: SocketAddr) -> Client {
    let addresses = vec![address.to_string()];
    Client::connect(ClientOptions { addresses, ..ClientOptions::default() }).unwrap()
}

/// A space with splits of so many bytes together.
fn split(bytes: usize) -> SpaceOptions {
    let splits = (0..1_000u16).map(|at| {
        let mut split = vec![0; bytes / 1_000];
        split[..2].copy_from_slice(&at.to_be_bytes());
        SmallBytes::from(split)
    });
    SpaceOptions { partitioning: Partitioning::Range(splits.collect()), ..SpaceOptions::default() }
}

#[test]
fn a_space_that_makes_the_map_longer_than_a_frame_is_refused_by_both_numbers() {
    let network = Network { frame_bytes_max: 98_304, ..Network::default() };
    with_server(options(1 << 15, network), |address| {
        let client = client(address);
        client.create_space("short", &SpaceOptions::default()).unwrap();
        let refused = client.create_space("long", &split(60_000)).unwrap_err().to_string();
        let expected = "`frame_bytes_max` is 98304 and must be at least ";
        assert!(refused.contains("a map of ") && refused.contains(expected), "{refused}");
        // Others are still made, and whoever comes is welcomed.
        client.create_space("other", &SpaceOptions::default()).unwrap();
        let visited = visit::status(&address.to_string(), PATIENCE).unwrap();
        assert_eq!(visited.welcome.map.spaces.len(), 2);
    });
}

#[test]
fn a_server_whose_map_is_longer_than_a_frame_does_not_start() {
    let network = Network { frame_bytes_max: 98_304, ..Network::default() };
    let many = ServerOptions {
        repositories: 4_000,
        partitions_per_repository: 1,
        ..options(1 << 15, network)
    };
    let refused = Server::open(many).err().unwrap().to_string();
    let expected = "`frame_bytes_max` is 98304 and must be at least ";
    assert!(refused.contains("a map of ") && refused.contains(expected), "{refused}");
}

#[test]
fn welcomes_that_nobody_takes_in_have_a_share_of_what_may_wait() {
    const TOTAL: usize = 64 << 20;
    const LONGEST: usize = 8 << 20;
    let network = Network {
        frame_bytes_max: 32 << 20,
        outgoing_bytes_max: TOTAL,
        outgoing_bytes_total: TOTAL,
        slow_after: 100 * PATIENCE,
        dead_after: 100 * PATIENCE,
        ..Network::default()
    };
    with_server(options(24 << 20, network), |address| {
        let client = client(address);
        for number in 0..7 {
            client.create_space(&format!("long-{number}"), &split(1_000_000)).unwrap();
        }
        client.close();
        let mut hello = Vec::new();
        let start = frame::begin(FrameKind::Hello, &mut hello);
        Hello::default().encode(&mut hello);
        frame::end(start, &mut hello);
        let mut probes = Vec::new();
        for number in 0..40 {
            let mut probe = TcpStream::connect(address).unwrap();
            probe.write_all(&hello).unwrap();
            // Its welcome has begun, and it takes in no more of it.
            probe.read_exact(&mut [0]).unwrap();
            probes.push(probe);
            // Whoever takes it in is welcomed all the while.
            if number % 10 == 9 {
                let visited = visit::status(&address.to_string(), PATIENCE).unwrap();
                assert_eq!(visited.welcome.map.spaces.len(), 7);
                let waiting = visited.status_of("outgoing-bytes").unwrap();
                assert!(waiting as usize <= TOTAL / 4 + LONGEST, "{} MiB", waiting >> 20);
            }
        }
        until("some are closed", || {
            let visited = visit::status(&address.to_string(), PATIENCE).unwrap();
            visited.status_of("connections-turned-away").unwrap() > 0
        });
        drop(probes);
    });
}
