//! Where the numbers of a server come from: it is asked as others ask it.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use muesli_cluster::lifecycle::visit;
use muesli_resp::RespUsers;

/// A server takes no longer for a step of an answer.
const WITHIN: Duration = Duration::from_secs(2);
/// The longest answer to `INFO`, in bytes.
const INFO_BYTES_MAX: u64 = 1 << 20;
/// What of `INFO` is asked for: nothing that reads data.
const INFO: &[u8] = b"INFO server clients memory persistence stats\r\n";

/// A port of the server.
#[derive(Clone, Debug)]
pub enum MetricsSource {
    /// Its own protocol, of the first of so many loops.
    Native { address: String, loops: usize },
    /// Redis clients; with the password of the server's own user, where they have to be users.
    Redis(SocketAddr, Option<OwnPassword>),
}

/// The password of the user that the server itself is.
#[derive(Clone)]
pub struct OwnPassword(pub String);

impl fmt::Debug for OwnPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnPassword")
    }
}

/// What a source has said.
#[derive(Clone, Debug, Default)]
pub struct PortNumbers {
    /// Whether Redis clients are served there.
    pub is_redis: bool,
    /// By loop, as a node: names and numbers.
    pub numbers: Vec<(u32, Vec<(String, u64)>)>,
    /// It did not answer, or said something else.
    pub trouble: Option<String>,
}

impl PortNumbers {
    /// Why it is not ready, if it is not.
    pub fn not_ready(&self) -> Option<String> {
        let is_ready = |numbers: &[(String, u64)]| {
            numbers.iter().all(|(name, number)| name != "ready" || *number == 1)
        };
        let waiting = self.numbers.iter().find(|(_, numbers)| !is_ready(numbers));
        let waiting =
            waiting.map(|(node, _)| format!("node {node} has not met all others of its cluster"));
        self.trouble.clone().or(waiting)
    }
}

impl MetricsSource {
    /// Asks it.
    pub fn measure(&self) -> PortNumbers {
        let (is_redis, asked) = match self {
            MetricsSource::Native { address, loops } => (false, native(address, *loops)),
            MetricsSource::Redis(address, own) => (true, redis(*address, own.as_ref())),
        };
        match asked {
            Ok(numbers) => PortNumbers { is_redis, numbers, trouble: None },
            Err(error) => {
                let trouble = Some(format!("{error:#}"));
                PortNumbers { is_redis, numbers: Vec::new(), trouble }
            }
        }
    }
}

type NumbersByNode = Vec<(u32, Vec<(String, u64)>)>;

/// All loops of a server say their numbers.
fn native(address: &str, loops: usize) -> anyhow::Result<NumbersByNode> {
    let first = visit::status(address, WITHIN)?;
    let node = first.status_of("node").unwrap_or_default() as u32;
    let own = node..node + loops.max(1) as u32;
    let mut all = vec![(node, first.status)];
    let servers = first.welcome.map.servers;
    for (other, public) in servers.iter().filter(|(it, _)| it.0 != node && own.contains(&it.0)) {
        // Others may reach this server at another address than it is at itself.
        let port = public.rsplit(':').next().unwrap_or_default();
        let here = address.rsplit_once(':').map_or(address, |(host, _)| host);
        all.push((other.0, visit::status(&format!("{here}:{port}"), WITHIN)?.status));
    }
    Ok(all)
}

/// What `INFO` says in numbers.
fn redis(address: SocketAddr, own: Option<&OwnPassword>) -> anyhow::Result<NumbersByNode> {
    let mut stream = TcpStream::connect_timeout(&address, WITHIN)?;
    stream.set_read_timeout(Some(WITHIN))?;
    stream.set_write_timeout(Some(WITHIN))?;
    if let Some(OwnPassword(password)) = own {
        let auth = format!("AUTH {} {password}\r\n", RespUsers::OWN);
        stream.write_all(auth.as_bytes())?;
    }
    stream.write_all(INFO)?;
    let mut reader = BufReader::new(stream.take(INFO_BYTES_MAX));
    let mut head = String::new();
    if own.is_some() {
        reader.read_line(&mut head)?;
        if head.trim_end() != "+OK" {
            anyhow::bail!("{address}: AUTH is answered by {head:?}");
        }
        head.clear();
    }
    reader.read_line(&mut head)?;
    let bytes = head.strip_prefix('$').and_then(|it| it.trim_end().parse::<usize>().ok());
    let Some(bytes) = bytes.filter(|it| *it as u64 <= INFO_BYTES_MAX) else {
        anyhow::bail!("{address}: INFO is answered by {head:?}");
    };
    let mut text = vec![0; bytes];
    reader.read_exact(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let number = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_owned(), value.trim_end().parse().ok()?))
    };
    Ok(vec![(0, text.lines().filter_map(number).collect())])
}
