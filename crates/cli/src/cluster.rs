//! `muesli cluster`: a local cluster of real processes.

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use muesli_registry::{check_shards, check_tree};
use muesli_workloads::geography::Geography;

use crate::admin::{self, Admin};
use crate::local::link_process::{self, LinkProcess};
use crate::local::{ClusterPlan, LocalCluster, further_keys};
use crate::names;
use crate::options::BatchOptions;
use crate::options::geography::{self, GeographyOptions};
use crate::options::tree::{self, TreeOptions};
use crate::table;

const DIR: &str = "./muesli-cluster";
/// How long the groups of a new cluster may take to find their leaders.
const GROUPS_WITHIN: Duration = Duration::from_secs(10);

#[derive(Args, Clone, Debug)]
struct UpOptions {
    /// How many servers
    #[arg(long, alias = "nodes", value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u16).range(1..=256))]
    servers: u16,
    /// How many loops each of them runs
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=64))]
    loops: u16,
    /// How many repositories hold the keys, dealt to the loops in turn [default: as many]
    #[arg(long, value_name = "N")]
    repositories: Option<usize>,
    /// How many repositories hold each key
    #[arg(long, value_name = "R", default_value_t = 1)]
    replicas: usize,
    /// How many servers keep each repository: with 3, one of them may be lost at any moment
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=9))]
    group: u16,
    /// The protocol
    #[arg(long, value_name = "NAME", default_value = "score",
        value_parser = names::protocols(), hide_possible_values = true)]
    protocol: String,
    #[command(flatten)]
    tree: TreeOptions,
    #[command(flatten)]
    batches: BatchOptions,
    #[command(flatten)]
    geography: GeographyOptions,
    /// Keep data in memory only: they end with the processes
    #[arg(long)]
    memory: bool,
    /// A further key of every server's file; `muesli start --help` lists them
    #[arg(long = "set", value_name = "KEY=VALUE")]
    extra: Vec<String>,
}

/// The command's options.
pub fn command() -> Command {
    let dir = Arg::new("dir")
        .long("dir")
        .value_name("DIR")
        .global(true)
        .default_value(DIR)
        .value_parser(value_parser!(PathBuf))
        .help("The cluster's folder");
    let node = || {
        let node = Arg::new("node").value_name("SERVER").value_parser(value_parser!(usize));
        node.help("Which server, from 0")
    };
    let protocol = Arg::new("protocol").long("protocol").value_name("NAME").default_value("score");
    let protocol = protocol.value_parser(names::protocols()).hide_possible_values(true);
    Command::new("cluster")
        .about("A local cluster of real processes")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(dir)
        .subcommand(UpOptions::augment_args(Command::new("up")).about("Start one").long_about(None))
        .subcommand(
            Command::new("add")
                .about("Let a further server join a cluster of groups")
                .arg(protocol.help("The cluster's protocol")),
        )
        .subcommand(Command::new("down").about("Stop it"))
        .subcommand(
            Command::new(link_process::COMMAND)
                .about("Carry what goes between its sites, until it is stopped")
                .hide(true),
        )
        .subcommand(Command::new("status").about("Say how its servers do"))
        .subcommand(
            Command::new("kill").about("End a server as a crash does").arg(node().required(true)),
        )
        .subcommand(
            Command::new("restart")
                .about("Start a server again, or all that do not run, as after `down`")
                .arg(node()),
        )
}

/// Runs the command.
///
/// # Errors
/// It cannot be carried out.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let (name, matches) = matches.subcommand().expect("a subcommand is required");
    let dir = matches.get_one::<PathBuf>("dir").expect("it has a default");
    // Absolute, so that it can be told apart in a list of processes.
    let dir = std::path::absolute(dir)?;
    let node = || *matches.get_one::<usize>("node").expect("it is required");
    let printed = match name {
        "up" => up(&dir, &UpOptions::from_arg_matches(matches)?)?,
        "add" => add(&dir, matches.get_one::<String>("protocol").expect("it has a default"))?,
        "down" => format!("{} stopped", servers(LocalCluster::open(&dir)?.down()?)),
        link_process::COMMAND => {
            LinkProcess::carry(&dir, LocalCluster::open(&dir)?.addresses())?;
            String::new()
        }
        "status" => status(&LocalCluster::open(&dir)?),
        "kill" => {
            LocalCluster::open(&dir)?.kill(node())?;
            format!("server {} is dead", node())
        }
        "restart" => restart(&LocalCluster::open(&dir)?, matches.get_one("node").copied())?,
        _ => unreachable!("every subcommand is listed here"),
    };
    let _ = writeln!(stdout(), "{printed}"); // A reader that has gone away is no matter.
    Ok(0)
}

