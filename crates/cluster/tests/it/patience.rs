//! Connections that idle, come back, or stop reading: nothing grows without bound, nobody is
//! given up too early, and whoever was lost is found again.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use muesli_cluster::spaces::map::{Deal, Map};
use muesli_cluster::spaces::parts::MapParts;
use muesli_cluster::wire::frame::{self, FrameKind};
use muesli_cluster::wire::hello::{Hello, ProcessKind, Welcome};
use muesli_cluster::{
    Client, ClientOptions, ClusterId, DataId, Durability, Network, ServerOptions,
};
use muesli_core::client;
use muesli_core::{
    Answer, Limits, NodeId, Operation, Put, SmallBytes, SpaceId, SpaceOptions, TxnOptions, Wire,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::running::{on_loopback, serve};
use crate::until::until;

const PATIENCE: Duration = Duration::from_secs(30);

fn client_of(address: SocketAddr, network: Network) -> Client {
    let addresses = vec![address.to_string()];
    Client::connect(ClientOptions { addresses, network, ..ClientOptions::default() }).unwrap()
}

/// Tests that look at the memory of the process take turns.
pub(crate) static MEMORY: Mutex<()> = Mutex::new(());

/// How much memory this process has, in bytes.
pub(crate) fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn thousands_of_idle_connections_cost_little_memory() {
    let _alone = MEMORY.lock().unwrap_or_else(|broken| broken.into_inner());
    // Both ends are in this process: two descriptors a connection.
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(1 << 20).min(1 << 20);
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..limit }).unwrap();
    let many = 10_000.min(most as usize / 2 - 100);
    let network = Network {
        connections_max: many + 10,
        hello_within: Duration::from_secs(600),
        ..Network::default()
    };
    let server = serve(on_loopback(network));
    server.status("connections");
    let before = resident();
    let idle: Vec<_> = (0..many).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    until("all are connected", || server.status("connections") >= many as u64);
    let each = resident().saturating_sub(before) / many as u64;
    assert!(each < 4_000, "{each} bytes for each of {many} connections");
    drop(idle);
    until("all are gone", || server.status("connections") <= 1);
    server.stop();
}

#[test]
fn signs_of_life_keep_idle_connections() {
    let network = Network {
        alive_every: Duration::from_millis(100),
        dead_after: Duration::from_millis(2_000),
        ..Network::default()
    };
    let server = serve(on_loopback(network.clone()));
    let client = client_of(server.address, network);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(5) {
        assert_eq!(client.servers_up(), [NodeId(0)]);
        assert_eq!(server.status("clients"), 1);
        std::thread::sleep(Duration::from_millis(20));
    }
    client.close();
    server.stop();
}

#[test]
fn a_server_that_was_lost_is_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let durable = |listen: &str, dir: &Path| ServerOptions {
        listen: listen.to_owned(),
        durability: Durability::Log(dir.to_owned()),
        ..ServerOptions::default()
    };
    let mut server = serve(durable("127.0.0.1:0", dir.path()));
    let address = server.address;
    let client = client_of(address, Network::default());
    for _ in 0..3 {
        server.stop();
        until("the client has noticed", || client.servers_up().is_empty());
        server = serve(durable(&address.to_string(), dir.path()));
        until("the client is back", || !client.servers_up().is_empty());
        assert_eq!(server.status("clients"), 1);
    }
    client.close();
    server.stop();
}

/// Takes in whoever comes next; who that is.
fn welcome(listener: &TcpListener, map: &Map) -> (TcpStream, ProcessKind) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut bytes = vec![0; 4096];
    let count = stream.read(&mut bytes).unwrap();
    let frame = frame::next(&bytes[..count], 4096).unwrap().unwrap();
    let hello = Hello::decode_all(frame.body).unwrap();
    let (cluster, node, data_id) = (ClusterId(1), NodeId(0), DataId(1));
    let data_ids = vec![(node, data_id)];
    let map = MapParts::from(map);
    let welcome =
        Welcome { cluster, node, data_id, data_ids, heights: Vec::new(), map, proof: None };
    let mut out = Vec::new();
    let start = frame::begin(FrameKind::Welcome, &mut out);
    welcome.encode(&mut out);
    frame::end(start, &mut out);
    stream.write_all(&out).unwrap();
    (stream, hello.process_kind)
}

