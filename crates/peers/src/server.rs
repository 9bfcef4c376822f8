//! Server processes of our own: a Redis, and a Muesli.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// How long it may take to come up.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running Redis, which ends when this is dropped.
pub struct Redis {
    process: Child,
    address: SocketAddr,
    _dir: tempfile::TempDir,
}

impl Redis {
    /// Starts one, in memory, on the loopback interface.
    ///
    /// # Errors
    /// It is not installed, or does not come up.
    pub fn start() -> anyhow::Result<Redis> {
        // Bound and let go: it is free now.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let dir = tempfile::tempdir()?;
        let port = address.port().to_string();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        command.current_dir(dir.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().context("redis-server is not installed")?;
        let mut redis = Redis { process, address, _dir: dir };
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(address).is_err() {
            if redis.process.try_wait()?.is_some() || Instant::now() > deadline {
                bail!("redis-server does not come up");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(redis)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill(); // It may have ended by itself.
        let _ = self.process.wait();
    }
}

/// A running server of one repository, in memory, which ends when this is dropped.
pub struct Muesli {
    process: Child,
    address: SocketAddr,
    /// What it says; closed, it would be told so.
    _output: BufReader<ChildStdout>,
}

impl Muesli {
    /// Starts the program on the loopback interface, under the protocol `granola`.
    ///
    /// # Errors
    /// It is not there, or does not come up.
    pub fn start(program: &Path) -> anyhow::Result<Muesli> {
        let mut command = Command::new(program);
        command.args(["start", "--listen", "127.0.0.1:0", "--protocol", "granola"]);
        command.args(["--durability", "memory"]);
        command.stdout(Stdio::piped());
        let started = command.spawn();
        let mut process = started.with_context(|| format!("cannot start {}", program.display()))?;
        let mut output = BufReader::new(process.stdout.take().context("it is piped")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let address = line.split(" listens on ").nth(1).and_then(|rest| rest.split(';').next());
        let address = address.and_then(|address| address.parse().ok());
        let Some(address) = address else {
            let _ = process.kill(); // It may have ended by itself.
            bail!("muesli does not come up; it said: {line}");
        };
        Ok(Muesli { process, address, _output: output })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Muesli {
    fn drop(&mut self) {
        let _ = self.process.kill(); // It may have ended by itself.
        let _ = self.process.wait();
    }
}
