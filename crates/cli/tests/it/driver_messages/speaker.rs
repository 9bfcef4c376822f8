//! Somebody at the other end of a connection to a server, who says frames of its own making.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use muesli_cluster::spaces::parts::MapParts;
use muesli_cluster::wire::challenge::Challenge;
use muesli_cluster::wire::control::Control;
use muesli_cluster::wire::frame::{self, FrameKind, framed};
use muesli_cluster::wire::hello::{Hello, ProcessKind, Welcome};
use muesli_cluster::wire::progress::{Alive, Reached};
use muesli_cluster::wire::proof::{self, SecretProof};
use muesli_cluster::{ClusterId, DataId};
use muesli_core::{NodeId, Wire};

use super::{HONEST, PATIENCE, secret};

/// The longest frame that a server of these tests says.
const FRAME_BYTES_MAX: usize = 16 << 20;

/// Who comes back when it is sent away.
pub struct Speaker {
    address: String,
    process_kind: ProcessKind,
    stream: Option<TcpStream>,
    received: Vec<u8>,
    map: MapParts,
    /// What was said last has its answer.
    answered: bool,
}

fn encoded(kind: FrameKind, value: &impl Wire) -> Vec<u8> {
    let mut body = Vec::new();
    value.encode(&mut body);
    framed(kind, &body)
}

/// Comes, says this and another frame, and goes when the server has answered or closed.
pub fn introduce(address: &str, hello: &Hello, (kind, body): (FrameKind, Vec<u8>)) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let both = [encoded(FrameKind::Hello, hello), framed(kind, &body)].concat();
    let _ = stream.write_all(&both); // It may be sent away at once.
    match stream.read(&mut [0; 1024]) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("{hello:?} is not answered: {error}"),
    }
}

impl Speaker {
    pub fn new(address: &str, process_kind: ProcessKind) -> Speaker {
        let address = address.to_owned();
        let (stream, received, map) = (None, Vec::new(), MapParts::default());
        let mut speaker = Speaker { address, process_kind, stream, received, map, answered: false };
        speaker.come();
        speaker
    }

    pub fn is_member(&self) -> bool {
        self.process_kind == ProcessKind::Server
    }

    /// The map that the server has told last.
    pub fn map(&mut self) -> MapParts {
        self.receive_all();
        self.map.clone()
    }

    /// Says hello, and proves the secret where that is asked for.
    fn come(&mut self) {
        let (node, data_id) = match self.process_kind {
            ProcessKind::Server => (NodeId(HONEST as u32), DataId(77)),
            _ => (NodeId((1 << 31) + fastrand::u32(..1 << 30)), DataId(fastrand::u64(1..))),
        };
        let proves = matches!(self.process_kind, ProcessKind::Server | ProcessKind::Admin);
        // Its data have begun after those of whoever had its name before.
        let own = Reached { node, data_id, begun: 1 << 50, process: 1, record: 0 };
        let hello = Hello {
            cluster: ClusterId(1),
            protocol: self.protocol(),
            process_kind: self.process_kind,
            node,
            data_id,
            heights: if self.is_member() { vec![own] } else { Vec::new() },
            proves,
            challenge: if proves { Challenge::draw() } else { Challenge::default() },
            ..Hello::default()
        };
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&encoded(FrameKind::Hello, &hello)).unwrap();
        self.received.clear();
        if proves {
            let asked =
                Challenge::decode_all(&self.receive(&mut stream, FrameKind::Challenge)).unwrap();
            let tag = proof::of_dialler(&secret(), &hello, asked);
            stream.write_all(&encoded(FrameKind::Proof, &SecretProof { tag })).unwrap();
        }
        let welcome = self.receive(&mut stream, FrameKind::Welcome);
        self.map = Welcome::decode_all(&welcome).unwrap().map;
        stream.set_nonblocking(true).unwrap();
        self.stream = Some(stream);
    }

    /// As servers and clients of this cluster name it, which a visit tells.
    fn protocol(&self) -> String {
        let visit =
            muesli_cluster::lifecycle::visit::Visit::begin(&self.address, PATIENCE).unwrap();
        match visit.welcome.map.group {
            0 | 1 => "score".to_owned(),
            group => format!("score in groups of {group}"),
        }
    }

    /// The body of the next frame of this kind.
    fn receive(&mut self, stream: &mut TcpStream, wanted: FrameKind) -> Vec<u8> {
        loop {
            if let Some(found) = frame::next(&self.received, FRAME_BYTES_MAX).unwrap() {
                let (kind, body, bytes) = (found.kind, found.body.to_vec(), found.bytes());
                self.received.drain(..bytes);
                assert_ne!(kind, FrameKind::Refusal, "{}", String::from_utf8_lossy(&body));
                if kind == wanted {
                    return body;
                }
                continue;
            }
            let mut more = [0; 16 << 10];
            let count = stream.read(&mut more).unwrap();
            assert!(count > 0, "{:?} is not let in", self.process_kind);
            self.received.extend_from_slice(&more[..count]);
        }
    }

    /// As a server that is there tells it.
    pub fn tell_map(&mut self) {
        let map = self.map.clone();
        self.print_line(&Control::Map(map), None);
    }

    /// Says this, and comes again first where it was sent away.
    pub fn print_line(&mut self, control: &Control, alive: Option<Alive>) {
        self.receive_all();
        let alive = alive.map(|alive| encoded(FrameKind::Alive, &alive)).unwrap_or_default();
        let bytes = [alive, encoded(FrameKind::Control, control)].concat();
        self.answered = false;
        self.write(&bytes);
        if self.is_answered(control) {
            self.await_answer(control);
        }
    }

    /// Whether the server says something to this, or closes: what is said behind the last word of
    /// a connection is not heard.
    fn is_answered(&self, control: &Control) -> bool {
        let is_node = self.process_kind.is_node();
        match control {
            Control::CreateSpace { .. } | Control::Place(_) => true,
            Control::SpacesMade(_) => !is_node,
            Control::SampleAccesses(_) => self.process_kind != ProcessKind::Admin,
            _ => false,
        }
    }

    fn await_answer(&mut self, control: &Control) {
        let deadline = Instant::now() + PATIENCE;
        while !self.answered && self.stream.is_some() {
            assert!(
                Instant::now() < deadline,
                "{:?} is not answered: {control:?}",
                self.process_kind
            );
            std::thread::sleep(Duration::from_micros(100));
            self.take_in();
        }
    }

    fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let Some(stream) = &mut self.stream else { return };
            match stream.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.take_in();
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(_) => self.stream = None,
            }
        }
    }

    /// Takes in what has come, and comes again where it was sent away.
    pub fn receive_all(&mut self) {
        self.take_in();
        if self.stream.is_none() {
            self.come();
        }
    }

    /// Takes in what has come, and the map where there is one.
    fn take_in(&mut self) {
        let mut more = [0; 64 << 10];
        while let Some(stream) = &mut self.stream {
            match stream.read(&mut more) {
                Ok(0) => self.stream = None,
                Ok(count) => self.received.extend_from_slice(&more[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.stream = None,
            }
        }
        while let Some(found) = frame::next(&self.received, FRAME_BYTES_MAX).unwrap() {
            let bytes = found.bytes();
            if found.kind == FrameKind::Control {
                match Control::decode_all(found.body).unwrap() {
                    Control::Map(map) => self.map = map,
                    Control::SpaceCreated { .. } | Control::Members { .. } => self.answered = true,
                    _ => {}
                }
            }
            self.received.drain(..bytes);
        }
    }
}
