//! Where the nodes of a local cluster listen: ports of the loopback interface.

use std::net::TcpListener;

use anyhow::bail;

/// Ports that the system does not give to those who dial: while a node is down, a port among
/// those could be taken by whoever dials it.
const PORTS: std::ops::Range<u16> = 10_240..32_000;

/// Addresses of the loopback interface that are free now, each with so many ports from it on:
/// bound all at once and let go.
///
/// # Errors
/// There are not so many.
pub fn free_addresses(count: usize, ports: u16) -> anyhow::Result<Vec<String>> {
    free_addresses_at("127.0.0.1", count, ports)
}

/// The same of another address of this machine.
///
/// # Errors
/// There are not so many.
pub fn free_addresses_at(host: &str, count: usize, ports: u16) -> anyhow::Result<Vec<String>> {
    let mut bound: Vec<Vec<TcpListener>> = Vec::new();
    for first in std::iter::repeat_with(|| fastrand::u16(PORTS)).take(count * 100 + 1000) {
        if bound.len() == count {
            break;
        }
        let all = (first..first + ports).map(|port| TcpListener::bind((host, port)));
        bound.extend(all.collect::<Result<_, _>>().ok());
    }
    if bound.len() < count {
        bail!("cannot find {count} times {ports} free ports on {host}");
    }
    bound.iter().map(|listeners| Ok(listeners[0].local_addr()?.to_string())).collect()
}
