//! What waits to be written to a connection.
//!
//! Messages are encoded straight into the buffer that the socket will take them from. The
//! messages of a turn to one destination share a frame, unless they are many, and leave in one
//! write at its end. Between a client and a server a frame of messages begins with a [`Proof`] for
//! all of them, which is filled in when the frame ends.

use muesli_core::issuance::{Issuer, Proof};
use muesli_core::wire::Wire;
use muesli_core::{Encode, NodeId, Role, Timestamp};

use crate::mailbox::flow::Flow;
use crate::wire::frame::{self, FrameKind, HEADER_BYTES};
use crate::wire::progress::Alive;

/// A frame that has grown to so many bytes is ended and another one begun.
const FRAME_BYTES_AIM: usize = 64 << 10;
/// So many messages leave before the turn ends. Else the two ends of a connection would take turns:
/// one would work while the other waits for all of it.
const RIPE_MESSAGES: u32 = 16;
/// A buffer that has grown beyond this is given back once it is empty.
const KEPT_BYTES_MAX: usize = 256 << 10;

/// Bytes of a proof.
const PROOF_BYTES: usize = Proof::LEAST_BYTES;

/// What frames of messages between a client and a server prove.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Proves {
    /// By a server: the timestamps that it knows to be issued.
    Issued(Issuer, Timestamp),
    /// By a client: what servers have proven to it.
    Shown(Proof),
}

impl Proves {
    fn proof(self) -> Proof {
        match self {
            Proves::Issued(issuer, upto) => issuer.proof(upto),
            Proves::Shown(proof) => proof,
        }
    }
}

/// The bytes that wait for one connection.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    bytes: Vec<u8>,
    written: usize,
    /// Where the frame of messages that is still growing begins.
    open: Option<usize>,
    /// Messages since the last write.
    fresh: u32,
    /// What of the messages the other end has taken.
    pub flow: Flow,
    /// What a frame that ends now proves; between servers it proves nothing.
    pub proves: Option<Proves>,
}

impl SendBuffer {
    /// Appends a message, unless it is longer than a frame's body may be; false then.
    pub fn message(&mut self, from: Role, to: Role, message: &dyn Encode, most: usize) -> bool {
        let start = match self.open {
            Some(start) => start,
            None => self.begin_frame(),
        };
        let before = self.bytes.len();
        to.encode(&mut self.bytes);
        from.encode(&mut self.bytes);
        message.encode_to(&mut self.bytes);
        let body = self.bytes.len() - start - HEADER_BYTES;
        if body > most {
            if before == start + HEADER_BYTES + self.proof_bytes() {
                self.bytes.truncate(start);
                self.open = None;
                return false;
            }
            self.bytes.truncate(before);
            self.end_frame();
            return self.message(from, to, message, most);
        }
        if body > FRAME_BYTES_AIM.min(most / 2) {
            self.end_frame();
        }
        self.fresh += 1;
        true
    }

    /// Appends a frame of its own.
    pub fn frame(&mut self, kind: FrameKind, body: &impl Wire) {
        self.end_frame();
        let start = frame::begin(kind, &mut self.bytes);
        body.encode(&mut self.bytes);
        frame::end(start, &mut self.bytes);
    }

    /// Appends a sign of life.
    pub fn alive(&mut self, alive: Alive) {
        self.frame(FrameKind::Alive, &alive);
    }

    /// Begins a frame of messages, with room for what it proves.
    fn begin_frame(&mut self) -> usize {
        let start = frame::begin(FrameKind::Messages, &mut self.bytes);
        self.bytes.extend_from_slice(&[0; PROOF_BYTES][..self.proof_bytes()]);
        self.open = Some(start);
        start
    }

    fn proof_bytes(&self) -> usize {
        if self.proves.is_some() { PROOF_BYTES } else { 0 }
    }

    fn end_frame(&mut self) {
        if let Some(start) = self.open.take() {
            if let Some(proves) = self.proves {
                let end = self.bytes.len();
                proves.proof().encode(&mut self.bytes);
                self.bytes.copy_within(end.., start + HEADER_BYTES);
                self.bytes.truncate(end);
            }
            frame::end(start, &mut self.bytes);
            self.flow.send(self.bytes.len() - start);
        }
    }

    /// Whether messages wait in a frame that has not ended.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// How many bytes wait.
    pub fn waiting(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// The bytes to be written now.
    pub fn ready(&mut self) -> &[u8] {
        self.end_frame();
        self.fresh = 0;
        &self.bytes[self.written..]
    }

    /// So many of them were written.
    pub fn advance(&mut self, count: usize) {
        self.written += count;
        if self.written == self.bytes.len() {
            self.written = 0;
            self.bytes.clear();
            if self.bytes.capacity() > KEPT_BYTES_MAX {
                self.bytes = Vec::new();
            }
        } else if self.written > KEPT_BYTES_MAX.max(self.bytes.len() / 2) {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
    }
}

/// What waits for every connection, by the connection's place, and who is at which.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    places: Vec<SendBuffer>,
    nodes: hashbrown::HashMap<NodeId, usize, foldhash::fast::RandomState>,
    /// Places with something to be written, each once.
    dirty: Vec<usize>,
    is_dirty: Vec<bool>,
    /// The last place that something was appended to.
    last: usize,
}

impl Outbox {
    /// The connection at `place` is new.
    pub fn open(&mut self, place: usize) {
        if self.places.len() <= place {
            self.places.resize_with(place + 1, SendBuffer::default);
            self.is_dirty.resize(place + 1, false);
        }
        self.places[place] = SendBuffer::default();
    }

    /// `node` is at `place`.
    pub fn name(&mut self, place: usize, node: NodeId) {
        self.nodes.insert(node, place);
    }

