//! The system's commands that make networks, and what they say about those that there are.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// A command with its arguments, between spaces: none of them has a space in it.
///
/// # Errors
/// It cannot be run, or fails: what it was and what it said.
pub fn run(line: &str) -> anyhow::Result<String> {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    // In a group of its own: a signal from the terminal must not leave half of the work done.
    command.args(words).stdin(Stdio::null()).process_group(0);
    let output = command.output().with_context(|| format!("cannot run `{line}`"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    // `ss -K` succeeds even where the system is built without it.
    if !output.status.success() || error.contains("not supported") {
        let printed: Vec<_> = error.trim().lines().collect();
        bail!("`{line}` failed: {}", printed.join("; "));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A network of 256 addresses, without the last number: `10.213.7`.
pub type Prefix = String;

/// A private network that overlaps with no destination of `routes`, as `ip -4 route show table
/// all` tells them; the search begins at `start`, so that processes differ.
pub fn free_network(routes: &str, start: u32) -> Option<Prefix> {
    let taken: Vec<_> = routes.lines().filter_map(destination).collect();
    let seconds = [(10, 213), (172, 29), (192, 168)];
    let all = seconds.into_iter().flat_map(|(a, b)| {
        (0..256).map(move |more| [a, b, (start.wrapping_add(more) % 256) as u8, 0])
    });
    let free = |it: &[u8; 4]| {
        let it = u32::from_be_bytes(*it);
        !taken.iter().any(|(at, bits)| (it ^ at) >> (32 - (*bits).min(24)) == 0)
    };
    all.into_iter().find(free).map(|[a, b, c, _]| format!("{a}.{b}.{c}"))
}

/// Where a route leads to, and how many of its bits count; none for the default route, which is
/// for what is not used.
fn destination(route: &str) -> Option<(u32, u32)> {
    let word = route.split_whitespace().find(|word| word.starts_with(|c: char| c.is_numeric()))?;
    let (address, bits) = word.split_once('/').unwrap_or((word, "32"));
    let address: std::net::Ipv4Addr = address.parse().ok()?;
    let bits = bits.parse().ok().filter(|bits| (1..=32).contains(bits))?;
    Some((address.into(), bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_free_that_no_route_leads_to() {
        let routes = "default via 192.0.2.1 dev eth0 \n192.0.2.0/24 dev eth0 proto kernel\n\
                      local 10.213.7.1 dev br0 table local\nbroadcast 10.213.8.255 dev br0\n";
        assert_eq!(free_network(routes, 6).unwrap(), "10.213.6");
        assert_eq!(free_network(routes, 256 + 7).unwrap(), "10.213.9");
        assert_eq!(free_network("10.0.0.0/8 via 10.1.1.1 dev vpn", 3).unwrap(), "172.29.3");
        let all = "10.0.0.0/8 dev a\n172.16.0.0/12 dev b\nunreachable 192.168.0.0/16\n";
        assert_eq!(free_network(all, 3), None);
        assert_eq!(
            free_network("10.213.4.128/25 dev a\nnonsense\n0.0.0.0/0 dev b", 4).unwrap(),
            "10.213.5"
        );
    }

    #[test]
    fn what_fails_is_told_with_its_output() {
        let error = run("ls /nowhere-at-all").unwrap_err().to_string();
        assert!(error.starts_with("`ls /nowhere-at-all` failed: ls:"), "{error}");
        let error = format!("{:#}", run("no-such-command-here x").unwrap_err());
        assert!(error.starts_with("cannot run `no-such-command-here x`: "), "{error}");
        assert_eq!(run("echo a b").unwrap(), "a b\n");
    }
}
