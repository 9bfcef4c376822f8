//! Sites of a run: the options, and what servers that are far from each other are told.

use std::path::Path;

use anyhow::Context;
use clap::Args;
use muesli_core::{NodeId, Settings};
use muesli_workloads::geography::Geography;

/// Where nodes are: the options of commands that start them.
#[derive(Args, Clone, Debug, Default)]
pub struct GeographyOptions {
    /// The sites of the nodes, in turn: `seven` regions of a cloud, or a file with a line for each
    /// site, its name and its round trips in milliseconds to the sites before it. What goes between
    /// processes of two sites passes a proxy that delays it; what goes between loops of a process
    /// is held as long
    #[arg(long = "geo", value_name = "NAME|FILE")]
    pub geography: Option<String>,
    /// The first so many of these sites [default: all, or as many as there are nodes]
    #[arg(long, value_name = "N", requires = "geography",
        value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub sites: Option<u16>,
    /// The site of the leader at the start, by its name, under certified-multipaxos [default: the
    /// first one]
    #[arg(long, value_name = "SITE", requires = "geography")]
    pub leader_site: Option<String>,
}

impl GeographyOptions {
    /// What was asked for, where nodes are counted of as many sites as there are nodes for at most;
    /// `None`: nothing was.
    ///
    /// # Errors
    /// There is no geography of this name, the file cannot be read, or there are fewer sites.
    pub fn chosen(&self, nodes: Option<usize>) -> anyhow::Result<Option<Geography>> {
        let Some(named) = &self.geography else { return Ok(None) };
        let known = match Geography::named(named) {
            Err(unknown) if !Path::new(named).exists() => return Err(unknown.into()),
            Err(_) => {
                let text = std::fs::read_to_string(named);
                let text =
                    text.with_context(|| format!("the geography `{named}` cannot be read"))?;
                Geography::parse(&text).with_context(|| format!("the geography `{named}`"))?
            }
            Ok(known) => known,
        };
        let all = || known.names().len().min(nodes.unwrap_or(usize::MAX).max(1));
        let sites = known.of_sites(self.sites.map_or_else(all, usize::from))?;
        Ok(Some(match &self.leader_site {
            Some(leader) => sites.led_from(leader)?,
            None => sites,
        }))
    }
}

/// Keys of the file of each of so many servers at these sites, in turn.
pub fn keys(geography: &Geography, servers: usize) -> Vec<String> {
    let mut times = Settings::default();
    geography.prepare(&mut times);
    let sites = geography.sites(servers);
    let one = |(name, nodes): (&str, &[NodeId])| {
        let nodes: Vec<String> = nodes.iter().map(|node| node.0.to_string()).collect();
        format!("{}={}", name.replace([' ', '='], "-"), nodes.join(","))
    };
    let sites: Vec<String> = sites.all().map(one).collect();
    vec![
        format!("sites = \"{}\"", sites.join(" ")),
        format!("retry_after_ms = {}", times.retry_after.as_millis()),
        format!("in_doubt_after_ms = {}", times.in_doubt_after.as_millis()),
        format!("leader_site = {}", times.leader_site),
    ]
}
