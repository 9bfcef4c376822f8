//! A server on a thread of the test.

use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use muesli_cluster::lifecycle::visit::{self, Visited};
use muesli_cluster::{LoopFailure, Network, Server, ServerOptions, StopServer};

/// So long is an answer waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that serves.
pub struct Running {
    pub address: SocketAddr,
    pub stop: StopServer,
    pub thread: JoinHandle<Result<(), LoopFailure>>,
}

/// Starts a server.
pub fn serve(options: ServerOptions) -> Running {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let server = Server::open(options).unwrap();
        sender.send((server.address(), server.stop())).unwrap();
        server.run()
    });
    let (address, stop) = receiver.recv().unwrap();
    Running { address, stop, thread }
}

/// A lone server on the loopback address, on a port that is free.
pub fn on_loopback(network: Network) -> ServerOptions {
    ServerOptions { listen: "127.0.0.1:0".to_owned(), network, ..ServerOptions::default() }
}

impl Running {
    /// A connection over which nothing was said.
    pub fn stranger(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub fn visit(&self) -> Visited {
        visit::status(&self.address.to_string(), PATIENCE).unwrap()
    }

    /// One number of what the server says of itself.
    pub fn status(&self, name: &str) -> u64 {
        self.visit().status_of(name).unwrap()
    }

    pub fn stop(self) {
        self.stop.stop();
        self.thread.join().unwrap().unwrap();
    }
}
