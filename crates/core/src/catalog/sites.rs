//! Geography: which nodes are at one site.

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

use crate::ids::NodeId;
use crate::wire::{Reader, Wire, WireError};

/// Where nodes are. A node that is not listed is at no site.
///
/// Invariant: no node is listed twice, and no name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    /// Names of sites, in order, each with its nodes, in order.
    sites: Arc<[(String, Vec<NodeId>)]>,
}

/// A node that is at two sites.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("node {} is at the sites `{first}` and `{second}`: it can be at one", node.0)]
pub struct TwoSites {
    /// The node.
    pub node: NodeId,
    /// One site.
    pub first: String,
    /// Another one.
    pub second: String,
}

impl Sites {
    /// Sites by name, each with its nodes.
    ///
    /// # Errors
    /// A node is at two.
    pub fn new<N, A>(all: &[(N, A)]) -> Result<Sites, TwoSites>
    where
        N: AsRef<str>,
        A: AsRef<[NodeId]>,
    {
        let mut of: BTreeMap<NodeId, &str> = BTreeMap::new();
        let mut sites: BTreeMap<String, Vec<NodeId>> = BTreeMap::new();
        for (name, nodes) in all {
            let name = name.as_ref();
            let listed = sites.entry(name.to_owned()).or_default();
            for node in nodes.as_ref() {
                match of.insert(*node, name) {
                    Some(first) if first != name => {
                        let (first, second) = (first.to_owned(), name.to_owned());
                        return Err(TwoSites { node: *node, first, second });
                    }
                    Some(_) => {}
                    None => listed.push(*node),
                }
            }
            listed.sort_unstable();
        }
        Ok(Sites { sites: sites.into_iter().collect() })
    }

    /// Sites of these names, at which the first so many nodes are in turn.
    pub fn round_robin(names: &[impl AsRef<str>], nodes: usize) -> Sites {
        let here = |(at, name)| {
            let here = (at..nodes).step_by(names.len());
            (name, here.map(|node| NodeId(node as u32)).collect())
        };
        let all: Vec<(_, Vec<NodeId>)> = names.iter().enumerate().map(here).collect();
        Sites::new(&all).expect("each node is in one turn")
    }

    /// The name of a node's site.
    pub fn of(&self, node: NodeId) -> Option<&str> {
        let found = self.sites.iter().find(|(_, nodes)| nodes.binary_search(&node).is_ok());
        found.map(|(name, _)| name.as_str())
    }

    /// Whether two nodes are at one site.
    pub fn are_colocated(&self, one: NodeId, other: NodeId) -> bool {
        one == other || self.of(one).is_some_and(|site| self.of(other) == Some(site))
    }

    /// The sites, in the order of their names, each with its nodes in order.
    pub fn all(&self) -> impl Iterator<Item = (&str, &[NodeId])> {
        self.sites.iter().map(|(name, nodes)| (name.as_str(), nodes.as_slice()))
    }

    /// All nodes that are at some site.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.sites.iter().flat_map(|(_, nodes)| nodes).copied()
    }
}

impl Wire for Sites {
    const LEAST_BYTES: usize = u32::LEAST_BYTES;

    fn encode(&self, out: &mut Vec<u8>) {
        let sites: Vec<(String, Vec<NodeId>)> = self.sites.to_vec();
        sites.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Sites, WireError> {
        let at = input.position();
        let sites: Vec<(String, Vec<NodeId>)> = Wire::decode(input)?;
        Sites::new(&sites).map_err(|_| WireError::no_variant("node at one site", at, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: [NodeId; 4] = [NodeId(0), NodeId(1), NodeId(2), NodeId(3)];

    #[test]
    fn nodes_are_at_the_sites_that_list_them() {
        let sites = Sites::new(&[("west", &N[2..3]), ("east", &[N[1], N[0]][..])]).unwrap();
        assert_eq!(
            (sites.of(N[0]), sites.of(N[2]), sites.of(N[3])),
            (Some("east"), Some("west"), None)
        );
        assert!(sites.are_colocated(N[0], N[1]) && sites.are_colocated(N[3], N[3]));
        assert!(!sites.are_colocated(N[0], N[2]) && !sites.are_colocated(N[3], N[0]));
        let all: Vec<_> = sites.all().collect();
        assert_eq!(all, [("east", &N[..2]), ("west", &N[2..3])]);
        assert!(sites.nodes().eq([N[0], N[1], N[2]]));
        let dealt = Sites::round_robin(&["east", "west"], 3);
        assert!(dealt.all().eq([("east", &[N[0], N[2]][..]), ("west", &N[1..2])]));
        let mut bytes = Vec::new();
        sites.encode(&mut bytes);
        assert_eq!(Sites::decode_all(&bytes), Ok(sites));
    }

    #[test]
    fn a_node_at_two_sites_is_named() {
        let error = Sites::new(&[("a", &N[..2]), ("b", &N[1..3])]).unwrap_err();
        assert_eq!(error.to_string(), "node 1 is at the sites `a` and `b`: it can be at one");
        let mut bytes = Vec::new();
        vec![("a".to_owned(), vec![N[1]]), ("b".to_owned(), vec![N[1]])].encode(&mut bytes);
        assert!(Sites::decode_all(&bytes).is_err());
    }
}
