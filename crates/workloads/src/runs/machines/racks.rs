//! Racks of a simulated run: which node is in which.

use muesli_core::{Catalog, NodeId, RepositoryId};
use muesli_sim::network::racks::{RackLink, Racks};
use thiserror::Error;

/// How nodes stand in racks, and what joins these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RackModel {
    /// How many nodes with data a rack has; 0: there are no racks.
    pub nodes: usize,
    /// What each rack's uplink and its downlink can take.
    pub link: RackLink,
}

/// Racks that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoRacks {
    /// Links of no racks.
    #[error("rack-packets and rack-mb are for racks: rack-nodes says how many nodes one has")]
    Links,
    /// Nodes that do not fill racks.
    #[error("{nodes} nodes with data do not fill racks of {rack}: give a multiple of it")]
    Uneven {
        /// How many nodes there are.
        nodes: usize,
        /// How many a rack has.
        rack: usize,
    },
}

/// The nodes of a run, by what they are there for, in the order of their numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunNodes<'a> {
    /// Those with data.
    pub data: usize,
    /// Those of clients, and of masters.
    pub without: usize,
    /// Those of validators.
    pub apart: &'a [NodeId],
    /// A client that comes and goes.
    pub guest: bool,
}

impl RackModel {
    /// The racks of these nodes; `None`: there are none.
    ///
    /// Nodes with data fill racks by their numbers. A node of clients is in the rack of the node
    /// with data that counts as its clients' own, and so are masters. A node of validators is in
    /// the rack of those whose votes it gathers, where these are in one; the others are dealt to
    /// the racks.
    ///
    /// # Errors
    /// Racks that cannot be.
    pub(crate) fn of(
        &self,
        nodes: RunNodes<'_>,
        catalog: &Catalog,
    ) -> Result<Option<Racks>, NoRacks> {
        if self.nodes == 0 {
            let limited = self.link != RackLink::default();
            return if limited { Err(NoRacks::Links) } else { Ok(None) };
        }
        if !nodes.data.is_multiple_of(self.nodes) {
            return Err(NoRacks::Uneven { nodes: nodes.data, rack: self.nodes });
        }
        let rack = |node: usize| (node / self.nodes) as u16;
        let mut rack_of: Vec<u16> = (0..nodes.data).map(rack).collect();
        rack_of.extend((0..nodes.without).map(|node| rack(node % nodes.data)));
        let racks = nodes.data / self.nodes;
        let apart = nodes.apart.iter().zip(0..);
        rack_of.extend(apart.map(|(node, number)| {
            self.of_validators(*node, catalog).unwrap_or((number % racks) as u16)
        }));
        rack_of.extend(nodes.guest.then_some(0));
        Ok(Some(Racks::new(rack_of, self.link)))
    }

    /// The rack of all that the validators on this node gather votes of, if that is one.
    fn of_validators(&self, node: NodeId, catalog: &Catalog) -> Option<u16> {
        let tree = catalog.hierarchy.as_ref()?;
        let inner = tree.living_on(node).filter_map(|number| Some(tree.inner_of(number)?.0));
        let mut racks: Vec<u16> = inner
            .flat_map(|inner| {
                let all = (0..catalog.repositories() as u16).map(RepositoryId);
                all.filter(move |repository| tree.covers(inner, *repository))
            })
            .map(|repository| (catalog.home(repository).0 as usize / self.nodes) as u16)
            .collect();
        racks.dedup();
        if let [rack] = racks[..] { Some(rack) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::catalog::{TreePlan, TreeShape};

    use super::*;

    fn racks(nodes: usize, rack: usize, apart: u32) -> Result<Vec<u16>, NoRacks> {
        let all: Vec<_> = (0..nodes as u32 + 5 + apart).map(NodeId).collect();
        let (data, apart) = (&all[..nodes], &all[nodes + 5..]);
        let catalog = Catalog::new(data, 1, &all).unwrap();
        let plan = TreePlan::from("2x2".parse::<TreeShape>().unwrap());
        let catalog = catalog.clone().with_tree(&plan, apart).unwrap_or(catalog);
        let model = RackModel { nodes: rack, link: RackLink { packets: 9, bandwidth: 0 } };
        let run = RunNodes { data: nodes, without: 5, apart, guest: true };
        let racks = model.of(run, &catalog)?.expect("there are some");
        Ok((0..racks.nodes() as u32).map(|node| racks.rack_of(NodeId(node))).collect())
    }

    #[test]
    fn clients_are_beside_their_data_and_validators_beside_their_voters() {
        assert_eq!(racks(4, 2, 0).unwrap(), [0, 0, 1, 1, 0, 0, 1, 1, 0, 0]);
        // The root's validator, then those of two racks, then two that have nothing to do.
        assert_eq!(racks(4, 2, 5).unwrap()[9..], [0, 0, 1, 1, 0, 0]);
        assert_eq!(racks(6, 2, 0).unwrap()[..6], [0, 0, 1, 1, 2, 2]);
        assert_eq!(racks(4, 3, 0), Err(NoRacks::Uneven { nodes: 4, rack: 3 }));
        assert_eq!(racks(4, 0, 0), Err(NoRacks::Links));
    }
}
