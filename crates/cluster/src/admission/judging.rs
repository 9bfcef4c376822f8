//! Who is let in: what a hello claims is proven where it must be, and judged.

use muesli_core::{Nanos, NodeId};

use crate::connections::connection::{ConnectionState, HandshakeClaim};
use crate::dispatch::event_loop::Loop;
use crate::dispatch::failure::LoopFailure;
use crate::spaces::parts::MapParts;
use crate::wire::challenge::Challenge;
use crate::wire::frame::FrameKind;
use crate::wire::hello::{CLIENT_NUMBERS, Hello, ProcessKind, Welcome};
use crate::wire::ids::{ClusterId, DataId};
use crate::wire::progress::own_of;
use crate::wire::proof::{self, SecretProof};
use crate::wire::protocol_name::is_same_protocol;
use crate::wire::refusal::{ConnectionRefusal, Reason, left};

impl Loop {
    /// Somebody has said who it is: it is asked for a proof, welcomed or refused.
    pub(crate) fn on_hello(&mut self, place: usize, hello: Hello, now: Nanos) {
        if !self.has_capacity_for(place, hello.process_kind, now) {
            self.peers.refused_at_limit += 1;
            let text = self.full();
            self.refuse(place, Reason::Full, text, now);
            return;
        }
        let challenge = match self.proof_of(&hello) {
            Ok(false) => {
                self.admit(place, hello, now);
                return;
            }
            Ok(true) => Challenge::draw(),
            Err(text) => {
                self.peers.unproven += 1;
                self.keep_claim(place, hello);
                self.refuse(place, Reason::Unproven, text, now);
                return;
            }
        };
        self.keep_claim(place, hello);
        let Some(connection) = self.peers.at_mut(place) else { return };
        connection.state = ConnectionState::AwaitProof;
        if let Some(claim) = &mut connection.claim {
            claim.challenge = challenge;
        }
        self.frame(place, FrameKind::Challenge, &challenge);
    }

    /// Whether whoever says this has to prove the cluster's secret, or why it cannot come in.
    fn proof_of(&self, hello: &Hello) -> Result<bool, String> {
        let must = match hello.process_kind {
            ProcessKind::Server | ProcessKind::Admin => true,
            ProcessKind::Client => self.peers.clients_prove,
            ProcessKind::Probe => false,
        };
        match (&self.peers.me.secret, hello.proves) {
            (Some(_), true) => Ok(true),
            (None, false) => Ok(false),
            (Some(_), false) if !must => Ok(false),
            (Some(_), false) => Err(format!(
                "{} has to prove that it knows the cluster's secret, and has none: give it the \
                 servers' `secret_file`",
                hello.process_kind.name()
            )),
            (None, true) => Err("this server has no secret, and cannot prove that it is of the \
                                 cluster: give it the `secret_file` of the others"
                .to_owned()),
        }
    }

    /// Keeps what was said, as long as the handshake lasts.
    fn keep_claim(&mut self, place: usize, hello: Hello) {
        if let Some(connection) = self.peers.at_mut(place) {
            connection.claim =
                Some(Box::new(HandshakeClaim { hello, challenge: Challenge::default() }));
        }
    }

    /// The answer to this server's challenge.
    pub(crate) fn on_proof(&mut self, place: usize, proof: SecretProof, now: Nanos) {
        let Some(connection) = self.peers.at_mut(place) else { return };
        let claim = connection.claim.take().expect("it was asked for what it claims");
        let secret = self.peers.me.secret.as_ref().expect("who has none asks for no proof");
        if proof::is_of_dialler(secret, &claim.hello, claim.challenge, &proof.tag) {
            self.admit(place, claim.hello, now);
            return;
        }
        self.peers.unproven += 1;
        let text = "the proof is wrong: its secret is not this cluster's; give it the servers' \
                    `secret_file`";
        self.refuse(place, Reason::Unproven, text.to_owned(), now);
    }

