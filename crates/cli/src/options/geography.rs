//! Sites of a run: the options, and what servers that are far from each other are told.

use std::path::Path;

use anyhow::{Context, bail};
use clap::Args;
use muesli_core::catalog::ShardSites;
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
    /// Under sharded-*, the sites of the members of each shard, as in
    /// "virginia,ireland,tokyo tokyo,seoul,singapore" for two shards of three; nodes of a site
    /// share its data [default: as --repositories and --replicas say, dealt to nodes in turn]
    #[arg(long, value_name = "SITE,… …", requires = "geography",
        value_parser = ShardSites::parse)]
    pub shards: Option<ShardSites>,
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
        let sites = sites.with_shards(self.shards.clone());
        Ok(Some(match &self.leader_site {
            Some(leader) => sites.led_from(leader)?,
            None => sites,
        }))
    }

    /// How many repositories there are, and how many hold each key: what the sites of shards name,
    /// or else what was given.
    ///
    /// # Errors
    /// Both were given, and are not the same; or repositories are to be kept by groups.
    pub fn repositories(
        &self,
        given: (Option<usize>, usize),
        group: u16,
    ) -> anyhow::Result<(Option<usize>, usize)> {
        let Some(shards) = &self.shards else { return Ok(given) };
        let (all, each) = (shards.repositories(), shards.replicas());
        if group > 1 {
            bail!(
                "--shards is for shards, which keep their copies themselves: not --group {group}"
            );
        }
        if given.0.is_some_and(|it| it != all) || given.1 > 1 && given.1 != each {
            let asked = given.0.map_or_else(|| "any number of".to_owned(), |it| it.to_string());
            bail!(
                "--shards names {all} repositories with {each} replicas of each key, and asked for \
                 were {asked} with {}: leave --repositories and --replicas out",
                given.1
            );
        }
        Ok((Some(all), each))
    }
}

/// Keys of the file of each of so many servers at these sites, in turn.
pub fn keys(geography: &Geography, servers: usize) -> Vec<String> {
    let mut times = Settings::default();
    geography.prepare(&mut times);
    let sites = geography.sites(servers);
    let one = |(name, nodes): (&str, &[NodeId])| {
        let nodes: Vec<String> = nodes.iter().map(|node| node.0.to_string()).collect();
        format!("{name}={}", nodes.join(","))
    };
    let sites: Vec<String> = sites.all().map(one).collect();
    let shards = geography.shards().map(|it| format!("shards = \"{it}\""));
    let mut keys = vec![
        format!("sites = \"{}\"", sites.join(" ")),
        format!("retry_after_ms = {}", times.retry_after.as_millis()),
        format!("in_doubt_after_ms = {}", times.in_doubt_after.as_millis()),
        format!("leader_site = {}", times.leader_site),
    ];
    keys.extend(shards);
    keys
}