fn up(dir: &std::path::Path, options: &UpOptions) -> anyhow::Result<String> {
    options.batches.batching()?;
    let mut extra = further_keys(&options.extra)?;
    extra.extend(options.batches.lines());
    check_tree(&options.protocol, options.tree.tree.is_some())?;
    check_shards(&options.protocol, options.geography.shards.is_some())?;
    let given = (options.repositories, options.replicas);
    let (repositories, replicas) = options.geography.repositories(given, options.group)?;
    let (with_data, apart) =
        (usize::from(options.servers), usize::from(options.tree.validator_nodes));
    let nodes = with_data + apart;
    if let Some(tree) = options.tree.plan() {
        extra.extend(tree::keys(&tree, with_data, apart)?);
    }
    let geography = options.geography.chosen(Some(nodes))?;
    let given = |key: &String| {
        let name = key.split(' ').next();
        extra.iter().any(|line| line.split([' ', '=']).next() == name)
    };
    let of_sites = |it| geography::keys(it, nodes);
    let times = geography.iter().flat_map(of_sites).filter(|key| !given(key));
    let times: Vec<String> = times.collect();
    extra.extend(times);
    let plan = ClusterPlan {
        nodes,
        loops: usize::from(options.loops),
        repositories: repositories
            .unwrap_or((with_data * usize::from(options.loops)).max(replicas)),
        replicas,
        group: options.group,
        protocol: options.protocol.clone(),
        durable: !options.memory,
        extra,
        reached: None,
        troubled: false,
    };
    let cluster = match &geography {
        Some(geography) => LocalCluster::up_at(dir, &plan, geography)?,
        None => LocalCluster::up(dir, &plan)?,
    };
    if options.group > 1 {
        admin::wait_for_majorities(cluster.addresses(), GROUPS_WITHIN)?;
    }
    let sites = geography.map_or(String::new(), |geography| sites(&geography, nodes));
    Ok(format!("{} at {}{sites}", serve(nodes), cluster.addresses().join(", ")))
}

/// Which servers are where, and how long the ways between them are.
fn sites(geography: &Geography, nodes: usize) -> String {
    let names = geography.names();
    let at = |site: usize| {
        let here: Vec<_> = (site..nodes).step_by(names.len()).map(|it| it.to_string()).collect();
        format!("\n{:>12}: server {}", names[site], here.join(", "))
    };
    let all: String = (0..names.len()).map(at).collect();
    format!("{all}\nround trips, ms\n{}", geography.table().trim_end())
}

/// Starts a server again, or all that do not run.
fn restart(cluster: &LocalCluster, node: Option<usize>) -> anyhow::Result<String> {
    let down = |node: &usize| cluster.process(*node).is_none();
    let nodes: Vec<usize> =
        node.map_or_else(|| (0..cluster.nodes()).filter(down).collect(), |node| vec![node]);
    cluster.links().map_or(Ok(()), |links| links.start())?;
    for &node in &nodes {
        if cluster.process(node).is_some() {
            cluster.stop(node)?;
        }
        cluster.start(node)?;
    }
    cluster.wait_until_all_ready(&nodes)?;
    Ok(match nodes[..] {
        [] => "all servers serve already".to_owned(),
        [node] => format!("server {node} serves"),
        _ => serve(nodes.len()),
    })
}

fn servers(count: usize) -> String {
    if count == 1 { "1 server".to_owned() } else { format!("{count} servers") }
}

fn serve(count: usize) -> String {
    format!("{} serve{}", servers(count), if count == 1 { "s" } else { "" })
}

fn add(dir: &std::path::Path, protocol: &str) -> anyhow::Result<String> {
    let mut cluster = LocalCluster::open(dir)?;
    let others = cluster.addresses().to_vec();
    let admin = Admin::connect(others, protocol, cluster.secret()?)?;
    let node = cluster.add()?;
    admin.join(node as u32, &cluster.addresses()[node])?;
    cluster.start(node)?;
    cluster.wait_until_ready(node)?;
    Ok(format!("server {node} serves at {}, and holds no members yet", cluster.addresses()[node]))
}

fn status(cluster: &LocalCluster) -> String {
    let numbers = ["ready", "servers", "clients", "in-doubt", "messages-sent"];
    let header = ["server", "address", "process"].into_iter().chain(numbers);
    let mut table = table::new(header.map(str::to_owned).collect());
    for node in 0..cluster.nodes() {
        let process = cluster.process(node);
        let process = process.map_or("dead".to_owned(), |it| it.as_raw_nonzero().to_string());
        let visited = cluster.visit(node).ok();
        let number = |name: &str| {
            let number = visited.as_ref().and_then(|visited| visited.status_of(name));
            number.map_or("-".to_owned(), |number| number.to_string())
        };
        let start = [node.to_string(), cluster.addresses()[node].clone(), process];
        table.add_row(start.into_iter().chain(numbers.map(number)));
    }
    table.to_string()
}
