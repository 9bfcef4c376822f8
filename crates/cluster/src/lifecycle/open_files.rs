//! The limit of open files: the log must always find one, so connections stop before it.

use rustix::process::{Resource, getrlimit};

use crate::lifecycle::options::ServerOptions;
use crate::lifecycle::start_error::StartError;
use crate::network::Network;

/// So many descriptors of each loop are kept for its log, its checkpoints, and its own small files.
const RESERVE: u64 = 24;
/// With fewer connections a server is of no use.
const LEAST: u64 = 8;

/// The limits of a loop's connections as far as the system's limit of open files goes: what is left
/// of that is shared by the loops. `peers` are the servers that are dialled beside.
pub(crate) fn network_within_limit(
    options: &ServerOptions,
    peers: usize,
) -> Result<Network, StartError> {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let used = std::fs::read_dir("/proc/self/fd").map_or(16, |open| open.count() as u64);
    let network = within(&options.network, limit, used, (options.loops.max(1), peers))?;
    if network.connections_max < options.network.connections_max {
        (options.notice)(&format!(
            "the limit of open files (`ulimit -n`) is {limit}: {} connections are accepted, not \
             {} (`connections_max`), and {} more of servers and administrators",
            network.connections_max, options.network.connections_max, network.connections_reserved
        ));
    }
    Ok(network)
}

fn within(
    network: &Network,
    limit: u64,
    used: u64,
    (loops, peers): (usize, usize),
) -> Result<Network, StartError> {
    let loops = loops as u64;
    // Loops that begin later open theirs still; each reckons with as many as itself.
    let kept = used + loops * (RESERVE + peers as u64);
    let capacity = limit.saturating_sub(kept) / loops;
    if capacity < LEAST {
        return Err(StartError::Files { limit, used, capacity, least: LEAST });
    }
    let capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
    let connections_reserved = network.connections_reserved.min(capacity / 4);
    let connections_max = network.connections_max.min(capacity - connections_reserved);
    Ok(Network { connections_max, connections_reserved, ..network.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_log() {
        let network =
            Network { connections_max: 100, connections_reserved: 10, ..Network::default() };
        let of = |limit, loops| {
            let within = within(&network, limit, 10, (loops, 2));
            within.map(|it| (it.connections_max, it.connections_reserved))
        };
        assert_eq!(of(1024, 1).unwrap(), (100, 10));
        assert_eq!(of(u64::MAX, 64).unwrap(), (100, 10));
        assert_eq!(of(64, 1).unwrap(), (21, 7));
        assert_eq!(of(100, 2).unwrap(), (15, 4));
        let error = of(40, 1).unwrap_err().to_string();
        assert!(error.contains("is 40, and 10 are open"), "{error}");
    }
}
