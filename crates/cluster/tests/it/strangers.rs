//! What a server does with those who do not speak as they should: each is answered as documented,
//! and whoever behaves is served all the while.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use muesli_cluster::wire::control::Control;
use muesli_cluster::wire::frame::{self, FrameKind, VERSION, framed};
use muesli_cluster::wire::hello::{HELLO_BYTES_MAX, Hello, ProcessKind, Welcome};
use muesli_cluster::wire::refusal::{ConnectionRefusal, Reason};
use muesli_cluster::{ClusterId, DataId, Network, ServerOptions};
use muesli_core::issuance::Proof;
use muesli_core::limits::Limits;
use muesli_core::{NodeId, RepositoryId, Role, Settings, Wire};

use crate::running::{self, Running, on_loopback};
use crate::until::until;

fn serve(network: Network) -> Running {
    serve_with(network, Limits::default())
}

fn serve_with(network: Network, limits: Limits) -> Running {
    let settings = Settings { limits, ..Settings::default() };
    running::serve(ServerOptions { settings, ..on_loopback(network) })
}

impl Running {
    /// Waits until the server says that a number is this.
    fn wait_for(&self, name: &str, value: u64) {
        until(name, || self.status(name) == value);
    }
}

fn encoded(value: &impl Wire) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut out);
    out
}

fn hello() -> Hello {
    Hello {
        cluster: ClusterId(0),
        protocol: "score".to_owned(),
        process_kind: ProcessKind::Client,
        node: NodeId(1 << 31),
        data_id: DataId(7),
        data_ids: Vec::new(),
        ..Hello::default()
    }
}

/// Everything that comes until the other end closes.
fn last_bytes(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("not closed: {error}"),
        _ => bytes,
    }
}

/// The refusal that ends what comes.
fn refusal(stream: TcpStream) -> ConnectionRefusal {
    let bytes = last_bytes(stream);
    let mut rest = &bytes[..];
    while let Some(found) = frame::next(rest, 1 << 20).unwrap() {
        if found.kind == FrameKind::Refusal {
            return ConnectionRefusal::decode_all(found.body).unwrap();
        }
        rest = &rest[found.bytes()..];
    }
    panic!("no refusal came: {} bytes", bytes.len());
}

/// Says `bytes` and answers what is said in return.
fn answer_to(server: &Running, bytes: &[u8]) -> ConnectionRefusal {
    let mut stream = server.stranger();
    stream.write_all(bytes).unwrap();
    refusal(stream)
}

