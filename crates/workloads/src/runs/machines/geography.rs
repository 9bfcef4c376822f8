//! Sites and how far they are from each other: of a named geography, or of a file.

use std::fmt::Write as _;
use std::time::Duration;

use muesli::SiteDelays;
use muesli_core::catalog::{ShardSites, ShardSitesError, Sites};
use muesli_core::{Nanos, NodeId, Settings};
use muesli_sim::latency::Latency;
use muesli_sim::network::topology::{ChannelClass, Topology};
use muesli_sim::time::Span;
use thiserror::Error;

/// Sites, and how long a message and its answer take between each two of them.
///
/// Invariants: there is a site at least, and as many rows and columns of times as sites; the times
/// are the same both ways; the leader is at a site.
#[derive(Clone, Debug, PartialEq)]
pub struct Geography {
    names: Vec<String>,
    /// Round trips, in microseconds.
    round_trips: Vec<Vec<u64>>,
    /// Where who orders all commits is placed, under protocols that have one.
    leader: usize,
    /// The sites of each shard's members, under protocols that have shards.
    shards: Option<ShardSites>,
}

/// A geography that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoGeography {
    /// There is none of this name.
    #[error("there is no geography `{0}`; there is `seven`, or name a file")]
    Unknown(String),
    /// A line that says nothing of a site.
    #[error(
        "line {line}: expected the name of a site, without commas and `=`, and its round trips in \
         milliseconds to the sites of the lines before, with blanks between; found `{text}`"
    )]
    Line {
        /// Which, from 1.
        line: usize,
        /// What it says.
        text: String,
    },
    /// The leader is to be at a site that there is not.
    #[error("there is no site `{name}`; there are {known}")]
    Leader {
        /// Its name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// More sites are wanted than there are.
    #[error("{wanted} sites, of {known}: there must be 1 to {known}")]
    Sites {
        /// How many are wanted.
        wanted: usize,
        /// How many there are.
        known: usize,
    },
}

/// Amazon's regions N. Virginia, Ireland, Tokyo, N. California, Singapore, São Paulo and Seoul:
/// average round trips in milliseconds between virtual machines, as published in 2016 under the
/// title "Latency Between AWS Global Regions" and repeated at
/// <https://acomputerscientistlearnsaws.blogspot.com/2017/04/aws-regions.html>; the mean of both
/// directions. Two sites of a region are not among them.
const SEVEN: &str = "\
virginia
ireland    80.5
tokyo      145.3 212.4
california 72.2  153.2 102.5
singapore  216.7 238.6 73.8  174.0
sao-paulo  119.5 191.3 256.8 192.7 328.1
seoul      177.5 242.4 31.4  132.1 71.6  286.3
";

