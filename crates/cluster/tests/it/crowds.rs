//! Many strangers at once: what they may take is bounded, and whoever belongs here gets in.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use muesli_cluster::lifecycle::visit::{self, Visit};
use muesli_cluster::wire::challenge::Challenge;
use muesli_cluster::wire::control::Control;
use muesli_cluster::wire::frame::{self, FrameKind, HEADER_BYTES, framed};
use muesli_cluster::wire::hello::{Hello, ProcessKind, Welcome};
use muesli_cluster::wire::proof::{self, SecretProof};
use muesli_cluster::wire::refusal::{ConnectionRefusal, Reason};
use muesli_cluster::{DataId, Network, ServerOptions};
use muesli_core::limits::Limits;
use muesli_core::{NodeId, Secret, Settings, Wire};

use crate::patience::{MEMORY, resident};
use crate::running::{self, Running, on_loopback};
use crate::until::until;

const PATIENCE: Duration = Duration::from_secs(20);

fn secret() -> Secret {
    Secret::new(b"known to the members alone").unwrap()
}

fn serve(network: Network) -> Running {
    serve_with(network, Settings::default())
}

fn serve_with(network: Network, settings: Settings) -> Running {
    let secret = Some(secret());
    running::serve(ServerOptions { secret, settings, ..on_loopback(network) })
}

impl Running {
    /// A client that has said hello.
    fn client(&self, number: u32) -> TcpStream {
        let mut stream = self.stranger();
        let (protocol, process_kind) = ("score".to_owned(), ProcessKind::Client);
        let (node, data_id) = (NodeId((1 << 31) + number), DataId(7));
        send_frame(
            &mut stream,
            &Hello { protocol, process_kind, node, data_id, ..Hello::default() },
        );
        stream
    }

    fn admin(&self) -> u64 {
        let address = self.address.to_string();
        let mut visit = Visit::begin_as_admin(&address, PATIENCE, Some(&secret())).unwrap();
        match visit.ask(&Control::AskStatus).unwrap() {
            Control::Status(lines) => {
                lines.iter().find(|(name, _)| name == "connections").unwrap().1
            }
            other => panic!("{other:?}"),
        }
    }
}

fn send_frame(stream: &mut TcpStream, hello: &Hello) {
    let mut body = Vec::new();
    hello.encode(&mut body);
    stream.write_all(&framed(FrameKind::Hello, &body)).unwrap();
}

