//! What a configuration must keep to: numbers that are allowed each, and make no sense together.
//!
//! Every rule is looked at when a server starts, and all that are broken are told at once, each
//! with the keys that it is about and what is allowed. Those of connections hold for clients, too;
//! those of groups are in `group_validation`.

use std::time::Duration;

use muesli_core::Limits;
use muesli_core::options::{CLIENT_LEASE_LEAST, GIVE_UP_MOST};
use muesli_log::format::frame::PAYLOAD_MAX;

use crate::lifecycle::group_validation;
use crate::lifecycle::options::ServerOptions;
use crate::network::Network;

/// The longest time of connections that makes sense.
const LONGEST: Duration = Duration::from_secs(3600);
/// The shortest time in which something can come over a network, and be noticed.
const SHORTEST: Duration = Duration::from_millis(100);
/// The longest frame whose length can be told.
const FRAME_MOST: usize = 1 << 31;
/// The longest tick of a group: its leader is followed after about ten of them.
const TICK_MAX: Duration = Duration::from_secs(1);
/// Connections that there must be beside those of the other servers.
const CLIENTS_MIN: usize = 8;
/// So often must a client be able to tell its oldest snapshot before its lease ends.
const GOSSIPS_A_LEASE: u64 = 10;

/// The rules that these options break, in words; none: they can be.
pub fn broken(options: &ServerOptions) -> Vec<String> {
    let mut broken = of_connections(&options.network, &options.settings.limits);
    times(options, &mut broken);
    let (one, all) = (options.settings.unsettled_max, options.settings.unsettled_total_max);
    if one > all {
        broken.push(format!(
            "`unsettled_max` = {one} must not be above `unsettled_total_max` = {all}, which is of \
             all clients together"
        ));
    }
    let too_long = options.settings.limits.check_fits("the longest record of a log", PAYLOAD_MAX);
    broken.extend(too_long.err());
    servers(options, &mut broken);
    if options.tree.is_none() && !options.validator_servers.is_empty() {
        let first = options.validator_servers[0].0;
        broken.push(format!(
            "`validator_servers` names node {first} for the validators of a `tree`, and there is \
             none"
        ));
    }
    group_validation::judge(options, &mut broken);
    broken
}

/// The rules that connections of a server or a client break, with these limits of transactions.
pub(crate) fn of_connections(network: &Network, limits: &Limits) -> Vec<String> {
    let mut broken = Vec::new();
    times_of_connections(network, &mut broken);
    sizes(network, limits, &mut broken);
    broken
}

fn times_of_connections(network: &Network, broken: &mut Vec<String>) {
    let ms = |time: Duration| time.as_millis();
    if network.dead_after < network.alive_every * 2 {
        broken.push(format!(
            "`dead_after_ms` = {} must be at least twice `alive_every_ms` = {}, or connections are \
             closed between two signs of life",
            ms(network.dead_after),
            ms(network.alive_every)
        ));
    }
    if network.redial_first > network.redial_most {
        broken.push(format!(
            "`redial_first_ms` = {} must not be above `redial_most_ms` = {}",
            ms(network.redial_first),
            ms(network.redial_most)
        ));
    }
    for (name, time) in [
        ("dead_after_ms", network.dead_after),
        ("hello_within_ms", network.hello_within),
        ("slow_after_ms", network.slow_after),
    ] {
        if time < SHORTEST {
            let (is, least) = (ms(time), ms(SHORTEST));
            broken.push(format!(
                "`{name}` = {is} must be at least {least}: whoever is well would be closed too"
            ));
        }
    }
    for (name, time) in [
        ("alive_every_ms", network.alive_every),
        ("dead_after_ms", network.dead_after),
        ("hello_within_ms", network.hello_within),
        ("slow_after_ms", network.slow_after),
        ("redial_most_ms", network.redial_most),
    ] {
        if time > LONGEST {
            let (is, most) = (ms(time), ms(LONGEST));
            broken.push(format!("`{name}` = {is} must be at most {most}, which is an hour"));
        }
    }
}