#[test]
fn bytes_that_are_no_frame_are_refused_and_say_why() {
    let server = serve(Network::default());
    let foreign = answer_to(&server, b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(foreign.reason, Reason::Misunderstood);
    assert!(foreign.text.contains("not the Muesli protocol"), "{foreign}");

    let mut version = framed(FrameKind::Hello, &encoded(&hello()));
    version[3] = 99;
    let version = answer_to(&server, &version);
    assert!(version.text.contains("version 99 of the protocol is not"), "{version}");
    assert!(version.text.contains(&format!("version {VERSION} is")), "{version}");

    let mut damaged = framed(FrameKind::Hello, &encoded(&hello()));
    *damaged.last_mut().unwrap() ^= 1;
    assert!(answer_to(&server, &damaged).text.contains("damaged"));

    let undecodable = answer_to(&server, &framed(FrameKind::Hello, &[1, 2, 3]));
    assert!(undecodable.text.contains("cannot be decoded"), "{undecodable}");

    let early = answer_to(&server, &framed(FrameKind::Messages, &[]));
    assert!(early.text.contains("out of place"), "{early}");
    assert_eq!(server.status("connections-misunderstood"), 5);
    server.stop();
}

#[test]
fn frames_over_the_limit_are_refused_by_their_header() {
    // The smallest frame that the largest transaction fits into, where that is a small one.
    let (key_bytes, value_bytes, transaction_bytes) = (1 << 10, 1 << 14, 1 << 15);
    let limits = Limits { key_bytes, value_bytes, transaction_bytes, ..Limits::default() };
    let network = Network { frame_bytes_max: 98_304, ..Network::default() };
    let server = serve_with(network, limits);
    let mut long = framed(FrameKind::Hello, &[]);
    long[8..12].copy_from_slice(&(HELLO_BYTES_MAX as u32 + 1).to_le_bytes());
    let strange = answer_to(&server, &long);
    assert!(strange.text.contains(&HELLO_BYTES_MAX.to_string()), "{strange}");

    let mut known = framed(FrameKind::Hello, &encoded(&hello()));
    let mut long = framed(FrameKind::Messages, &[]);
    long[8..12].copy_from_slice(&(1u32 << 30).to_le_bytes());
    known.extend_from_slice(&long);
    let known = answer_to(&server, &known);
    assert!(known.text.contains("98304"), "{known}");
    server.stop();
}

#[test]
fn whoever_belongs_elsewhere_is_told_so() {
    let server = serve(Network::default());
    let answer_of = |hello: Hello| answer_to(&server, &framed(FrameKind::Hello, &encoded(&hello)));
    let other = answer_of(Hello { cluster: ClusterId(9), ..hello() });
    assert_eq!(other.reason, Reason::Cluster, "{other}");
    let other = answer_of(Hello { protocol: "tea".to_owned(), ..hello() });
    assert_eq!(other.reason, Reason::Protocol, "{other}");
    let other = answer_of(Hello { node: NodeId(0), ..hello() });
    assert_eq!(other.reason, Reason::Taken, "{other}");
    let other = answer_of(Hello { data_ids: vec![(NodeId(0), DataId(1))], ..hello() });
    assert_eq!(other.reason, Reason::Lost, "{other}");
    server.stop();
}

#[test]
fn two_clients_of_one_number_cannot_both_stay_and_one_client_can_come_twice() {
    let server = serve(Network::default());
    let come = |data_id: u64| {
        let mut stream = server.stranger();
        let hello = Hello { data_id: DataId(data_id), ..hello() };
        stream.write_all(&framed(FrameKind::Hello, &encoded(&hello))).unwrap();
        stream
    };
    let first = come(1);
    server.wait_for("clients", 1);
    assert_eq!(refusal(come(2)).reason, Reason::Taken);
    let again = come(1);
    last_bytes(first);
    assert_eq!(server.status("clients"), 1);
    drop(again);
    server.wait_for("clients", 0);
    server.stop();
}

#[test]
fn garbage_among_messages_ends_that_connection_only() {
    let server = serve(Network::default());
    let mut bytes = framed(FrameKind::Hello, &encoded(&hello()));
    let garbage = [encoded(&Proof::default()), vec![0, 0, 0, 0, 77, 1, 2, 3]].concat();
    bytes.extend(framed(FrameKind::Messages, &garbage));
    let refused = answer_to(&server, &bytes);
    assert!(refused.text.contains("cannot be decoded"), "{refused}");
    // A message about a space that there is not is left out, and the connection goes on.
    let mut ask = encoded(&Proof::default());
    Role::Repository(RepositoryId(0)).encode(&mut ask);
    Role::Coordinator.encode(&mut ask);
    ask.extend([&[0; 18][..], &[1, 0, 0, 0, 9, 0, 0, 0, 0, 0]].concat());
    let mut bytes = framed(FrameKind::Hello, &encoded(&hello()));
    bytes.extend(framed(FrameKind::Messages, &ask));
    bytes.extend(framed(FrameKind::Control, &encoded(&Control::AskStatus)));
    let mut stream = server.stranger();
    stream.write_all(&bytes).unwrap();
    server.wait_for("messages-astray", 1);
    assert_eq!(server.status("clients"), 1);
    drop(stream);
    server.stop();
}

/// Found by saying frames of a handshake to servers: whoever was let in could end the server by
/// refusing it, as a server refuses another one whose data are lost.
#[test]
fn a_refusal_of_somebody_who_is_no_server_ends_nothing_but_its_connection() {
    let server = serve(Network::default());
    for process_kind in [ProcessKind::Probe, ProcessKind::Client, ProcessKind::Admin] {
        for reason in [Reason::Lost, Reason::Left, Reason::Older(Some(u64::MAX)), Reason::Cluster] {
            let refusal = ConnectionRefusal { reason, text: "go".to_owned(), proof: None };
            let mut bytes = framed(FrameKind::Hello, &encoded(&Hello { process_kind, ..hello() }));
            bytes.extend(framed(FrameKind::Refusal, &encoded(&refusal)));
            let mut stream = server.stranger();
            stream.write_all(&bytes).unwrap();
            last_bytes(stream);
            assert!(server.status("connections") <= 2, "{process_kind:?} {reason:?}");
        }
    }
    server.stop();
}

#[test]
fn the_silent_the_half_open_and_the_slow_are_cut() {
    let network = Network {
        hello_within: Duration::from_millis(150),
        dead_after: Duration::from_millis(150),
        slow_after: Duration::from_millis(150),
        alive_every: Duration::from_millis(50),
        ..Network::default()
    };
    let server = serve(network);
    // Says nothing at all.
    assert!(last_bytes(server.stranger()).is_empty());
    // Begins a hello, and does not end it.
    let mut half = server.stranger();
    half.write_all(&framed(FrameKind::Hello, &encoded(&hello()))[..9]).unwrap();
    assert!(last_bytes(half).is_empty());
    // Says hello, and is never heard of again; the server's signs of life go into the void.
    let mut silent = server.stranger();
    silent.write_all(&framed(FrameKind::Hello, &encoded(&hello()))).unwrap();
    let words = last_bytes(silent);
    let welcome = frame::next(&words, 1 << 20).unwrap().unwrap();
    assert_eq!(welcome.kind, FrameKind::Welcome);
    assert!(Welcome::decode_all(welcome.body).is_ok());
    // Keeps sending parts of a frame that never ends.
    let mut slow = server.stranger();
    slow.write_all(&framed(FrameKind::Hello, &encoded(&hello()))).unwrap();
    let mut endless = framed(FrameKind::Messages, &[]);
    endless[8..12].copy_from_slice(&60_000u32.to_le_bytes());
    slow.write_all(&endless).unwrap();
    until("the slow one is cut", || slow.write_all(&[0]).is_err());
    server.wait_for("clients", 0);
    server.stop();
}

#[test]
fn whoever_does_not_read_is_not_read_from_and_then_cut() {
    let network = Network {
        outgoing_bytes_high: 1 << 16,
        slow_after: Duration::from_millis(300),
        dead_after: Duration::from_secs(20),
        ..Network::default()
    };
    let server = serve(network);
    let mut deaf = server.stranger();
    deaf.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    deaf.write_all(&framed(FrameKind::Hello, &encoded(&hello()))).unwrap();
    // Each question is shorter than its answer, and no answer is ever read.
    let question = framed(FrameKind::Control, &encoded(&Control::AskStatus));
    let questions: Vec<u8> = question.iter().copied().cycle().take(question.len() * 1000).collect();
    until("nothing more is taken", || deaf.write_all(&questions).is_err());
    server.wait_for("clients", 0);
    server.stop();
}