/// The first frame that comes.
fn first(stream: &mut TcpStream) -> Option<(FrameKind, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(found) = frame::next(&bytes, 1 << 20).unwrap() {
            return Some((found.kind, found.body.to_vec()));
        }
        let mut more = [0; 4096];
        match stream.read(&mut more) {
            Ok(0) => return None,
            Ok(count) => bytes.extend_from_slice(&more[..count]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn clients_fill_all_connections_and_an_administrator_gets_in() {
    const LIMIT: u32 = 40;
    let server = serve(Network { connections_max: LIMIT as usize, ..Network::default() });
    let mut clients: Vec<_> = (0..LIMIT).map(|number| server.client(number)).collect();
    for client in &mut clients {
        assert_eq!(first(client).unwrap().0, FrameKind::Welcome);
    }
    let (kind, body) = first(&mut server.client(LIMIT)).unwrap();
    assert_eq!(kind, FrameKind::Refusal);
    let refused = ConnectionRefusal::decode_all(&body).unwrap();
    assert_eq!(refused.reason, Reason::Full, "{refused}");
    assert!(refused.text.contains("40 connections") && refused.text.contains("connections_max"));
    for _ in 0..5 {
        assert!(server.admin() > u64::from(LIMIT));
    }
    server.stop();
}

#[test]
fn whoever_says_nothing_makes_room_for_whoever_does() {
    const LIMIT: usize = 40;
    let server = serve(Network {
        connections_max: LIMIT,
        connections_reserved: 4,
        hello_within: Duration::from_secs(60),
        ..Network::default()
    });
    // Ten times as many as there is room for: the oldest go, the newest stay.
    let silent: Vec<_> = (0..10 * LIMIT).map(|_| server.stranger()).collect();
    assert!(server.admin() > LIMIT as u64);
    for number in 0..LIMIT as u32 {
        let mut client = server.client(number);
        assert_eq!(first(&mut client).unwrap().0, FrameKind::Welcome, "client {number}");
        let visited = visit::status(&server.address.to_string(), PATIENCE).unwrap();
        assert!(visited.status_of("connections").unwrap() <= LIMIT as u64 + 4);
    }
    drop(silent);
    server.stop();
}

/// A frame that begins and does not end: its header, and so many bytes of its body.
fn begun(announced: usize, sent: usize) -> Vec<u8> {
    let mut bytes = framed(FrameKind::Messages, &[]);
    bytes[8..12].copy_from_slice(&(announced as u32).to_le_bytes());
    bytes.resize(HEADER_BYTES + sent, 7);
    bytes
}

#[test]
fn unfinished_frames_take_no_more_than_their_share() {
    const BUDGET: usize = 64 << 20;
    let network = Network {
        frame_bytes_max: BUDGET,
        incoming_bytes_total: BUDGET,
        // Those that have room are not hurried, as long as this takes.
        slow_after: 100 * PATIENCE,
        dead_after: PATIENCE,
        ..Network::default()
    };
    let limits = Limits { transaction_bytes: BUDGET / 2, ..Limits::default() };
    let server = serve_with(network, Settings { limits, ..Settings::default() });
    let _alone = MEMORY.lock().unwrap_or_else(|broken| broken.into_inner());
    let before = resident() as usize;
    // Twenty clients begin frames of 24 MiB, as far as the server reads them.
    let part = begun(FRAME, FRAME - 1);
    let mut clients: Vec<_> = (0..20).map(|number| server.client(number)).collect();
    for client in &mut clients {
        assert_eq!(first(client).unwrap().0, FrameKind::Welcome);
        client.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        let _ = client.write_all(&part); // Whatever is not taken in time waits in the socket.
    }
    // The test's own part is shared by all; what the server holds may have grown twice as large as
    // what is in it.
    let grown = (resident() as usize).saturating_sub(before).saturating_sub(FRAME);
    assert!(grown < 3 * BUDGET, "{} MiB", grown >> 20);
    // Who has little to say is heard meanwhile.
    let mut other = server.client(99);
    assert_eq!(first(&mut other).unwrap().0, FrameKind::Welcome);
    assert!(server.admin() > 20);
    drop(clients);
    server.stop();
}

/// The longest frame of servers that take long ones.
const FRAME: usize = 24 << 20;

/// Limits under which two of the longest frames are held at a time.
fn two_long_frames() -> Network {
    Network {
        frame_bytes_max: FRAME,
        incoming_bytes_total: 2 * FRAME + (1 << 20),
        dead_after: 3 * PATIENCE,
        ..Network::default()
    }
}

fn serve_long_frames(network: Network) -> Running {
    let limits = Limits { transaction_bytes: FRAME / 4 * 3, ..Limits::default() };
    serve_with(network, Settings { limits, ..Settings::default() })
}

impl Running {
    /// A client that has begun one of the longest frames, and sent so many bytes of its body.
    fn begin_long(&self, number: u32, sent: usize) -> TcpStream {
        let mut client = self.client(number);
        assert_eq!(first(&mut client).unwrap().0, FrameKind::Welcome);
        client.write_all(&begun(FRAME - HEADER_BYTES, sent)).unwrap();
        client
    }
}

#[test]
fn a_frame_that_trickles_gives_its_room_to_those_who_wait() {
    let network = two_long_frames();
    let server = serve_long_frames(network);
    let begin = |number: u32, sent: usize| server.begin_long(number, sent);
    // Two have all the room, and send the first bytes of what they have said that they would.
    let slow = [begin(0, 1 << 17), begin(1, 1 << 17)];
    let mut whole = begin(2, FRAME - HEADER_BYTES);
    // It was read to its end, and is no frame.
    let read = refusal(&mut whole).unwrap().text;
    assert!(read.contains("damaged"), "{read}");
    let refusals =
        slow.map(|mut client| refusal(&mut client).map(|it| it.text).unwrap_or_default());
    let text = "25165824 bytes came too slowly while others waited for room";
    assert!(refusals.iter().any(|it| it.contains(text)), "{refusals:?}");
    assert!(refusals.iter().any(|it| it.contains("`incoming_bytes_total`")), "{refusals:?}");
    server.stop();
}

/// The refusal that comes, if one does before the connection ends.
fn refusal(stream: &mut TcpStream) -> Option<ConnectionRefusal> {
    let mut bytes = Vec::new();
    loop {
        while let Some(found) = frame::next(&bytes, 1 << 20).unwrap() {
            if found.kind == FrameKind::Refusal {
                return Some(ConnectionRefusal::decode_all(found.body).unwrap());
            }
            let count = found.bytes();
            bytes.drain(..count);
        }
        let mut more = [0; 4096];
        match stream.read(&mut more) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&more[..count]),
        }
    }
}

/// Asks without end, and takes no answer in, until nothing more is taken.
fn be_deaf(stream: &mut TcpStream) {
    let mut ask = Vec::new();
    Control::AskStatus.encode(&mut ask);
    let question = framed(FrameKind::Control, &ask);
    let questions: Vec<u8> = question.iter().copied().cycle().take(question.len() * 4096).collect();
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    while stream.write_all(&questions).is_ok() {}
}

/// The smallest frames and the smallest buffers that can be.
fn narrow(slow_after: Duration) -> (Network, Settings) {
    let (key_bytes, value_bytes, transaction_bytes) = (1 << 10, 1 << 14, 1 << 15);
    let limits = Limits { key_bytes, value_bytes, transaction_bytes, ..Limits::default() };
    let network = Network {
        frame_bytes_max: 98_304,
        outgoing_bytes_high: 1 << 16,
        outgoing_bytes_max: 400_000,
        outgoing_bytes_total: 400_000,
        slow_after,
        dead_after: 10 * PATIENCE,
        ..Network::default()
    };
    (network, Settings { limits, ..Settings::default() })
}

#[test]
fn those_who_take_nothing_in_keep_no_administrator_out() {
    let (network, settings) = narrow(100 * PATIENCE);
    let server = serve_with(network, settings);
    let mut clients: Vec<_> = (0..10).map(|number| server.client(number)).collect();
    clients.iter_mut().for_each(be_deaf);
    assert!(server.admin() > 10);
    // Nor who comes to say who it is: its hello is answered.
    assert_eq!(first(&mut server.client(99)).unwrap().0, FrameKind::Welcome);
    server.stop();
}

impl Running {
    /// A connection that says hello and takes nothing in.
    fn deaf(&self) -> TcpStream {
        let mut stream = self.stranger();
        send_frame(&mut stream, &Hello::default());
        be_deaf(&mut stream);
        stream
    }
}

#[test]
fn probes_that_take_nothing_in_go_where_too_much_waits() {
    let (network, settings) = narrow(100 * PATIENCE);
    let server = serve_with(network, settings);
    let probes: Vec<_> = (0..10).map(|_| server.deaf()).collect();
    // Too few are left for all to be crowded: others are served.
    let status = visit::status(&server.address.to_string(), PATIENCE).unwrap();
    assert!(status.status_of("connections-turned-away").unwrap() > 0, "{status:?}");
    assert!(status.status_of("connections").unwrap() > 4, "{status:?}");
    drop(probes);
    server.stop();
}

#[test]
fn clients_that_take_nothing_in_go_soon_where_too_much_waits() {
    let (network, settings) = narrow(2 * PATIENCE);
    let server = serve_with(network, settings);
    let mut clients: Vec<_> = (0..10).map(|number| server.client(number)).collect();
    clients.iter_mut().for_each(be_deaf);
    until("some are closed", || {
        let mut visit =
            Visit::begin_as_admin(&server.address.to_string(), PATIENCE, Some(&secret()));
        let status = visit.as_mut().unwrap().ask(&Control::AskStatus).unwrap();
        let Control::Status(lines) = status else { panic!("{status:?}") };
        lines.iter().any(|(name, value)| name == "connections-turned-away" && *value > 0)
    });
    drop(clients);
    server.stop();
}

#[test]
fn probes_may_ask_and_not_send_long_frames() {
    let server = serve(Network::default());
    let mut probe = server.stranger();
    send_frame(&mut probe, &Hello::default());
    let (kind, body) = first(&mut probe).unwrap();
    assert_eq!(kind, FrameKind::Welcome);
    assert!(Welcome::decode_all(&body).is_ok());
    probe.write_all(&begun(1 << 20, 0)).unwrap();
    let (kind, body) = first(&mut probe).unwrap();
    assert_eq!(kind, FrameKind::Refusal);
    let refused = ConnectionRefusal::decode_all(&body).unwrap();
    assert!(refused.text.contains("1048576") && refused.text.contains("16384"), "{refused}");
    server.stop();
}

/// Those who have said who they are, and are to prove it, stay where others are closed because too
/// much waits to be sent: they are let in when they do.
#[test]
fn handshakes_under_way_are_spared_where_too_much_waits() {
    let (network, settings) = narrow(100 * PATIENCE);
    let server = serve_with(Network { hello_within: 100 * PATIENCE, ..network }, settings);
    let begin = || {
        let mut stream = server.stranger();
        let challenge = Challenge::draw();
        let hello =
            Hello { process_kind: ProcessKind::Admin, proves: true, challenge, ..Hello::default() };
        send_frame(&mut stream, &hello);
        let (kind, body) = first(&mut stream).unwrap();
        assert_eq!(kind, FrameKind::Challenge);
        let asked = Challenge::decode_all(&body).unwrap();
        (stream, proof::of_dialler(&secret(), &hello, asked))
    };
    let handshakes: Vec<_> = (0..10).map(|_| begin()).collect();
    let probes: Vec<_> = (0..10).map(|_| server.deaf()).collect();
    let status = visit::status(&server.address.to_string(), PATIENCE).unwrap();
    assert!(status.status_of("connections-turned-away").unwrap() > 0, "{status:?}");
    for (mut stream, tag) in handshakes {
        let mut body = Vec::new();
        SecretProof { tag }.encode(&mut body);
        stream.write_all(&framed(FrameKind::Proof, &body)).unwrap();
        assert_eq!(first(&mut stream).unwrap().0, FrameKind::Welcome);
    }
    drop(probes);
    server.stop();
}

/// Of frames that come slowly while others wait for room, the one that began first goes on.
#[test]
fn the_oldest_slow_frame_is_read_to_its_end() {
    const BEGUN: usize = 1 << 17;
    // A frame may stand still for so long, and for a tenth of it where others wait.
    let network = Network { slow_after: PATIENCE, ..two_long_frames() };
    let server = serve_long_frames(network);
    let begin = |number: u32, sent: usize| server.begin_long(number, sent);
    let mut oldest = begin(0, BEGUN);
    std::thread::sleep(Duration::from_millis(200));
    let mut second = begin(1, BEGUN);
    std::thread::scope(|scope| {
        let whole = scope.spawn(|| refusal(&mut begin(2, FRAME - HEADER_BYTES)).unwrap().text);
        let refusals = refusal(&mut second).unwrap().text;
        assert!(refusals.contains("came too slowly while others waited for room"), "{refusals}");
        // Whoever waited had the room of the second.
        let read = whole.join().unwrap();
        assert!(read.contains("damaged"), "{read}");
    });
    // The oldest has not sent a byte meanwhile, and is still read from: its frame is damaged, too.
    oldest.write_all(&vec![7; FRAME - HEADER_BYTES - BEGUN]).unwrap();
    let read = refusal(&mut oldest).unwrap().text;
    assert!(read.contains("damaged"), "{read}");
    server.stop();
}
