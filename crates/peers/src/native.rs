//! Counters of a Muesli server, added to by a procedure over the native protocol.
//!
//! Each connection is a client node of its own that says no more than such a node must: who it is,
//! and then calls, each a one-round transaction of the one repository, with what its session has
//! seen and what it has settled.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use muesli_cluster::spaces::parts::SpaceParts;
use muesli_cluster::wire::control::Control;
use muesli_cluster::wire::frame::{self, FrameKind, WireFrame};
use muesli_cluster::wire::hello::{Hello, ProcessKind, Welcome};
use muesli_cluster::wire::ids::{ClusterId, DataId};
use muesli_core::issuance::Proof;
use muesli_core::wire::{Reader, Wire};
use muesli_core::{NodeId, ProcedureId, RepositoryId, Role, SmallBytes, TxnId};
use muesli_protocols::granola::message::{
    Few, Message, Part, PartAnswer, ReplyOutcome, Repositories, Request, Task,
};

use crate::load::Dialect;

/// The longest frame that is taken.
const FRAME_BYTES_MAX: usize = 16 << 20;
/// Clients have the numbers from here on.
const FIRST_CLIENT: u32 = 1 << 31;
/// The space of counters, the first that is made.
const SPACE: u16 = 0;
const PARTITION: u16 = 0;

/// A connection's calls.
pub struct Calls {
    request: Arc<Request>,
    /// Where the frame begins that is being written.
    open: Option<usize>,
    /// Calls that were answered, in their order.
    answered: u64,
    /// The largest proof that the server gave of what it has issued: what calls name is shown with
    /// it.
    proof: Proof,
    arguments: Vec<u8>,
}

/// Connects as the client of this number.
///
/// # Errors
/// The server does not take it in.
pub fn connect(address: SocketAddr, number: u32) -> anyhow::Result<(TcpStream, Calls)> {
    let mut stream = crate::load::connect(address)?;
    let node = NodeId(FIRST_CLIENT + number);
    let hello = Hello {
        cluster: ClusterId(0),
        protocol: "granola".to_owned(),
        process_kind: ProcessKind::Client,
        node,
        data_id: DataId(u64::from(number) + 1),
        data_ids: Vec::new(),
        ..Hello::default()
    };
    send(&mut stream, FrameKind::Hello, &hello)?;
    let mut input = Vec::new();
    let welcome: Welcome = receive(&mut stream, &mut input, FrameKind::Welcome)?;
    if welcome.map.spaces.is_empty() {
        let space = SpaceParts { name: "counters".to_owned(), ..SpaceParts::default() };
        send(&mut stream, FrameKind::Control, &Control::CreateSpace { request: 1, space })?;
        while !matches!(
            receive(&mut stream, &mut input, FrameKind::Control)?,
            Control::SpaceCreated { refused: None, .. }
        ) {}
    }
    ensure!(input.is_empty(), "the server says more than it was asked");
    Ok((stream, Calls::of(node)))
}

impl Calls {
    fn of(node: NodeId) -> Calls {
        let procedure = ProcedureId { name: "counter-add".into(), version: 1 };
        let task = Task::Call { procedure, arguments: SmallBytes::EMPTY, shares: false, spaces: 1 };
        let request = Request::new(
            TxnId { node, incarnation: 1, sequence: 0 },
            Repositories::from_iter([RepositoryId(0)]),
            Few::from_iter([Part { partition: PARTITION, owners: None, task }]),
        );
        let (proof, arguments) = (Proof::default(), Vec::new());
        Calls { request: Arc::new(request), open: None, answered: 0, proof, arguments }
    }

    fn take(&mut self, message: Message, shown: &mut Vec<u64>) -> anyhow::Result<()> {
        let Message::Reply { txn, end, .. } = message else {
            bail!("an unexpected message: {message:?}")
        };
        ensure!(txn.sequence == self.answered + 1, "answers come in another order");
        let ReplyOutcome::Done { at, answers } = end else { bail!("a call was not done: {end:?}") };
        let [(_, PartAnswer::Given(given))] = &answers[..] else { bail!("not one answer") };
        shown.push(varint(given.as_slice()).context("this is no number")?);
        self.answered = txn.sequence;
        let request = Arc::get_mut(&mut self.request).expect("nobody else has it");
        (request.lower_bound, request.settled_below) =
            (request.lower_bound.max(at), self.answered + 1);
        Ok(())
    }
}

