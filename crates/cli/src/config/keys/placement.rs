//! How keys are shared out, which servers keep them, and under which protocol.

use std::time::Duration;

use muesli_core::NodeId;
use muesli_core::catalog::{ShardSites, Sites};
use muesli_core::recorder::accesses::SAMPLES_KEPT_MAX;

use super::super::Config;
use super::super::tree_form::form;
use super::super::values::{millis, number, protocol, put, truth};
use super::ConfigKey;

pub(super) const PLACEMENT: &[ConfigKey] = &[
    ConfigKey {
        name: "repositories",
        value: "N",
        default: "1",
        help: "How many repositories hold the keys, dealt to the servers' loops in turn",
        set: |config, text| put(&mut config.server.repositories, number(text, 1, 4096)? as usize),
    },
    ConfigKey {
        name: "replicas",
        value: "N",
        default: "1",
        help: "How many repositories hold each key",
        set: |config, text| put(&mut config.server.replicas, number(text, 1, 4096)? as usize),
    },
    ConfigKey {
        name: "spread",
        value: "N",
        default: "1",
        help: "How many partitions there are for each repository; more than one, so that moves of \
               partitions can share the keys out anew",
        set: |config, text| {
            put(&mut config.server.partitions_per_repository, number(text, 1, 1024)? as usize)
        },
    },
    ConfigKey {
        name: "sample_one_in",
        value: "N",
        default: "16",
        help: "Of one transaction in so many the partitions that it touches are kept in memory, \
               for `muesli partition suggest`; 0: of none. Under `granola` and its kin",
        set: |config, text| {
            put(&mut config.server.sample_one_in, number(text, 0, u64::from(u32::MAX))? as u32)
        },
    },
    ConfigKey {
        name: "samples_kept",
        value: "N",
        default: "16384",
        help: "A server keeps so many of these samples, the newest ones",
        set: |config, text| {
            put(&mut config.server.samples_kept, number(text, 0, SAMPLES_KEPT_MAX as u64)? as usize)
        },
    },
    ConfigKey {
        name: "follow_every_s",
        value: "SECONDS",
        default: "0",
        help: "Every so many seconds, partitions are moved to where transactions use them, if \
               that pays, and back if it did not help, as by `muesli partition watch --apply`; \
               0: never. The server with the lowest number does it, and while one does not answer \
               nothing moves. Under `granola` and its kin, with one copy of each key",
        set: |config, text| {
            put(&mut config.follow.every, Duration::from_secs(number(text, 0, 86_400)?))
        },
    },
    ConfigKey {
        name: "follow_rows",
        value: "N",
        default: "100000",
        help: "The most rows that move so in a period; what is moved back has no limit",
        set: |config, text| put(&mut config.follow.rows_most, number(text, 1, u64::MAX)?),
    },
    ConfigKey {
        name: "follow_ms",
        value: "MS",
        default: "2000",
        help: "The most milliseconds that such moves may take in a period, as far as is known \
               when one begins; what is moved back has no limit",
        set: |config, text| put(&mut config.follow.ms_most, number(text, 1, 86_400_000)?),
    },
    ConfigKey {
        name: "group",
        value: "N",
        default: "1",
        help: "How many servers keep each repository: with 3, one of them may be lost at any \
               moment",
        set: |config, text| put(&mut config.server.group, number(text, 1, 9)? as u16),
    },
    ConfigKey {
        name: "group_tick_ms",
        value: "MS",
        default: "20",
        help: "The step of a group's time: a leader that is silent for about ten of them is \
               followed by another member",
        set: |config, text| millis(text, &mut config.server.group_tick),
    },
    ConfigKey {
        name: "group_disk_ms",
        value: "MS",
        default: "400",
        help: "A member of a group whose disk makes nothing stable for so long leaves leading to \
               another one; where it took longer than half of that lately, twice as long counts, \
              up to half as long again as this",
        set: |config, text| millis(text, &mut config.server.group_disk),
    },
    ConfigKey {
        name: "group_log_bytes",
        value: "BYTES",
        default: "1048576",
        help: "A member of a group keeps at least so many bytes of its log's decided end in memory",
        set: |config, text| {
            put(&mut config.server.group_limits.log_bytes_min, number(text, 0, u64::MAX)?)
        },
    },
    ConfigKey {
        name: "group_log_bytes_max",
        value: "BYTES",
        default: "1073741824",
        help: "While other members of groups are away or behind, this server keeps what they lack \
               of the logs in memory, up to so many bytes, in equal shares for its members; beyond \
               them a member fetches the whole state",
        set: |config, text| {
            put(&mut config.server.group_limits.log_bytes_max, number(text, 0, u64::MAX)?)
        },
    },
    ConfigKey {
        name: "group_piece_bytes",
        value: "BYTES",
        default: "262144",
        help: "Members fetch entries and state from each other in pieces of about so many bytes",
        set: |config, text| {
            put(&mut config.server.group_limits.piece_bytes, number(text, 1, 16 << 20)?)
        },
    },
    ConfigKey {
        name: "group_window_bytes",
        value: "BYTES",
        default: "16777216",
        help: "So many bytes are sent to a member that fetches ahead of what it has on its disk",
        set: |config, text| {
            put(&mut config.server.group_limits.window_bytes, number(text, 1, 1 << 30)?)
        },
    },
    ConfigKey {
        name: "group_undecided_bytes",
        value: "BYTES",
        default: "8388608",
        help: "A leader has at most so many bytes of its log undecided, or one entry; others wait",
        set: |config, text| {
            put(&mut config.server.group_limits.undecided_bytes_max, number(text, 1, 1 << 30)?)
        },
    },
    ConfigKey {
        name: "join",
        value: "true|false",
        default: "false",
        help: "Come into a cluster of groups that runs already and was told of this server by \
               `muesli admin join`",
        set: |config, text| put(&mut config.server.joins, truth(text)?),
    },
    ConfigKey {
        name: "accept_loss",
        value: "true|false",
        default: "false",
        help: "Where a majority of a group has lost its folders: go on with what the others know, \
               though what only the lost ones knew is gone then; else members there wait. Where \
               the folder is an older copy: go on with it; else the server is refused. Where the \
               folder is empty and was not, under a certified protocol that exchanges members: \
               get the data back from the others; under `tfa` with one copy of each key: go on \
               without what it held, and find the keys that others own",
        set: |config, text| put(&mut config.server.accepts_loss, truth(text)?),
    },
    ConfigKey {
        name: "protocol",
        value: "NAME",
        default: "score",
        help: "The protocol that orders transactions",
        set: |config, text| put(&mut config.server.protocol, protocol(text)?),
    },
    ConfigKey {
        name: "masters",
        value: "N,…",
        default: "",
        help: "Which of the servers, as in 3 or 3,4, decide for the clients under sinfonia, and \
               hold no repositories; the same on all servers. None: each client decides for \
               itself",
        set: set_masters,
    },
    ConfigKey {
        name: "sites",
        value: "SITE=N,… …",
        default: "",
        help: "Where servers are, as in \"east=0,1 west=2\", the same on all servers: a server at \
               the site of who asks is asked before others under sharded-*. A server that is not \
               named is at no site",
        set: set_sites,
    },
    ConfigKey {
        name: "shards",
        value: "SITE,… …",
        default: "",
        help: "Under sharded-*, the sites of each shard's members, as in \"east,west west,north\" \
               for two shards of two, which are 4 repositories with 2 replicas; the same on all \
               servers. None: repositories are dealt to servers in turn",
        set: set_shards,
    },
    ConfigKey {
        name: "tree",
        value: "SHAPE|FILE",
        default: "",
        help: "The tree that votes climb under hierarchy and hierarchy-locking, above the servers \
               with repositories: how many children the inner nodes of each level have, from the \
               root down, as in 4x4, or a file with a line for each; the same on all servers. \
               None: a root above all",
        set: set_tree,
    },
    ConfigKey {
        name: "validators",
        value: "N",
        default: "1",
        help: "How many validators each inner node of the tree has, on different servers, each for \
               a share of the transactions",
        set: |config, text| put(&mut config.validators, number(text, 1, 64)? as u16),
    },
    ConfigKey {
        name: "validator_servers",
        value: "N,…",
        default: "",
        help: "Which of the servers have validators of the tree and hold no repositories; the same \
               on all servers. None: validators live where repositories do",
        set: |config, text| put(&mut config.server.validator_servers, nodes(text)?),
    },
];