    /// The connection at `place` is gone, and with it what it had not written.
    pub fn close(&mut self, place: usize, node: Option<NodeId>) {
        self.places[place] = SendBuffer::default();
        if let Some(node) = node
            && self.nodes.get(&node) == Some(&place)
        {
            self.nodes.remove(&node);
        }
    }

    /// Where `node` is, if it is connected.
    pub fn place_of(&self, node: NodeId) -> Option<usize> {
        self.nodes.get(&node).copied()
    }

    /// What waits for the connection at `place`, to be appended to.
    pub fn to(&mut self, place: usize) -> &mut SendBuffer {
        if !std::mem::replace(&mut self.is_dirty[place], true) {
            self.dirty.push(place);
        }
        self.last = place;
        &mut self.places[place]
    }

    /// What waits for the connection at `place`.
    pub fn at(&mut self, place: usize) -> &mut SendBuffer {
        &mut self.places[place]
    }

    /// A place that has enough for a write of its own.
    pub fn take_ripe(&mut self) -> Option<usize> {
        let outgoing = self.places.get_mut(self.last)?;
        (outgoing.fresh >= RIPE_MESSAGES).then(|| {
            outgoing.fresh = 0;
            self.last
        })
    }

    /// The places with something to be written.
    pub fn take_dirty(&mut self) -> Vec<usize> {
        let dirty = std::mem::take(&mut self.dirty);
        for &place in &dirty {
            self.is_dirty[place] = false;
        }
        dirty
    }

    /// Whether something is to be written.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// How many bytes wait for the connection at `place`.
    pub fn waiting_at(&self, place: usize) -> usize {
        self.places.get(place).map_or(0, SendBuffer::waiting)
    }

    /// How many bytes wait, for all connections and for the one with most.
    pub fn waiting(&self) -> (usize, usize) {
        let each = self.places.iter().map(SendBuffer::waiting);
        each.fold((0, 0), |(all, most), one| (all + one, most.max(one)))
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::RepositoryId;
    use muesli_core::wire::Reader;
    use proptest::prelude::*;

    use super::*;

    const MOST: usize = 4096;

    proptest! {
        #[test]
        fn messages_arrive_in_order_however_they_are_written(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..900), 0..40),
            steps in prop::collection::vec(1usize..3000, 1..40),
        ) {
            let mut outgoing = SendBuffer::default();
            let (mut stream, mut steps) = (Vec::new(), steps.into_iter().cycle());
            for (number, message) in messages.iter().enumerate() {
                let to = Role::Repository(RepositoryId(number as u16));
                prop_assert!(outgoing.message(Role::Coordinator, to, message, MOST));
                if number % 3 == 0 {
                    let ready = outgoing.ready();
                    let count = ready.len().min(steps.next().unwrap());
                    stream.extend_from_slice(&ready[..count]);
                    outgoing.advance(count);
                }
            }
            stream.extend_from_slice(outgoing.ready());
            outgoing.advance(outgoing.waiting());
            prop_assert_eq!(outgoing.waiting(), 0);
            let (mut rest, mut read) = (&stream[..], Vec::new());
            while let Some(found) = frame::next(rest, MOST).unwrap() {
                let mut body = Reader::new(found.body);
                while body.left() > 0 {
                    let to = Role::Repository(RepositoryId(read.len() as u16));
                    prop_assert_eq!(Role::decode(&mut body), Ok(to));
                    prop_assert_eq!(Role::decode(&mut body), Ok(Role::Coordinator));
                    read.push(Vec::<u8>::decode(&mut body).unwrap());
                }
                rest = &rest[found.bytes()..];
            }
            prop_assert!(rest.is_empty());
            prop_assert_eq!(read, messages);
        }
    }

    #[test]
    fn many_messages_for_one_place_are_ripe_once() {
        let mut outbox = Outbox::default();
        (0..2).for_each(|place| outbox.open(place));
        for number in 1..2 * RIPE_MESSAGES {
            outbox.to(0).message(Role::Coordinator, Role::Coordinator, &7u64, MOST);
            assert_eq!(outbox.take_ripe(), (number == RIPE_MESSAGES).then_some(0));
        }
        outbox.to(1).message(Role::Coordinator, Role::Coordinator, &7u64, MOST);
        assert_eq!((outbox.take_ripe(), outbox.take_dirty()), (None, vec![0, 1]));
    }

    #[test]
    fn a_message_longer_than_a_frame_is_left_out() {
        let shown = Proves::Shown(Proof { upto: Timestamp(5), tag: 6 });
        for (proves, bytes) in [(None, 12), (Some(shown), 28)] {
            let mut outgoing = SendBuffer { proves, ..SendBuffer::default() };
            let long = vec![0u8; MOST];
            assert!(!outgoing.message(Role::Coordinator, Role::Coordinator, &long, MOST));
            assert!(outgoing.message(Role::Coordinator, Role::Coordinator, &7u64, MOST));
            let frame = frame::next(outgoing.ready(), MOST).unwrap().unwrap();
            assert_eq!(frame.body.len(), bytes);
        }
    }

    #[test]
    fn a_frame_proves_what_is_issued_as_it_ends() {
        let (issuer, mut outgoing) = (Issuer::new([3; 16]), SendBuffer::default());
        for upto in [7, 9].map(Timestamp) {
            outgoing.proves = Some(Proves::Issued(issuer, upto));
            outgoing.message(Role::Coordinator, Role::Coordinator, &7u64, MOST);
        }
        let frame = frame::next(outgoing.ready(), MOST).unwrap().unwrap();
        let proof = Proof::decode(&mut Reader::new(frame.body)).unwrap();
        assert_eq!((proof.upto, issuer.proven(proof)), (Timestamp(9), Timestamp(9)));
    }
}