    /// The server that was dialled asks for a proof.
    pub(crate) fn on_challenge(&mut self, place: usize, challenge: Challenge) {
        let claim = self.peers.at(place).and_then(|connection| connection.claim.as_ref());
        let (Some(secret), Some(claim)) = (&self.peers.me.secret, claim) else { return };
        let proof = SecretProof { tag: proof::of_dialler(secret, &claim.hello, challenge) };
        self.frame(place, FrameKind::Proof, &proof);
    }

    /// Whether the server at `place` has proven what this process wants proven.
    pub(crate) fn is_proven(&self, place: usize, welcome: &Welcome) -> bool {
        let Some(secret) = &self.peers.me.secret else { return true };
        let claim = self.peers.at(place).and_then(|connection| connection.claim.as_ref());
        claim.is_some_and(|claim| proof::is_signed(secret, claim.hello.challenge, welcome))
    }

    /// Whether a refusal is a server's of this cluster, as far as this process can tell.
    pub(crate) fn is_believed(&self, place: usize, refusal: &ConnectionRefusal) -> bool {
        let Some(connection) = self.peers.at(place) else { return false };
        // Whoever is no server refuses nobody.
        if let ConnectionState::Up { process_kind, .. } = connection.state {
            return process_kind == ProcessKind::Server;
        }
        let Some(secret) = &self.peers.me.secret else { return true };
        match &connection.claim {
            Some(claim) => proof::is_signed_refusal(secret, claim.hello.challenge, refusal),
            _ => false,
        }
    }

    /// A refusal for whoever is at `place`, with a proof if it asked for one.
    pub(crate) fn refusal_to(
        &self,
        place: usize,
        reason: Reason,
        text: String,
    ) -> ConnectionRefusal {
        let refusal = ConnectionRefusal { reason, text, proof: None };
        let claim = self.peers.at(place).and_then(|connection| connection.claim.as_ref());
        match (&self.peers.me.secret, claim) {
            (Some(secret), Some(claim)) if claim.hello.proves => {
                proof::signed_refusal(secret, claim.hello.challenge, refusal)
            }
            _ => refusal,
        }
    }

    /// Tells those who look after this server that another one refuses it, once each.
    pub(crate) fn tell_refused(&mut self, text: &str) {
        if self.peers.reported_refusal.as_deref() != Some(text) {
            self.peers.reported_refusal = Some(text.to_owned());
            (self.notice)(&format!("another server does not let this one in: {text}"));
        }
    }

    /// Lets in whoever has proven what it must.
    fn admit(&mut self, place: usize, hello: Hello, now: Nanos) {
        let judged = self.judge(&hello);
        let (challenge, proves) = (hello.challenge, hello.proves);
        if let Err((reason, text)) = judged {
            self.keep_claim(place, hello);
            self.refuse(place, reason, text, now);
            return;
        }
        let own = own_of(&hello.heights);
        let Hello { process_kind, node, data_id, .. } = hello;
        let before = self.loop_engine.inner.borrow().outside.outbox.place_of(node);
        if let Some(before) = before.filter(|_| process_kind.is_node()) {
            // The same process once more: it has noticed before us that the link is dead.
            self.close(before, now, "the other end dialled again");
        }
        let Some(map) = &self.peers.map else { return };
        let welcome = Welcome {
            cluster: self.peers.me.cluster,
            node: self.peers.me.node,
            data_id: self.peers.me.data_id,
            data_ids: self.peers.data_ids(),
            heights: self.heights_to(process_kind),
            map: MapParts::from(map),
            proof: None,
        };
        let welcome = match &self.peers.me.secret {
            Some(secret) if proves => proof::signed(secret, challenge, welcome),
            _ => welcome,
        };
        self.frame(place, FrameKind::Welcome, &welcome);
        self.come_up(place, ConnectionState::Up { node, process_kind, data_id, own });
        self.close_expendable_for_welcome(place, now);
    }

