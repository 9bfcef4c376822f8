//! How connections begin and end: accepted or dialled, welcomed or refused, dead or closed.

use std::io::{ErrorKind, Write as _};
use std::net::SocketAddr;

use mio::net::TcpStream;
use muesli_core::Nanos;

use crate::connections::connection::{Connection, ConnectionState, HandshakeClaim};
use crate::connections::stream::Stream;
use crate::connections::targets::{Target, begin_look_up, look_up};
use crate::dispatch::event_loop::Loop;
use crate::dispatch::failure::LoopFailure;
use crate::mailbox::outgoing::SendBuffer;
use crate::mailbox::pipe::PipeEnd;
use crate::spaces::map::Map;
use crate::wire::challenge::Challenge;
use crate::wire::frame::FrameKind;
use crate::wire::hello::{Hello, ProcessKind, Welcome};
use crate::wire::ids::ClusterId;
use crate::wire::progress::own_of;
use crate::wire::refusal::{ConnectionRefusal, Reason};

/// So many connections are accepted in one turn.
const ACCEPTS_PER_TICK: usize = 256;

impl Loop {
    /// Accepts who is waiting.
    pub(crate) fn accept(&mut self, now: Nanos) {
        for attempt in 0.. {
            let Some(listener) = &self.peers.listener else { return };
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    // As where no descriptor is left: the poller does not tell again of who waits.
                    self.accept_again = true;
                    return;
                }
            };
            if self.peers.count() >= self.connections_most() && !self.close_expendable(None, now) {
                self.refuse_at_limit(stream);
                continue;
            }
            let stream = Stream::Tcp(stream);
            self.open(Connection::new(stream, ConnectionState::AwaitHello, None, now));
            if attempt == ACCEPTS_PER_TICK {
                // The poller tells only once; the rest is looked for in the next turn.
                self.accept_again = true;
                return;
            }
        }
    }

    /// Says why, if the socket takes it at once, and closes.
    fn refuse_at_limit(&mut self, mut stream: TcpStream) {
        self.peers.refused_at_limit += 1;
        let text = self.full();
        let mut last = SendBuffer::default();
        last.frame(
            FrameKind::Refusal,
            &ConnectionRefusal { reason: Reason::Full, text, proof: None },
        );
        let _ = stream.write(last.ready()); // Who does not hear it sees the connection close.
    }

    /// What is said to those for whom there is no connection left.
    pub(crate) fn full(&self) -> String {
        let most = self.network.connections_max;
        format!("there are {most} connections already, which is the limit (`connections_max`)")
    }

    /// Dials who is to be dialled.
    pub(crate) fn dial(&mut self, now: Nanos) {
        while let Some(number) = self.peers.targets.next_due(now) {
            let Some(target) = self.peers.targets.get(number) else { return };
            let address = target.address.clone();
            if let Some(pipe) = self.pipe_to(target) {
                self.connect_by_pipe(number, pipe, now);
                continue;
            }
            match begin_look_up(&self.entry_point, number, &address, look_up) {
                Ok(None) => {} // It stays busy until the name is known.
                Ok(Some(at)) => self.connect(number, &address, at, now),
                Err(why) => self.on_unreachable(number, why, now),
            }
        }
    }

    /// A name was looked up, if its target is still to be dialled.
    pub(crate) fn on_found(
        &mut self,
        number: usize,
        address: &str,
        found: Result<SocketAddr, String>,
        now: Nanos,
    ) {
        if self.peers.targets.get(number).is_none_or(|target| target.address != address) {
            return; // The map has come meanwhile.
        }
        match found {
            Ok(at) => self.connect(number, address, at, now),
            Err(why) => self.on_unreachable(number, why, now),
        }
    }

    /// A pipe to whom is to be dialled, if that is another loop of this process. One that is to be
    /// reached at another address than the map says is dialled there.
    fn pipe_to(&self, target: &Target) -> Option<PipeEnd> {
        let (node, map) = (target.node?, self.peers.map.as_ref()?);
        let usual = map.address_of(node).is_some_and(|address| *address == target.address);
        let pipe = || self.peers.neighbours.pipe(&self.entry_point, node);
        usual.then(pipe).flatten()
    }

    fn connect_by_pipe(&mut self, number: usize, pipe: PipeEnd, now: Nanos) {
        let (stream, state) = (Stream::Pipe(pipe), ConnectionState::AwaitWelcome);
        if let Some(place) = self.open(Connection::new(stream, state, Some(number), now)) {
            self.greet(place);
        }
    }

    fn connect(&mut self, number: usize, address: &str, at: SocketAddr, now: Nanos) {
        let opened = TcpStream::connect(at).map(|stream| {
            let stream = Stream::Tcp(stream);
            self.open(Connection::new(stream, ConnectionState::Dialling, Some(number), now))
        });
        if let Err(error) = opened {
            self.on_unreachable(number, format!("cannot reach {address}: {error}"), now);
        }
    }

    fn on_unreachable(&mut self, number: usize, why: String, now: Nanos) {
        if let Some(node) = self.peers.targets.get(number).and_then(|target| target.node) {
            self.loop_engine.inner.borrow_mut().miss(node);
        }
        let pauses = (self.network.redial_first, self.network.redial_most);
        self.peers.targets.failed(number, now, pauses);
        self.entry_point.change(|status| status.trouble = Some(why));
    }

    /// A connection that was dialled is there, or has failed.
    pub(crate) fn on_dialled(&mut self, place: usize, now: Nanos) {
        let Some(connection) = self.peers.at_mut(place) else { return };
        let Stream::Tcp(socket) = &connection.stream else { return };
        let failed = socket.take_error().ok().flatten();
        let (here, there) = (socket.local_addr(), socket.peer_addr());
        let oneself = matches!((here, &there), (Ok(here), Ok(there)) if here == *there);
        // Where nobody listens, the system can connect a socket to itself.
        if failed.is_some() || there.is_err() || oneself {
            let why = failed.map_or("it does not answer".to_owned(), |error| error.to_string());
            self.close(place, now, &why);
            return;
        }
        connection.state = ConnectionState::AwaitWelcome;
        self.greet(place);
    }

    /// Says who this is to whom it has dialled.
    fn greet(&mut self, place: usize) {
        let me = &self.peers.me;
        let proves = me.secret.is_some();
        let challenge = if proves { Challenge::draw() } else { Challenge::default() };
        let hello = Hello {
            cluster: me.cluster,
            protocol: me.protocol.clone(),
            process_kind: me.process_kind,
            node: me.node,
            data_id: me.data_id,
            data_ids: self.peers.data_ids(),
            heights: self.heights_to(me.process_kind),
            proves,
            challenge,
        };
        self.frame(place, FrameKind::Hello, &hello);
        if let Some(connection) = self.peers.at_mut(place) {
            connection.claim =
                Some(Box::new(HandshakeClaim { hello, challenge: Challenge::default() }));
        }
    }

    pub(crate) fn on_welcome(&mut self, place: usize, welcome: Welcome, now: Nanos) {
        let Some(number) = self.peers.at(place).and_then(|connection| connection.target) else {
            return;
        };
        if !self.is_proven(place, &welcome) {
            let text = "it did not prove that it knows the cluster's secret".to_owned();
            self.tell_refused(&text);
            self.close(place, now, &text);
            return;
        }
        let expected = self.peers.targets.get(number).and_then(|target| target.node);
        if expected.is_some_and(|node| node != welcome.node) {
            let text = format!("this is node {}, not the one that was dialled", welcome.node.0);
            self.refuse(place, Reason::Taken, text, now);
            return;
        }
        if let Err((reason, text)) =
            self.learn_incarnations(welcome.node, welcome.data_id, &welcome.data_ids)
        {
            self.give_up(text.clone());
            self.refuse(place, reason, text, now);
            return;
        }
        if let Err((reason, text)) =
            self.learn_heights(welcome.node, welcome.data_id, &welcome.heights)
        {
            self.refuse(place, reason, text, now);
            return;
        }
        if self.peers.me.cluster == ClusterId(0) {
            self.peers.me.cluster = welcome.cluster;
        }
        let (node, data_id) = (welcome.node, welcome.data_id);
        let map = Map::try_from(welcome.map).map_err(|error| error.to_string());
        let learned = map.and_then(|it| self.learn_map(it, now).map_err(|error| error.to_string()));
        if let Err(why) = learned {
            let text = format!("the map of node {} makes no sense here: {why}", node.0);
            self.tell_refused(&text);
            self.refuse(place, Reason::Misunderstood, text, now);
            return;
        }
        let number = match (&self.peers.map, self.peers.targets.is_searching()) {
            (Some(map), true) => self.peers.targets.found(map, node),
            _ => number,
        };
        self.peers.targets.succeeded(number, self.network.redial_first);
        if let Some(connection) = self.peers.at_mut(place) {
            connection.target = Some(number);
        }
        let own = own_of(&welcome.heights);
        self.come_up(
            place,
            ConnectionState::Up { node, process_kind: ProcessKind::Server, data_id, own },
        );
    }

    /// The handshake of a connection is over.
    pub(crate) fn come_up(&mut self, place: usize, state: ConnectionState) {
        let ConnectionState::Up { node, process_kind, .. } = state else { return };
        let Some(connection) = self.peers.at_mut(place) else { return };
        connection.state = state;
        connection.claim = None;
        if !process_kind.is_node() {
            return;
        }
        let proven = ProcessKind::Client;
        let proven = process_kind == proven || self.peers.me.process_kind == proven;
        self.loop_engine.inner.borrow_mut().link(place, node, proven);
        if process_kind == ProcessKind::Server {
            self.tell_map(place);
            self.entry_point.change(|status| {
                status.up.insert(node);
            });
        }
    }

    pub(crate) fn on_refusal(&mut self, place: usize, refusal: ConnectionRefusal, now: Nanos) {
        if self.peers.me.process_kind == ProcessKind::Server {
            self.tell_refused(&refusal.text);
        }
        match refusal.reason {
            // Anybody may say so who sits at a server's address.
            _ if !self.is_believed(place, &refusal) => {}
            Reason::Cluster | Reason::Protocol | Reason::Lost | Reason::Left | Reason::Unproven => {
                self.give_up(refusal.text.clone());
            }
            Reason::Older(begun) if self.begins_behind(begun) => {}
            Reason::Older(_) => self.give_up(refusal.text.clone()),
            Reason::Misunderstood
            | Reason::Taken
            | Reason::Full
            | Reason::NotReady
            | Reason::Stopping => {}
        }
        self.close(place, now, &refusal.text);
    }

    /// There is no use in trying further.
    fn give_up(&mut self, text: String) {
        self.entry_point.change(|status| status.failed = Some(text.clone()));
        self.failed.get_or_insert(LoopFailure::Refused(text));
    }

    /// Says why, and closes when the other end has had time to hear it.
    pub(crate) fn refuse(&mut self, place: usize, reason: Reason, text: String, now: Nanos) {
        if reason == Reason::Misunderstood {
            self.peers.misunderstood += 1;
        }
        self.leave(place);
        self.keep_placement();
        let refusal = self.refusal_to(place, reason, text);
        let Some(connection) = self.peers.at_mut(place) else { return };
        connection.state = ConnectionState::Closing;
        connection.opened = now;
        self.frame(place, FrameKind::Refusal, &refusal);
        self.write(place, now);
        if let Some(connection) = self.peers.at(place) {
            // The other end sees the end of the stream after the refusal, and closes.
            connection.stream.end();
        }
    }

    /// Nobody is at `place` any more, as far as messages go.
    fn leave(&mut self, place: usize) {
        let Some(connection) = self.peers.at(place) else { return };
        let (state, node) = (connection.state, connection.node());
        self.loop_engine.inner.borrow_mut().unlink(place, node);
        if let ConnectionState::Up { node, process_kind: ProcessKind::Server, .. } = state {
            self.entry_point.change(|status| {
                status.up.remove(&node);
            });
        }
    }

    /// Closes a connection: what waits for it is lost, and whoever is to be dialled is dialled
    /// again later.
    pub(crate) fn close(&mut self, place: usize, now: Nanos, why: &str) {
        self.leave(place);
        let Some(connection) = self.peers.remove(place) else { return };
        let Some(number) = connection.target else { return };
        let address = self.peers.targets.get(number).map(|target| target.address.clone());
        let address = address.unwrap_or_default();
        self.on_unreachable(number, format!("{address}: {why}"), now);
    }

    /// Tells everybody that this process stops.
    pub(crate) fn send_farewell(&mut self, now: Nanos) {
        self.peers.listener = None;
        let places: Vec<_> = self.peers.all().map(|(place, _)| place).collect();
        self.keep_placement();
        for place in places {
            self.tell_alive(place, now);
            self.write(place, now);
            self.refuse(place, Reason::Stopping, "the process is stopping".to_owned(), now);
        }
        self.keep_heights_at_last();
    }
}