/// A server that welcomes whoever comes, and reads nothing more until it is told to end.
fn deaf_server(space: &str) -> (SocketAddr, JoinHandle<()>, std::sync::mpsc::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let map = Map::deal(vec![(NodeId(0), address.to_string())], Deal::default()).unwrap();
    let catalog = map.catalog.with_space(space, SpaceOptions::default()).unwrap();
    let map = map.with_catalog(catalog.into());
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        // A client visits, to learn what it speaks to, before it comes to stay.
        let mut guests = std::iter::repeat_with(|| welcome(&listener, &map));
        let _client = guests.find(|(_, process_kind)| *process_kind != ProcessKind::Probe);
        receiver.recv().unwrap();
    });
    (address, thread, sender)
}

#[test]
fn options_of_a_client_that_cannot_be_are_refused_by_their_rules() {
    let network = Network {
        slow_after: Duration::from_millis(1),
        outgoing_bytes_max: 1 << 20,
        ..Network::default()
    };
    let addresses = vec!["127.0.0.1:1".to_owned()];
    let options = ClientOptions { addresses, network, ..ClientOptions::default() };
    let refused = Client::connect(options).err().unwrap().to_string();
    for expected in
        ["`slow_after_ms` = 1 must be at least 100", "above `outgoing_bytes_max` = 1048576"]
    {
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn what_waits_for_a_server_that_does_not_read_is_bounded() {
    const MOST: usize = 32 << 20;
    const VALUE: usize = 64 << 10;
    const TRANSACTIONS: usize = 4_000;
    let _alone = MEMORY.lock().unwrap_or_else(|broken| broken.into_inner());
    let (address, server, end) = deaf_server("space");
    let network = Network {
        frame_bytes_max: MOST,
        outgoing_bytes_high: 1 << 20,
        outgoing_bytes_max: MOST,
        slow_after: PATIENCE,
        dead_after: PATIENCE,
        ..Network::default()
    };
    let limits = Limits { transaction_bytes: MOST / 4 * 3, ..Limits::default() };
    let addresses = vec![address.to_string()];
    let options = ClientOptions { addresses, network, limits, ..ClientOptions::default() };
    let client = Client::connect(options).unwrap();
    let before = resident();
    for number in 0..TRANSACTIONS {
        let task = async move {
            client::with(0, |engine| {
                let begun = engine.operate(Operation::Begin(TxnOptions::default()));
                let txn = begun.map(Answer::begun).at_once().unwrap();
                let key = SmallBytes::new(&number.to_le_bytes());
                let value = Some(SmallBytes::new(&vec![7; VALUE]));
                let put = Put { space: SpaceId(0), key, value, may_wait: false };
                engine.operate(Operation::Put(txn, put)).at_once().unwrap();
                drop(engine.operate(Operation::Commit(txn)));
            });
        };
        assert!(client.submit(Box::new(move || Box::pin(task))).is_ok());
    }
    // Nobody reads, and what is not answered is said again and again: in the end too much waits,
    // and the connection is given up. Until then little of the work is even begun.
    let mut most = 0;
    until("the connection is given up", || {
        let now = resident().saturating_sub(before) as usize;
        let is_over = client.servers_up().is_empty();
        most = most.max(if is_over { 0 } else { now });
        is_over
    });
    assert!(most < TRANSACTIONS * VALUE / 2, "{most} bytes of {}", TRANSACTIONS * VALUE);
    end.send(()).unwrap();
    server.join().unwrap();
    client.close();
}