    /// Whether whoever says hello may come in.
    fn judge(&mut self, hello: &Hello) -> Result<(), (Reason, String)> {
        let (me, map) = (&self.peers.me, self.peers.map.as_ref());
        if hello.cluster != ClusterId(0) && hello.cluster != me.cluster {
            let text = format!("this is cluster {:x}, not {:x}", me.cluster.0, hello.cluster.0);
            return Err((Reason::Cluster, text));
        }
        let is_server = map.is_some_and(|map| map.address_of(hello.node).is_some());
        if hello.process_kind == ProcessKind::Server
            && map.is_some_and(|map| map.has_left(hello.node))
        {
            return Err((Reason::Left, left(hello.node)));
        }
        if !hello.process_kind.is_node() {
            return Ok(());
        }
        if !is_same_protocol(&hello.protocol, &me.protocol) {
            let text = format!("this cluster runs protocol `{}`", me.protocol);
            return Err((Reason::Protocol, text));
        }
        if is_server != (hello.process_kind == ProcessKind::Server) || hello.node == me.node {
            let text =
                format!("node {} cannot come in as a {:?}", hello.node.0, hello.process_kind);
            return Err((Reason::Taken, text));
        }
        // Who has the number of no server could be taken for one that joins, or for nobody.
        if hello.process_kind == ProcessKind::Client && !CLIENT_NUMBERS.contains(&hello.node.0) {
            let text = format!(
                "node {} cannot come in as a client: those have numbers from {} to {}",
                hello.node.0,
                CLIENT_NUMBERS.start,
                CLIENT_NUMBERS.end - 1
            );
            return Err((Reason::Taken, text));
        }
        if hello.process_kind == ProcessKind::Server {
            self.learn_incarnations(hello.node, hello.data_id, &hello.data_ids)?;
            return self.learn_heights(hello.node, hello.data_id, &hello.heights);
        }
        self.judge_client(hello)
    }

    fn judge_client(&self, hello: &Hello) -> Result<(), (Reason, String)> {
        let awaited = self.peers.awaited();
        if !awaited.is_empty() {
            let names: Vec<_> = awaited.iter().map(|node| node.0.to_string()).collect();
            let text = format!("not ready: still looking for nodes {}", names.join(", "));
            return Err((Reason::NotReady, text));
        }
        let before = self.loop_engine.inner.borrow().outside.outbox.place_of(hello.node);
        let is_other = |state| match state {
            ConnectionState::Up { data_id, .. } => data_id != hello.data_id,
            _ => true,
        };
        let other = before.and_then(|place| self.peers.at(place));
        let other = other.is_some_and(|connection| is_other(connection.state));
        if other {
            return Err((Reason::Taken, format!("another client has the number {}", hello.node.0)));
        }
        for (node, data_id) in hello.data_ids.iter().filter(|_| !self.peers.forgives()) {
            let known = self.peers.data_ids.get(node).copied();
            if known.is_some_and(|known| !self.peers.are_compatible(known, *data_id)) {
                return Err((Reason::Lost, self.peers.lost(*node)));
            }
        }
        Ok(())
    }

    /// Takes note of a server's life and of the lives that it knows.
    pub(crate) fn learn_incarnations(
        &mut self,
        node: NodeId,
        data_id: DataId,
        data_ids: &[(NodeId, DataId)],
    ) -> Result<(), (Reason, String)> {
        let me = self.peers.me.node;
        if self.peers.forgives() {
            self.peers.data_ids.insert(node, data_id);
            return Ok(());
        }
        let own = (node, data_id);
        for &(node, data_id) in data_ids.iter().chain([&own]) {
            let known = *self.peers.data_ids.entry(node).or_insert(data_id);
            let fits = match (node, data_id) == own {
                _ if known == data_id => true,
                true => self.peers.may_replace(data_id),
                // What others say of this server's own data is older only if these are declared.
                false if node == me => self.peers.may_replace(known),
                false => self.peers.are_compatible(known, data_id),
            };
            if !fits {
                let lost = self.peers.lost(node);
                if node == me && self.peers.me.process_kind == ProcessKind::Server {
                    // It is this server that ends; the other one has what it had.
                    self.failed = Some(LoopFailure::Refused(lost.clone()));
                    return Err((Reason::Stopping, lost));
                }
                return Err((Reason::Lost, lost));
            }
        }
        self.peers.data_ids.insert(own.0, own.1);
        Ok(())
    }
}