fn set_tree(config: &mut Config, text: &str) -> Result<(), String> {
    let form = if text.is_empty() { None } else { Some(form(text)?) };
    put(&mut config.tree, form)
}

fn set_sites(config: &mut Config, text: &str) -> Result<(), String> {
    let mut all: Vec<(&str, Vec<NodeId>)> = Vec::new();
    for site in text.split_whitespace() {
        let parts = site.split_once('=').filter(|(name, _)| !name.is_empty());
        let (name, listed) = parts.ok_or_else(|| format!("`{site}` is no site, as in east=0,1"))?;
        all.push((name, nodes(listed)?));
    }
    put(&mut config.server.sites, Sites::new(&all).map_err(|error| error.to_string())?)
}

fn set_shards(config: &mut Config, text: &str) -> Result<(), String> {
    let shards = |text| ShardSites::parse(text).map_err(|error| error.to_string());
    put(&mut config.server.shards, if text.is_empty() { None } else { Some(shards(text)?) })
}

fn set_masters(config: &mut Config, text: &str) -> Result<(), String> {
    put(&mut config.server.masters, nodes(text)?)
}

/// Servers by their numbers, each once, in order.
fn nodes(text: &str) -> Result<Vec<NodeId>, String> {
    let texts = text.split(',').map(str::trim).filter(|text| !text.is_empty());
    let nodes = texts.map(|text| Ok(NodeId(number(text, 0, 4095)? as u32)));
    let mut nodes: Vec<_> = nodes.collect::<Result<_, String>>()?;
    nodes.sort_unstable();
    nodes.dedup();
    Ok(nodes)
}