fn times(options: &ServerOptions, broken: &mut Vec<String>) {
    if options.group_tick.is_zero() || options.group_tick > TICK_MAX {
        broken.push(format!(
            "`group_tick_ms` = {} must be from 1 to {}: a lost leader is followed after about ten",
            options.group_tick.as_millis(),
            TICK_MAX.as_millis()
        ));
    }
    let settings = &options.settings;
    if settings.in_doubt_after > GIVE_UP_MOST {
        broken.push(format!(
            "`in_doubt_after_ms` = {} must be at most {}, the longest `give_up_after` of a client: \
             all would have given up before",
            settings.in_doubt_after.as_millis(),
            GIVE_UP_MOST.as_millis()
        ));
    }
    if settings.lock_wait > settings.in_doubt_after {
        broken.push(format!(
            "`lock_wait_ms` = {} must not be above `in_doubt_after_ms` = {}: a commit that waits \
             for a lock would be in doubt before it is refused",
            settings.lock_wait.as_millis(),
            settings.in_doubt_after.as_millis()
        ));
    }
    if settings.in_doubt_after < settings.retry_after {
        broken.push(format!(
            "`in_doubt_after_ms` = {} must not be below `retry_after_ms` = {}: a transaction is \
             not in doubt before its requests were sent twice",
            settings.in_doubt_after.as_millis(),
            settings.retry_after.as_millis()
        ));
    }
    if settings.client_lease < CLIENT_LEASE_LEAST {
        broken.push(format!(
            "`client_lease_ms` = {} must be at least {}: clients may wait for {} ms, and what one \
             asks again after it was forgotten would be done again",
            settings.client_lease.as_millis(),
            CLIENT_LEASE_LEAST.as_millis(),
            GIVE_UP_MOST.as_millis()
        ));
    }
    let least = settings.gossip_every.0.saturating_mul(GOSSIPS_A_LEASE);
    if settings.snapshot_lease.0 < least {
        broken.push(format!(
            "`snapshot_lease_ms` = {} must be at least {}: clients tell their oldest snapshot \
             every {} ms",
            settings.snapshot_lease.as_millis(),
            least / 1_000_000,
            settings.gossip_every.as_millis()
        ));
    }
}

fn sizes(network: &Network, limits: &Limits, broken: &mut Vec<String>) {
    broken.extend(limits.check().err());
    broken.extend(limits.check_fits("`frame_bytes_max`", network.frame_bytes_max).err());
    if network.frame_bytes_max > FRAME_MOST {
        let is = network.frame_bytes_max;
        broken.push(format!("`frame_bytes_max` = {is} must be at most {FRAME_MOST}"));
    }
    let ordered = [
        ("outgoing_bytes_high", network.outgoing_bytes_high),
        ("outgoing_bytes_max", network.outgoing_bytes_max),
        ("outgoing_bytes_total", network.outgoing_bytes_total),
        ("frame_bytes_max", network.frame_bytes_max),
        ("incoming_bytes_total", network.incoming_bytes_total),
    ];
    // Each of these pairs: the first must not be above the second.
    for (less, more) in [(0, 1), (1, 2), (3, 1), (3, 4)] {
        let ((less, low), (more, high)) = (ordered[less], ordered[more]);
        if low > high {
            broken.push(format!("`{less}` = {low} must not be above `{more}` = {high}"));
        }
    }
}

