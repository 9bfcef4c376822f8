//! What the servers of a cluster say of themselves.

use anyhow::{Context, bail};
use muesli_cluster::lifecycle::visit::{Visit, VisitError};
use muesli_cluster::spaces::parts::MapParts;
use muesli_cluster::wire::control::Control;
use muesli_core::{Lag, NodeId, ReplicaRole, RepositoryId, Secret};
use muesli_group::placement::{PlacementRow, Shape};

use crate::reach::{self, WITHIN};

/// A server, and what it said.
pub struct Surveyed {
    pub node: NodeId,
    pub address: String,
    /// The epoch of the placement that it goes by, and its members; none if it does not answer.
    pub answer: Option<(u64, Vec<(RepositoryId, ReplicaRole)>)>,
    /// By how much they are behind in their groups.
    pub lags: Vec<(RepositoryId, Lag)>,
}

/// All servers of a cluster.
pub struct Survey {
    pub shape: Shape,
    /// The nodes that have not left.
    pub servers: Vec<Surveyed>,
    /// The map of the first that answered.
    pub map: MapParts,
    secret: Option<Secret>,
}

impl Survey {
    /// Asks all servers of the cluster that one of these addresses belongs to. The secret is for
    /// what they are told later.
    ///
    /// # Errors
    /// None of them answers.
    pub fn of(addresses: &[String], secret: Option<&Secret>) -> anyhow::Result<Survey> {
        let map = reach::first(addresses)?.welcome.map;
        let ask = |(node, address): &(NodeId, String)| {
            let visit = Visit::begin(address, WITHIN);
            let answered = print_line(visit, &Control::AskMembers);
            let (answer, lags) =
                answered.map(|(known, lags)| (Some(known), lags)).unwrap_or_default();
            Surveyed { node: *node, address: address.clone(), answer, lags }
        };
        let servers = std::thread::scope(|scope| {
            let there = map.servers.iter().filter(|(node, _)| !map.left.contains(node));
            let asked: Vec<_> = there.map(|it| scope.spawn(move || ask(it))).collect();
            asked.into_iter().map(|it| it.join().expect("a visit does not panic")).collect()
        });
        let shape = Shape { group: map.group, loops: map.loops };
        Ok(Survey { shape, servers, map, secret: secret.cloned() })
    }

    /// Looks whether the cluster has groups, whose members can be moved.
    ///
    /// # Errors
    /// It has none.
    pub fn check_groups(&self) -> anyhow::Result<()> {
        if self.shape.group <= 1 {
            bail!("this cluster has no groups: `group` is 1, and repositories stay where they are");
        }
        Ok(())
    }

    /// The servers that do not answer, a line each.
    pub fn silent(&self) -> impl Iterator<Item = String> + '_ {
        let silent = self.servers.iter().filter(|server| server.answer.is_none());
        silent.map(|server| format!("node {} at {} does not answer", server.node.0, server.address))
    }

    /// Proves to one of the servers that this is an administrator.
    ///
    /// # Errors
    /// It does not believe that, or none answers.
    pub fn prove(&self) -> anyhow::Result<()> {
        let there = self.servers.iter().find(|server| server.answer.is_some());
        let there = there.context("no server answers")?;
        let proven = Visit::begin_as_admin(&there.address, WITHIN, self.secret.as_ref());
        proven.map(drop).with_context(|| format!("{} takes no changes from here", there.address))
    }

    /// The placement that the servers go by, as the row would say it. Servers that have joined are
    /// on the map.
    pub fn row(&self) -> PlacementRow {
        let MapParts { placement: epoch, homes, left, leaving, .. } = self.map.clone();
        PlacementRow { epoch, homes, joined: Vec::new(), left, leaving }
    }

    /// Looks whether there is such a server.
    ///
    /// # Errors
    /// There is not, or not any more.
    pub fn check_server(&self, server: u32) -> anyhow::Result<()> {
        let is_of = |node: NodeId| self.shape.server(node) == server;
        if !self.servers.iter().any(|it| is_of(it.node)) {
            let gone = self.map.left.iter().any(|node| is_of(*node));
            match gone {
                true => bail!("server {server} has left the cluster"),
                false => bail!("there is no server {server}"),
            }
        }
        Ok(())
    }

    /// Whether the server of a node answers.
    pub fn answers(&self, node: NodeId) -> bool {
        self.servers.iter().any(|server| server.node == node && server.answer.is_some())
    }

    /// Looks whether there is such a node.
    ///
    /// # Errors
    /// There is not, or not any more.
    pub fn check_node(&self, node: NodeId) -> anyhow::Result<()> {
        if !self.servers.iter().any(|server| server.node == node) {
            bail!("there is no node {}", node.0);
        }
        Ok(())
    }

    /// The post of a member, as the node says where it lives by this row, if it answers and goes by
    /// the row too.
    pub fn role(&self, row: &PlacementRow, member: RepositoryId) -> Option<ReplicaRole> {
        let home = row.home(member).ok()?;
        let server = self.servers.iter().find(|server| server.node == home)?;
        let (placement, replica_roles) = server.answer.as_ref()?;
        let role = replica_roles.iter().find(|(it, _)| *it == member).map(|(_, role)| *role);
        role.filter(|_| *placement == row.epoch)
    }

    /// Tells all servers a map with another tree.
    ///
    /// # Errors
    /// None of them takes it.
    pub fn tell_map(&self, map: &MapParts) -> anyhow::Result<()> {
        let request = Control::Place(map.clone());
        let (mut is_taken, mut trouble) = (false, "no server answers".to_owned());
        for server in self.servers.iter().filter(|server| server.answer.is_some()) {
            let visit = Visit::begin_as_admin(&server.address, WITHIN, self.secret.as_ref());
            match visit.and_then(|mut visit| visit.ask(&request)) {
                Ok(_) => is_taken = true,
                Err(error) => trouble = format!("node {}: {error}", server.node.0),
            }
        }
        if is_taken { Ok(()) } else { bail!("{trouble}") }
    }

    /// Tells all servers what the row says.
    pub fn tell(&self, row: &PlacementRow) {
        let mut map = self.map.clone();
        (map.placement, map.homes) = (row.epoch, row.homes.clone());
        map.leaving.clone_from(&row.leaving);
        let known = |node: NodeId| self.map.servers.iter().any(|(it, _)| *it == node);
        map.servers.extend(row.joined.iter().filter(|(node, _)| !known(*node)).cloned());
        map.left.extend(&row.left);
        let request = Control::Place(map);
        for server in self.servers.iter().filter(|server| server.answer.is_some()) {
            let visit = Visit::begin_as_admin(&server.address, WITHIN, self.secret.as_ref());
            print_line(visit, &request); // Who does not hear it is told by the others.
        }
    }
}

type Members = (u64, Vec<(RepositoryId, ReplicaRole)>);

fn print_line(
    visit: Result<Visit, VisitError>,
    request: &Control,
) -> Option<(Members, Vec<(RepositoryId, Lag)>)> {
    match visit.and_then(|mut visit| visit.ask(request)) {
        Ok(Control::Members { placement, members, lags }) => Some(((placement, members), lags)),
        _ => None,
    }
}