impl Dialect for Calls {
    fn ask(&mut self, counter: u32, amount: u64, out: &mut Vec<u8>) {
        if self.open.is_none() {
            self.open = Some(frame::begin(FrameKind::Messages, out));
            self.proof.encode(out);
        }
        self.arguments.clear();
        // As the procedure has them: space, counter, amount, the most, rounds of work.
        for number in [u64::from(SPACE), u64::from(counter), amount, 0, 0] {
            write_varint(number, &mut self.arguments);
        }
        let request = Arc::get_mut(&mut self.request).expect("nobody else has it");
        request.txn.sequence += 1;
        let Task::Call { arguments, .. } = &mut request.parts[0].task else { unreachable!() };
        *arguments = SmallBytes::new(&self.arguments);
        Role::Repository(RepositoryId(0)).encode(out);
        Role::Coordinator.encode(out);
        Message::Request(self.request.clone()).encode(out);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(start) = self.open.take() {
            frame::end(start, out);
        }
    }

    fn receive(&mut self, input: &[u8], shown: &mut Vec<u64>) -> anyhow::Result<usize> {
        let mut taken = 0;
        while let Some(found) = frame::next(&input[taken..], FRAME_BYTES_MAX)? {
            taken += found.bytes();
            let WireFrame { kind: FrameKind::Messages, body } = found else {
                ensure!(found.kind == FrameKind::Alive, "an unexpected frame {:?}", found.kind);
                continue;
            };
            let mut body = Reader::new(body);
            self.proof = self.proof.max(Proof::decode(&mut body)?);
            while body.left() > 0 {
                let (_to, _from) = (Role::decode(&mut body)?, Role::decode(&mut body)?);
                self.take(Message::decode(&mut body)?, shown)?;
            }
        }
        Ok(taken)
    }
}

/// Numbers in the postcard format: seven bits a byte, the lowest first.
fn write_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn varint(bytes: &[u8]) -> Option<u64> {
    let mut number = 0;
    for (place, byte) in bytes.iter().enumerate() {
        number |= u64::from(byte & 0x7f).checked_shl(7 * place as u32)?;
    }
    bytes.last().is_some_and(|last| *last < 0x80).then_some(number)
}

fn send(stream: &mut TcpStream, kind: FrameKind, body: &impl Wire) -> anyhow::Result<()> {
    let mut bytes = Vec::new();
    let start = frame::begin(kind, &mut bytes);
    body.encode(&mut bytes);
    frame::end(start, &mut bytes);
    Ok(stream.write_all(&bytes)?)
}

/// The next frame of a kind; what comes before it is passed over.
fn receive<T: Wire>(
    stream: &mut TcpStream,
    input: &mut Vec<u8>,
    wanted: FrameKind,
) -> anyhow::Result<T> {
    loop {
        if let Some(found) = frame::next(input, FRAME_BYTES_MAX)? {
            let (kind, bytes) = (found.kind, found.bytes());
            ensure!(kind != FrameKind::Refusal, "the server refuses");
            let body = (kind == wanted).then(|| T::decode_all(found.body)).transpose()?;
            input.drain(..bytes);
            if let Some(body) = body {
                return Ok(body);
            }
            continue;
        }
        let mut more = [0; 4096];
        let count = stream.read(&mut more)?;
        ensure!(count > 0, "the server has closed a connection");
        input.extend_from_slice(&more[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 0x7f, 0x80, 300, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            write_varint(number, &mut out);
            assert_eq!(varint(&out), Some(number));
        }
        assert_eq!((varint(&[]), varint(&[0x80])), (None, None));
    }

    #[test]
    fn calls_are_frames_of_requests() {
        let (mut calls, mut out) = (Calls::of(NodeId(9)), Vec::new());
        calls.ask(3, 5, &mut out);
        calls.ask(4, 6, &mut out);
        calls.end(&mut out);
        let found = frame::next(&out, FRAME_BYTES_MAX).unwrap().unwrap();
        assert_eq!((found.kind, found.bytes()), (FrameKind::Messages, out.len()));
        let mut body = Reader::new(found.body);
        assert_eq!(Proof::decode(&mut body), Ok(Proof::default()));
        for sequence in [1, 2] {
            let (to, from) = (Role::decode(&mut body).unwrap(), Role::decode(&mut body).unwrap());
            assert_eq!((to, from), (Role::Repository(RepositoryId(0)), Role::Coordinator));
            let Message::Request(request) = Message::decode(&mut body).unwrap() else { panic!() };
            assert_eq!(request.txn.sequence, sequence);
        }
        assert_eq!(body.left(), 0);
    }
}
