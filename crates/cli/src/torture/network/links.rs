//! A cluster's links through the proxy, and what a partition does to them.

use std::sync::Arc;

use super::CuttableNetwork;
use super::proxy::{ProxyLink, Way};
use crate::local::ProxyAddresses;
use crate::torture::plan::{Break, Party};

/// A link with its ends: a node dials those of smaller numbers, clients dial all.
struct LinkBetween {
    from: Party,
    to: usize,
    link: Arc<ProxyLink>,
}

/// All links of a cluster.
pub struct ProxyLinks {
    wires: Vec<LinkBetween>,
}

impl ProxyLinks {
    /// Links between the nodes at these addresses, and from clients to them.
    ///
    /// # Errors
    /// There are no ports left.
    pub fn between(addresses: &[String]) -> anyhow::Result<ProxyLinks> {
        let mut wires = Vec::new();
        for (to, address) in addresses.iter().enumerate() {
            let dialling = (to + 1..addresses.len()).map(Party::Node);
            for from in dialling.chain([Party::Clients]) {
                wires.push(LinkBetween { from, to, link: ProxyLink::to(address)? });
            }
        }
        Ok(ProxyLinks { wires })
    }

    fn address(&self, from: Party, to: usize) -> Option<String> {
        let wire = self.wires.iter().find(|wire| wire.from == from && wire.to == to)?;
        Some(wire.link.address().to_owned())
    }

    /// The links between `party` and another or all others, each with the way towards `party`.
    fn of(&self, party: Party, from: Option<Party>) -> impl Iterator<Item = (&LinkBetween, Way)> {
        let is_other = move |other: Party| from.is_none_or(|from| from == other);
        self.wires.iter().filter_map(move |wire| {
            if Party::Node(wire.to) == party && is_other(wire.from) {
                Some((wire, Way::Out))
            } else if wire.from == party && is_other(Party::Node(wire.to)) {
                Some((wire, Way::Back))
            } else {
                None
            }
        })
    }
}

impl CuttableNetwork for ProxyLinks {
    fn reached(&self) -> Option<ProxyAddresses> {
        let nodes = self.wires.iter().map(|wire| wire.to).max().map_or(0, |last| last + 1);
        let servers = (0..nodes).filter_map(|to| self.address(Party::Clients, to)).collect();
        let dial = |from: usize| {
            let below = (0..from).filter_map(|to| Some((to, self.address(Party::Node(from), to)?)));
            below.map(|(to, at)| format!("{to}={at}")).collect::<Vec<_>>().join(",")
        };
        Some(ProxyAddresses { servers, dial: (0..nodes).map(dial).collect() })
    }

    fn part(&self, party: Party, from: Option<Party>, how: Break) -> anyhow::Result<()> {
        for (wire, inbound) in self.of(party, from) {
            let outbound = if inbound == Way::Out { Way::Back } else { Way::Out };
            match how {
                Break::Both | Break::Cut => {
                    wire.link.hold(Way::Out, true);
                    wire.link.hold(Way::Back, true);
                }
                Break::Inbound => wire.link.hold(inbound, true),
                Break::Outbound => wire.link.hold(outbound, true),
            }
            if how == Break::Cut {
                wire.link.cut();
            }
        }
        Ok(())
    }

    fn heal(&self) -> anyhow::Result<()> {
        for wire in &self.wires {
            wire.link.hold(Way::Out, false);
            wire.link.hold(Way::Back, false);
        }
        Ok(())
    }
}

impl Drop for ProxyLinks {
    fn drop(&mut self) {
        self.wires.iter().for_each(|wire| wire.link.end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_has_one_link_and_a_partition_finds_its_own() {
        let addresses: Vec<_> = (1..4).map(|port| format!("127.0.0.1:{port}")).collect();
        let network = ProxyLinks::between(&addresses).unwrap();
        let reached = network.reached().unwrap();
        assert_eq!((network.wires.len(), reached.servers.len()), (6, 3));
        assert_eq!(reached.dial[0], "");
        assert_eq!(reached.dial[2].matches("127.0.0.1").count(), 2);
        let count = |party, from| network.of(party, from).count();
        assert_eq!(count(Party::Node(1), None), 3);
        assert_eq!(count(Party::Node(0), Some(Party::Node(2))), 1);
        assert_eq!(count(Party::Clients, None), 3);
        let ways: Vec<_> = network.of(Party::Node(1), None).map(|(_, way)| way).collect();
        assert_eq!(ways, [Way::Back, Way::Out, Way::Out]);
    }
}
