//! A whole frame is taken to who handles it.

use muesli_core::issuance;
use muesli_core::judgement::in_range;
use muesli_core::wire::{Reader, Wire};
use muesli_core::{Nanos, NodeId, Rejection, Role, Sender};

use crate::connections::connection::ConnectionState;
use crate::dispatch::event_loop::Loop;
use crate::dispatch::failure::LoopFailure;
use crate::mailbox::entry_point::EntryPoint;
use crate::storage::timestamp_lease::LeaseError;
use crate::wire::challenge::Challenge;
use crate::wire::frame::{FrameKind, WireFrame};
use crate::wire::hello::{Hello, ProcessKind, Welcome};
use crate::wire::progress::Alive;
use crate::wire::proof::SecretProof;
use crate::wire::refusal::{ConnectionRefusal, Reason};

impl Loop {
    /// A whole frame has come.
    pub(crate) fn on_frame(&mut self, place: usize, frame: WireFrame<'_>, now: Nanos) {
        let Some(connection) = self.peers.at(place) else { return };
        let done = match (connection.state, frame.kind) {
            (ConnectionState::AwaitHello, FrameKind::Hello) => {
                Hello::decode_all(frame.body).map(|hello| self.on_hello(place, hello, now))
            }
            (ConnectionState::AwaitProof, FrameKind::Proof) => {
                SecretProof::decode_all(frame.body).map(|proof| self.on_proof(place, proof, now))
            }
            (ConnectionState::AwaitWelcome, FrameKind::Challenge) => {
                Challenge::decode_all(frame.body).map(|it| self.on_challenge(place, it))
            }
            (ConnectionState::AwaitWelcome, FrameKind::Welcome) => {
                Welcome::decode_all(frame.body).map(|welcome| self.on_welcome(place, welcome, now))
            }
            (ConnectionState::AwaitWelcome | ConnectionState::Up { .. }, FrameKind::Refusal) => {
                ConnectionRefusal::decode_all(frame.body)
                    .map(|refusal| self.on_refusal(place, refusal, now))
            }
            (ConnectionState::Up { node, process_kind, .. }, FrameKind::Messages)
                if process_kind.is_node() =>
            {
                let taken = self.on_messages((node, process_kind), frame.body, now);
                if let Some(connection) = self.peers.at_mut(place) {
                    connection.taken += frame.bytes() as u64;
                }
                taken
            }
            (ConnectionState::Up { .. }, FrameKind::Control) => {
                Wire::decode_all(frame.body).map(|control| self.on_control(place, control, now))
            }
            (ConnectionState::Up { node, .. }, FrameKind::Alive) => {
                Alive::decode_all(frame.body).map(|alive| self.on_alive(place, node, alive))
            }
            (state, kind) => {
                let text = format!("a frame {kind:?} is out of place in {state:?}");
                self.refuse(place, Reason::Misunderstood, text, now);
                return;
            }
        };
        if let Err(error) = done {
            let text = format!("a frame {:?} cannot be decoded: {error}", frame.kind);
            self.refuse(place, Reason::Misunderstood, text, now);
        }
    }

    /// Takes the messages of a frame to the node. Where many answers are ready, they leave at once:
    /// who waits for them goes on while the rest is worked on.
    fn on_messages(
        &mut self,
        (from, process_kind): (NodeId, ProcessKind),
        body: &[u8],
        now: Nanos,
    ) -> Result<(), muesli_core::WireError> {
        let mut body = Reader::new(body);
        let Some(sender) = self.sender_of(process_kind, &mut body)? else { return Ok(()) };
        while body.left() > 0 {
            self.on_message((from, process_kind, sender), &mut body)?;
            let ripe = self.loop_engine.inner.borrow_mut().outside.outbox.take_ripe();
            if let Some(place) = ripe {
                self.write(place, now);
            }
        }
        Ok(())
    }

    /// Who sends messages, and what it proves for all that a frame has of them. `None`: they must
    /// not be taken.
    fn sender_of(
        &mut self,
        process_kind: ProcessKind,
        body: &mut Reader<'_>,
    ) -> Result<Option<Sender>, muesli_core::WireError> {
        let inner = &mut *self.loop_engine.inner.borrow_mut();
        if process_kind == ProcessKind::Client {
            return Ok(Some(inner.client(issuance::Proof::decode(body)?)));
        }
        if self.peers.me.process_kind == ProcessKind::Client {
            let proof = issuance::Proof::decode(body)?;
            if in_range(proof.upto).is_err() {
                self.peers.unproven += 1;
                return Ok(None);
            }
            // Nothing is taken behind what a client without a lease could not take.
            if self.failed.is_some() {
                return Ok(None);
            }
            if let Err(error) = inner.learn_issued(proof) {
                // Another client may use the file as soon as anybody knows that this one does not.
                inner.lease = None;
                lose_lease(&self.entry_point, &mut self.failed, &error);
                return Ok(None);
            }
        }
        Ok(Some(Sender::Member))
    }

    /// Takes a message to the node, which judges it. What names something that is not there is left
    /// out: its sender has another map, and says it again when it has this one. So is what a client
    /// says in the name of a repository, which it does not have.
    fn on_message(
        &mut self,
        (from, process_kind, sender): (NodeId, ProcessKind, Sender),
        body: &mut Reader<'_>,
    ) -> Result<(), muesli_core::WireError> {
        let inner = &mut *self.loop_engine.inner.borrow_mut();
        let (to, role) = (Role::decode(body)?, Role::decode(body)?);
        let from = muesli_core::Address { node: from, role };
        let to = muesli_core::Address { node: inner.machine.id(), role: to };
        match inner.receive(sender, (from, to), body)? {
            Err(Rejection::Catalog) => self.peers.astray += 1,
            Err(Rejection::Sender)
                if process_kind == ProcessKind::Client && role != Role::Coordinator =>
            {
                self.peers.unproven += 1;
            }
            Ok(()) | Err(_) => {}
        }
        Ok(())
    }
}

/// A client may see no more than what is on its disk already: it ends, and what it was just told is
/// told to nobody.
fn lose_lease(entry_point: &EntryPoint, failed: &mut Option<LoopFailure>, error: &LeaseError) {
    let text = format!(
        "{error}. What servers have answered since is not told, and the database is closed: what \
         was under way may have taken effect"
    );
    entry_point.change(|status| status.lost_lease = Some(text.clone()));
    failed.get_or_insert(LoopFailure::Lease(text));
}
