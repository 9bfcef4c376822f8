//! Shards at named sites: which nodes repositories live on, so that the members of each shard are
//! at the sites that are named for it.

use std::collections::BTreeSet;
use std::fmt;

use thiserror::Error;

use super::Sites;
use crate::ids::NodeId;

/// For each shard the sites of its members: `east,west,north west,south,south` are two shards of
/// three members, of which the second one has two at one site, on different nodes.
///
/// Invariant: there is a shard, and all have as many members, one at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardSites {
    shards: Vec<Vec<String>>,
}

/// Shards that cannot be placed so.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ShardSitesError {
    /// Nothing is named.
    #[error("no shard is named: write the sites of each, as in `east,west west,north`")]
    None,
    /// A name is empty.
    #[error("shard {shard}, `{text}`, has a site without a name: write `east,west,north`")]
    Unnamed {
        /// Counted from 0.
        shard: usize,
        /// What was written of it.
        text: String,
    },
    /// Shards of different sizes.
    #[error("shard {shard} has {members} members and shard 0 has {first}: all have as many")]
    Uneven {
        /// Counted from 0.
        shard: usize,
        /// It has.
        members: usize,
        /// The first one has.
        first: usize,
    },
    /// A site that nobody is at.
    #[error("shard {shard} is to be at `{site}`, and there is no such site: there are {known}")]
    Unknown {
        /// Counted from 0.
        shard: usize,
        /// The name.
        site: String,
        /// The names that there are.
        known: String,
    },
    /// More members at a site than processes.
    #[error(
        "shard {shard} is to have {members} members at `{site}`, where {processes} processes keep \
         data: there is one in each at most"
    )]
    Processes {
        /// Counted from 0.
        shard: usize,
        /// Of the site.
        site: String,
        /// It is to have.
        members: usize,
        /// There are.
        processes: usize,
    },
}

impl ShardSites {
    /// Reads shards, with blanks between them, as sites with commas between them.
    ///
    /// # Errors
    /// It is none, or the shards have different sizes.
    pub fn parse(text: &str) -> Result<ShardSites, ShardSitesError> {
        let one = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        let shards: Vec<Vec<String>> = text.split_whitespace().map(one).collect();
        let first = shards.first().ok_or(ShardSitesError::None)?.len();
        for (shard, sites) in shards.iter().enumerate() {
            if sites.iter().any(String::is_empty) {
                return Err(ShardSitesError::Unnamed { shard, text: sites.join(",") });
            }
            if sites.len() != first {
                return Err(ShardSitesError::Uneven { shard, members: sites.len(), first });
            }
        }
        Ok(ShardSites { shards })
    }

    /// How many members each shard has, which is how many repositories hold each key.
    pub fn replicas(&self) -> usize {
        self.shards[0].len()
    }

    /// How many members all shards have.
    pub fn repositories(&self) -> usize {
        self.shards.len() * self.replicas()
    }

    /// Homes of the repositories, those of a shard one after the other: each on that of the nodes
    /// at its site that has fewest by then, and no two of a shard in one process. `keep`: the nodes
    /// that are to have data, of which so many with numbers in a row are loops of one process.
    ///
    /// # Errors
    /// There is no site of a name, or it has too few nodes.
    pub fn homes(
        &self,
        sites: &Sites,
        keep: &[NodeId],
        loops: usize,
    ) -> Result<Vec<NodeId>, ShardSitesError> {
        let process = |node: &NodeId| node.0 as usize / loops.max(1);
        let mut homes: Vec<NodeId> = Vec::with_capacity(self.repositories());
        for (shard, at) in self.shards.iter().enumerate() {
            let first = homes.len();
            for site in at {
                let Some((_, there)) = sites.all().find(|(name, _)| name == site) else {
                    let known: Vec<String> =
                        sites.all().map(|(name, _)| format!("`{name}`")).collect();
                    let known = if known.is_empty() { "none".into() } else { known.join(", ") };
                    return Err(ShardSitesError::Unknown { shard, site: site.clone(), known });
                };
                let there = || there.iter().filter(|node| keep.contains(node));
                let of_shard = &homes[first..];
                let is_free =
                    |node: &&NodeId| of_shard.iter().all(|home| process(home) != process(node));
                let load = |node: &&NodeId| homes.iter().filter(|home| home == node).count();
                let Some(node) = there().filter(is_free).min_by_key(load) else {
                    let members = at.iter().filter(|it| *it == site).count();
                    let processes = there().map(process).collect::<BTreeSet<_>>().len();
                    let site = site.clone();
                    return Err(ShardSitesError::Processes { shard, site, members, processes });
                };
                homes.push(*node);
            }
        }
        Ok(homes)
    }
}

impl fmt::Display for ShardSites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shards: Vec<String> = self.shards.iter().map(|sites| sites.join(",")).collect();
        f.write_str(&shards.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(count: u32) -> Vec<NodeId> {
        (0..count).map(NodeId).collect()
    }

    /// Three sites of two nodes each.
    fn sites() -> Sites {
        Sites::round_robin(&["east", "west", "north"], 6)
    }

    fn homes(text: &str) -> Vec<u32> {
        let shards = ShardSites::parse(text).unwrap();
        let homes = shards.homes(&sites(), &nodes(6), 1).unwrap();
        assert_eq!(homes.len(), shards.repositories());
        homes.into_iter().map(|home| home.0).collect()
    }

    #[test]
    fn members_are_at_the_sites_of_their_shard_and_nodes_of_a_site_share_its_data() {
        assert_eq!(homes("east,west"), [0, 1]);
        assert_eq!(homes("east,west east,north east,west"), [0, 1, 3, 2, 0, 4]);
        assert_eq!(homes("west,west,east"), [1, 4, 0], "two of them on two nodes of one site");
        let text = "east,west north,east";
        assert_eq!(ShardSites::parse(text).unwrap().to_string(), text);
    }

    #[test]
    fn what_cannot_be_is_named_with_what_can() {
        for (text, part) in [
            ("", "no shard is named"),
            ("east,,west", "shard 0, `east,,west`, has a site without a name"),
            ("east,west north", "shard 1 has 1 members and shard 0 has 2"),
        ] {
            let error = ShardSites::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        for (text, part) in [
            (
                "east south",
                "shard 1 is to be at `south`, and there is no such site: there are `east`",
            ),
            ("east,east,east", "3 members at `east`, where 2 processes keep data"),
        ] {
            let shards = ShardSites::parse(text).unwrap();
            let error = shards.homes(&sites(), &nodes(6), 1).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let shards = ShardSites::parse("east,west").unwrap();
        let error = shards.homes(&sites(), &nodes(1), 1).unwrap_err().to_string();
        assert!(error.contains("1 members at `west`, where 0 processes keep data"), "{error}");
        let none = shards.homes(&Sites::default(), &nodes(1), 1).unwrap_err().to_string();
        assert!(none.contains("there are none"), "{none}");
    }

    /// Nodes 0 and 1 are loops of one process, and so on.
    #[test]
    fn no_two_members_of_a_shard_are_in_one_process() {
        let all = nodes(4);
        let east = Sites::new(&[("east", &all)]).unwrap();
        let homes = |text| ShardSites::parse(text).unwrap().homes(&east, &all, 2);
        let number = |node: u32| NodeId(node);
        assert_eq!(homes("east,east east,east"), Ok([0, 2, 1, 3].map(number).to_vec()));
        assert!(homes("east,east,east").unwrap_err().to_string().contains("where 2 processes"));
    }
}