impl Geography {
    /// The geography called `name`.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<Geography, NoGeography> {
        match name {
            "seven" => Ok(Geography::seven()),
            other => Err(NoGeography::Unknown(other.to_owned())),
        }
    }

    /// Seven regions: three in Asia, two in North America, one each in South America and Europe.
    pub fn seven() -> Geography {
        Geography::parse(SEVEN).expect("a geography that was written here")
    }

    /// A geography from lines: the name of a site, and its round trips in milliseconds to the sites
    /// of the lines before.
    ///
    /// # Errors
    /// A line says something else.
    pub fn parse(text: &str) -> Result<Geography, NoGeography> {
        let (mut names, mut round_trips) = (Vec::new(), Vec::<Vec<u64>>::new());
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let wrong = || NoGeography::Line { line: at + 1, text: line.to_owned() };
            let mut words = line.split_whitespace();
            let is_name = |name: &&str| !name.contains([',', '=']);
            let name = words.next().filter(is_name).ok_or_else(wrong)?;
            let micros = |word: &str| {
                let millis = word.parse::<f64>().ok().filter(|it| (0.0..=60_000.0).contains(it));
                millis.map(|millis| (millis * 1_000.0) as u64)
            };
            let mut row: Vec<u64> =
                words.map(|it| micros(it).ok_or_else(wrong)).collect::<Result<_, _>>()?;
            if row.len() != names.len() || names.iter().any(|known| known == name) {
                return Err(wrong());
            }
            round_trips.iter_mut().zip(&row).for_each(|(other, time)| other.push(*time));
            row.push(0);
            round_trips.push(row);
            names.push(name.to_owned());
        }
        match names.is_empty() {
            true => Err(NoGeography::Line { line: 1, text: String::new() }),
            false => Ok(Geography { names, round_trips, leader: 0, shards: None }),
        }
    }

    /// The first so many of its sites.
    ///
    /// # Errors
    /// There are fewer.
    pub fn of_sites(&self, wanted: usize) -> Result<Geography, NoGeography> {
        let known = self.names.len();
        if wanted == 0 || wanted > known {
            return Err(NoGeography::Sites { wanted, known });
        }
        let names = self.names[..wanted].to_vec();
        let rows = self.round_trips[..wanted].iter().map(|row| row[..wanted].to_vec());
        let leader = self.leader.min(wanted - 1);
        let (round_trips, shards) = (rows.collect(), self.shards.clone());
        Ok(Geography { names, round_trips, leader, shards })
    }

    /// The same, with the leader at the site of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn led_from(self, name: &str) -> Result<Geography, NoGeography> {
        match self.names.iter().position(|known| known == name) {
            Some(leader) => Ok(Geography { leader, ..self }),
            None => {
                let known = self.names.join(", ");
                Err(NoGeography::Leader { name: name.to_owned(), known })
            }
        }
    }

    /// The same, with the leader where all round trips to the others are together the least; or,
    /// where that is wanted, the most.
    pub fn led_from_the_middle(self, far: bool) -> Geography {
        let sum = |site: &usize| -> u64 { self.round_trips[*site].iter().sum() };
        let sites = 0..self.names.len();
        let leader = if far { sites.max_by_key(sum) } else { sites.min_by_key(sum) };
        Geography { leader: leader.expect("there is a site at least"), ..self }
    }

    /// Where the leader is placed.
    pub fn leader(&self) -> usize {
        self.leader
    }

    /// The names of the sites.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How long a message is under way from one site to another.
    pub fn one_way(&self, from: usize, to: usize) -> Span {
        Span::from_micros(self.round_trips[from][to] / 2)
    }

    /// The longest round trip.
    pub fn longest(&self) -> Span {
        let all = self.round_trips.iter().flatten().max();
        Span::from_micros(all.copied().unwrap_or(0))
    }

    /// Sets where the leader is, and makes the times of nodes at these sites
    /// [long enough](Settings::suit_sites).
    pub fn prepare(&self, settings: &mut Settings) {
        settings.suit_sites(self.leader as u16, Nanos(self.longest().as_nanos()));
    }

    /// The same, with the members of each shard at the sites that are named for it.
    pub fn with_shards(self, shards: Option<ShardSites>) -> Geography {
        Geography { shards, ..self }
    }

    /// The sites of each shard's members, if they are named.
    pub fn shards(&self) -> Option<&ShardSites> {
        self.shards.as_ref()
    }

    /// Homes of the members of shards on so many nodes; `None`: no sites are named for them.
    ///
    /// # Errors
    /// They cannot be there.
    pub fn homes(&self, nodes: usize) -> Result<Option<Vec<NodeId>>, ShardSitesError> {
        let all: Vec<NodeId> = (0..nodes as u32).map(NodeId).collect();
        let homes = |it: &ShardSites| it.homes(&self.sites(nodes), &all, 1);
        self.shards.as_ref().map(homes).transpose()
    }

    /// Where so many nodes are, which are at these sites in turn.
    pub fn sites(&self, nodes: usize) -> Sites {
        Sites::round_robin(&self.names, nodes)
    }

    /// These sites, for the loops of an embedded database.
    pub fn in_process(&self) -> SiteDelays {
        let sites = 0..self.names.len();
        let one_way =
            |from: usize, to: usize| Duration::from_nanos(self.one_way(from, to).as_nanos());
        let row = |from: usize| sites.clone().map(|to| one_way(from, to)).collect();
        let all = SiteDelays::new(sites.clone().map(row).collect());
        let led = all.and_then(|all| all.led_from(self.leader)?.named(&self.names));
        led.expect("round trips of a minute at most, a leader at one of the sites, and a name each")
    }

    /// Lines from which [`parse`](Self::parse) makes it.
    pub fn lines(&self) -> String {
        let rows = self.names.iter().zip(&self.round_trips).enumerate();
        let line = |(at, (name, row)): (usize, (&String, &Vec<u64>))| {
            let before = row[..at].iter().map(|micros| format!(" {}", *micros as f64 / 1e3));
            format!("{name}{}\n", before.collect::<String>())
        };
        rows.map(line).collect()
    }

    /// The table, for people.
    pub fn table(&self) -> String {
        let mut table = String::new();
        for (name, row) in self.names.iter().zip(&self.round_trips) {
            let _ = write!(table, "{name:>12}");
            row.iter().for_each(|micros| _ = write!(table, " {:>6.1}", *micros as f64 / 1e3));
            table.push('\n');
        }
        table
    }

    /// Nodes with data are at the sites in turn, and so are those after them, with clients. Within
    /// a site they are as far from each other as `near` says.
    pub fn place(&self, topology: &mut Topology, data: usize, near: ChannelClass) {
        let site = |node: usize| {
            let place = if node < data { node } else { node - data };
            place % self.names.len()
        };
        let nodes = topology.nodes();
        for (from, to) in (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))) {
            if site(from) != site(to) {
                let (least, mean_tail) =
                    (self.one_way(site(from), site(to)), near.latency.median());
                let latency = Latency::Exponential { least, mean_tail };
                let class = ChannelClass { latency, ..near };
                topology.set_channel(NodeId(from as u32), NodeId(to as u32), class);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_regions_are_as_far_from_each_other_as_was_published() {
        let seven = Geography::seven();
        assert_eq!((seven.names().len(), seven.longest()), (7, Span::from_micros(328_100)));
        let virginia_to_tokyo = seven.one_way(0, 2);
        assert_eq!(virginia_to_tokyo, Span::from_micros(72_650));
        assert_eq!(seven.one_way(2, 0), virginia_to_tokyo);
        let three = seven.of_sites(3).unwrap();
        assert_eq!(three.longest(), Span::from_micros(212_400));
        let places = [false, true].map(|far| three.clone().led_from_the_middle(far).leader());
        assert_eq!(places, [0, 2], "Virginia is near both others, Tokyo is far");
        assert_eq!(seven.clone().led_from("tokyo").map(|it| it.leader()), Ok(2));
        assert!(seven.of_sites(8).unwrap_err().to_string().contains("1 to 7"));
        assert!(Geography::named("eight").unwrap_err().to_string().contains("`seven`"));
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        for text in ["", "a\nb", "a\nb x", "a\nb 1 2", "a\na 1", "a\nb -1"] {
            let error = Geography::parse(text).unwrap_err().to_string();
            assert!(error.contains("expected the name of a site"), "{text}: {error}");
        }
        let two = Geography::parse("a\n\nb 3.5\n").unwrap();
        assert_eq!(two.table().lines().count(), 2);
        assert_eq!(two.lines(), "a\nb 3.5\n");
        assert!(two.led_from("c").unwrap_err().to_string().contains("there are a, b"));
        assert_eq!(Geography::parse(&Geography::seven().lines()), Ok(Geography::seven()));
    }

    #[test]
    fn nodes_of_a_site_are_near_and_others_are_not() {
        let near = ChannelClass { latency: Latency::Constant(Span::from_micros(50)), bandwidth: 0 };
        let mut topology = Topology::uniform(6, near);
        let two = Geography::parse("a\nb 10").unwrap();
        two.place(&mut topology, 3, near);
        let far = |from, to| {
            topology.class(NodeId(from), NodeId(to)).latency.median() > near.latency.median()
        };
        assert!(!far(0, 2) && far(0, 1) && far(1, 2));
        let sites = two.sites(3);
        let colocated = |one, other| sites.are_colocated(NodeId(one), NodeId(other));
        assert!(colocated(0, 2) && !colocated(0, 1) && !colocated(1, 2));
        assert!(
            !far(3, 0) && !far(4, 1) && far(3, 4) && !far(5, 3),
            "clients are at sites in turn"
        );
    }
}