fn servers(options: &ServerOptions, broken: &mut Vec<String>) {
    let least = options.servers.len().max(1) + CLIENTS_MIN;
    if options.network.connections_max < least {
        broken.push(format!(
            "`connections_max` = {} must be at least {least}: one for each server, and \
             {CLIENTS_MIN} for clients",
            options.network.connections_max
        ));
    }
    if options.clients_prove && options.secret.is_none() {
        broken.push("`clients_need_secret` needs a `secret_file`".to_owned());
    }
    for (at, (node, address)) in options.servers.iter().enumerate() {
        if let Some((other, _)) = options.servers[..at].iter().find(|(_, it)| it == address) {
            broken.push(format!(
                "`servers` lists {address} twice, for nodes {} and {}: each has an address of its \
                 own",
                other.0, node.0
            ));
        }
    }
    let is_server = |node| options.servers.iter().any(|(server, _)| *server == node);
    for (node, _) in options.dial.iter().filter(|(node, _)| !is_server(*node)) {
        broken.push(format!("`dial` names node {}, which `servers` does not list", node.0));
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::{Nanos, NodeId};

    use super::*;

    /// The rules broken where one thing is changed.
    fn after(change: impl FnOnce(&mut ServerOptions)) -> Vec<String> {
        let mut options = ServerOptions::default();
        change(&mut options);
        broken(&options)
    }

    fn numbered((node, address): (usize, &&str)) -> (NodeId, String) {
        (NodeId(node as u32), (*address).to_owned())
    }

    #[test]
    fn what_is_the_default_can_be() {
        assert_eq!(after(|_| {}), [""; 0]);
    }

    /// A change that breaks a rule, and what is said of it.
    type Wrong<'a> = (fn(&mut ServerOptions), &'a [&'a str]);

    fn each_is_named(wrong: &[Wrong<'_>]) {
        for (change, parts) in wrong {
            let broken = after(change);
            assert_eq!(broken.len(), 1, "{broken:?}");
            assert!(parts.iter().all(|part| broken[0].contains(part)), "{broken:?}: {parts:?}");
        }
    }

    #[test]
    fn each_rule_is_named_with_its_keys() {
        each_is_named(&[
            (
                |it| it.network.dead_after = Duration::from_millis(1_999),
                &["`dead_after_ms` = 1999", "`alive_every_ms` = 1000"],
            ),
            (
                |it| it.network.frame_bytes_max = 1_000,
                &["`frame_bytes_max` is 1000", "at least 100728832", "`transaction_bytes_max`"],
            ),
            (|it| it.network.connections_max = 1, &["`connections_max` = 1 ", "at least 9"]),
            (
                |it| it.group_tick = Duration::from_secs(86_400),
                &["`group_tick_ms` = 86400000", "1 to 1000"],
            ),
            (|it| it.group_tick = Duration::ZERO, &["`group_tick_ms` = 0"]),
            (
                |it| it.network.redial_first = Duration::from_secs(9),
                &["`redial_first_ms` = 9000", "`redial_most_ms` = 1000"],
            ),
            (
                |it| it.network.slow_after = Duration::from_secs(3_601),
                &["`slow_after_ms` = 3601000", "3600000"],
            ),
            (
                |it| it.network.outgoing_bytes_high = 300 << 20,
                &["`outgoing_bytes_high`", "`outgoing_bytes_max`"],
            ),
            (
                |it| it.network.incoming_bytes_total = 1 << 20,
                &["`frame_bytes_max`", "`incoming_bytes_total` = 1048576"],
            ),
            (
                |it| it.settings.in_doubt_after = Nanos::from_millis(10),
                &["`in_doubt_after_ms` = 10 ", "`retry_after_ms` = 20"],
            ),
            (
                |it| it.settings.snapshot_lease = Nanos::from_millis(49),
                &["`snapshot_lease_ms` = 49 ", "at least 50"],
            ),
            (
                |it| it.settings.client_lease = Nanos::from_millis(239_999),
                &["`client_lease_ms` = 239999 ", "at least 240000"],
            ),
            (
                |it| it.settings.unsettled_total_max = 99_999,
                &["`unsettled_max` = 100000 ", "`unsettled_total_max` = 99999"],
            ),
            (
                |it| it.validator_servers = vec![NodeId(2)],
                &["`validator_servers` names node 2", "no"],
            ),
            (|it| it.dial = vec![(NodeId(3), "a:1".to_owned())], &["`dial` names node 3"]),
        ]);
    }

    #[test]
    fn what_nobody_can_mean_is_named_with_its_keys() {
        each_is_named(&[
            (
                |it| it.servers = ["a:1", "a:2", "a:1"].iter().enumerate().map(numbered).collect(),
                &["`servers` lists a:1 twice", "nodes 0 and 2"],
            ),
            (
                |it| it.settings.lock_wait = Nanos::from_millis(3_600_000),
                &["`lock_wait_ms` = 3600000 ", "`in_doubt_after_ms` = 100:"],
            ),
            (
                |it| {
                    it.settings.retry_after = Nanos::from_millis(3_600_000);
                    it.settings.in_doubt_after = Nanos::from_millis(3_600_000);
                },
                &["`in_doubt_after_ms` = 3600000 ", "at most 120000", "`give_up_after`"],
            ),
            (
                |it| it.network.slow_after = Duration::from_millis(1),
                &["`slow_after_ms` = 1 ", "at least 100"],
            ),
            (
                |it| it.network.hello_within = Duration::from_millis(1),
                &["`hello_within_ms` = 1 ", "at least 100"],
            ),
            (
                |it| {
                    it.network.alive_every = Duration::from_millis(1);
                    it.network.dead_after = Duration::from_millis(2);
                },
                &["`dead_after_ms` = 2 ", "at least 100"],
            ),
            (
                |it| {
                    it.network.frame_bytes_max = 1 << 32;
                    it.network.outgoing_bytes_max = 1 << 32;
                    it.network.outgoing_bytes_total = 1 << 32;
                    it.network.incoming_bytes_total = 1 << 32;
                },
                &["`frame_bytes_max` = 4294967296 ", "at most 2147483648"],
            ),
        ]);
    }

    #[test]
    fn all_that_is_wrong_is_told_together() {
        let broken = after(|it| {
            it.network.dead_after = Duration::from_millis(200);
            it.network.connections_max = 1;
            it.clients_prove = true;
        });
        assert_eq!(broken.len(), 3, "{broken:?}");
    }
}
