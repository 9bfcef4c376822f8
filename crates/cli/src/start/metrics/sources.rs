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
const INFO: &[u8] = b"INFO server clients memory persistence stats commandstats latencystats\r\n";

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
    /// Of Redis clients' commands.
    pub commands: Vec<CommandNumbers>,
    /// It did not answer, or said something else.
    pub trouble: Option<String>,
}

/// What is known of a command of Redis clients.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandNumbers {
    pub name: String,
    /// `calls`, `usec` and so on.
    pub counts: Vec<(String, u64)>,
    /// Such a share of calls, as text, took no longer than so many microseconds.
    pub quantiles: Vec<(String, f64)>,
}

impl CommandNumbers {
    /// A count by its name.
    pub fn count(&self, name: &str) -> u64 {
        self.counts.iter().find(|(it, _)| it == name).map_or(0, |(_, count)| *count)
    }
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
            MetricsSource::Native { address, loops } => {
                (false, native(address, *loops).map(|numbers| (numbers, Vec::new())))
            }
            MetricsSource::Redis(address, own) => {
                let info = redis(*address, own.as_ref());
                (true, info.map(|it| (vec![(0, numbers(&it))], commands(&it))))
            }
        };
        match asked {
            Ok((numbers, commands)) => PortNumbers { is_redis, numbers, commands, trouble: None },
            Err(error) => {
                let trouble = Some(format!("{error:#}"));
                PortNumbers { is_redis, trouble, ..PortNumbers::default() }
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

/// What `INFO` says.
fn redis(address: SocketAddr, own: Option<&OwnPassword>) -> anyhow::Result<String> {
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
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The lines that are one number each.
fn numbers(info: &str) -> Vec<(String, u64)> {
    let number = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_owned(), value.trim_end().parse().ok()?))
    };
    info.lines().filter_map(number).collect()
}

/// The lines of commands: how often each was given, and how long that took.
fn commands(info: &str) -> Vec<CommandNumbers> {
    let mut all: Vec<CommandNumbers> = Vec::new();
    for line in info.lines() {
        let Some((name, values)) = line.trim_end().split_once(':') else { continue };
        let values = values.split(',').filter_map(|it| it.split_once('='));
        if let Some(name) = name.strip_prefix("cmdstat_") {
            let counts = values.filter_map(|(what, it)| Some((what.to_owned(), it.parse().ok()?)));
            let (name, counts) = (name.to_owned(), counts.collect());
            all.push(CommandNumbers { name, counts, quantiles: Vec::new() });
        } else if let Some(name) = name.strip_prefix("latency_percentiles_usec_") {
            let quantile = |(at, us): (&str, &str)| {
                let percent: f64 = at.strip_prefix('p')?.parse().ok()?;
                // In decimals, as people write it.
                let share = (percent * 1e6).round() / 1e8;
                Some((share.to_string(), us.parse().ok()?))
            };
            if let Some(known) = all.iter_mut().find(|it| it.name == name) {
                known.quantiles = values.filter_map(quantile).collect();
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_info_says_of_commands_is_read() {
        let info = "# Commandstats\r\n\
            cmdstat_get:calls=3,usec=12,usec_per_call=4.00,rejected_calls=1,failed_calls=0\r\n\
            cmdstat_set:calls=0,usec=0,usec_per_call=0.00,rejected_calls=2,failed_calls=0\r\n\
            # Latencystats\r\n\
            latency_percentiles_usec_get:p50=3.007,p99=5.023,p99.9=5.023\r\n\
            total_commands_processed:7\r\n";
        let all = commands(info);
        assert_eq!((all.len(), &*all[0].name, all[0].count("usec")), (2, "get", 12));
        let expected = [("0.5", 3.007), ("0.99", 5.023), ("0.999", 5.023)];
        assert_eq!(all[0].quantiles, expected.map(|(at, us)| (at.to_owned(), us)));
        assert_eq!((all[1].count("rejected_calls"), all[1].quantiles.len()), (2, 0));
        assert_eq!(numbers(info), [("total_commands_processed".to_owned(), 7)]);
    }
}
