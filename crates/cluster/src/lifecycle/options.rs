//! How a server is started.

use std::path::PathBuf;
use std::time::Duration;

use muesli_core::catalog::{ShardSites, Sites, TreePlan};
use muesli_core::{NodeId, Secret, Settings};
use muesli_group::Limits;

use crate::network::Network;
use crate::wire::ids::ClusterId;

/// How a server is started.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The cluster it belongs to; every server is given the same number, and not zero.
    pub cluster: ClusterId,
    /// Its name, one of those of `servers`.
    pub node: NodeId,
    /// Where it listens, as `host:port`; port 0 takes any that is free.
    pub listen: String,
    /// All servers of the cluster with the addresses at which others reach them. Empty: this one
    /// is alone, and reached where it listens.
    pub servers: Vec<(NodeId, String)>,
    /// Servers that this one reaches at another address than others do, as behind a proxy.
    pub dial: Vec<(NodeId, String)>,
    /// How many repositories hold the keys, dealt to the servers in turn.
    pub repositories: usize,
    /// How many repositories hold each key.
    pub replicas: usize,
    /// How many partitions there are for each repository.
    pub partitions_per_repository: usize,
    /// How many servers keep each repository; 1 is no group.
    pub group: u16,
    /// Of one transaction in so many the partitions that it touches are kept, for those who decide
    /// where partitions are to be; 0: of none.
    pub sample_one_in: u32,
    /// So many of these samples are kept, the newest ones.
    pub samples_kept: usize,
    /// The time between two ticks of a group's consensus: a leader that is silent for about ten is
    /// followed by another.
    pub group_tick: Duration,
    /// A member of a group whose disk makes nothing stable for so long leaves leading to others.
    pub group_disk: Duration,
    /// How much members of groups keep and send at a time.
    pub group_limits: Limits,
    /// How many loops each process of the cluster runs.
    pub loops: usize,
    /// How many threads of each loop run procedures that have nothing to do with each other, its
    /// own included, under protocols that can; with 1 they are run one after the other.
    pub procedure_threads: usize,
    /// Whether it comes into a cluster of groups that runs already: it holds no members at first.
    pub joins: bool,
    /// Whether members that lost their memory go on with what the others know where a majority of
    /// their group has lost it: what only those knew is lost then.
    pub accepts_loss: bool,
    /// Which of the servers decide for the clients instead of each for itself, under protocols that
    /// have masters: `sinfonia`. They hold no repositories.
    pub masters: Vec<NodeId>,
    /// Where servers are, as far as that is said: under sharded protocols those of the site of who
    /// asks are asked before others.
    pub sites: Sites,
    /// Under sharded protocols, the sites of each shard's members; none: repositories are dealt to
    /// servers in turn.
    pub shards: Option<ShardSites>,
    /// The tree that votes climb, above the servers that hold repositories, under protocols that go
    /// by one: `hierarchy`, `hierarchy-locking`.
    pub tree: Option<TreePlan>,
    /// Which of the servers have validators of the tree and hold no repositories. None: validators
    /// live where repositories do.
    pub validator_servers: Vec<NodeId>,
    /// The protocol, by name; `muesli_registry::names` lists them.
    pub protocol: String,
    /// Size limits and times of the protocol; its seed, whether it logs and who runs its
    /// procedures are set at the start.
    pub settings: Settings,
    /// What survives the process.
    pub durability: Durability,
    /// A file of the log that has grown to so many bytes is followed by another one.
    pub log_segment_bytes: u64,
    /// When the log has grown by so many bytes of records, a checkpoint begins; 0: never.
    pub checkpoint_bytes: u64,
    /// With more bytes than this waiting for the disk, nothing is read from clients.
    pub log_backlog_bytes: usize,
    /// A file that says how the log's disk is to misbehave, for tests; see
    /// [`crate::storage::trouble`].
    pub trouble: Option<PathBuf>,
    /// The cluster's secret, the same on all its servers: servers and administrators prove that
    /// they know it. Without one everybody is believed who can reach this server.
    pub secret: Option<Secret>,
    /// Whether clients have to prove the secret, too.
    pub clients_prove: bool,
    /// Without a secret: whether to listen where other machines can connect to, all the same.
    pub trusts_network: bool,
    /// Where what those who look after it should know is told, a line each.
    pub notice: fn(&str),
    /// Limits and times of connections.
    pub network: Network,
}

/// What survives a server's process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Nothing.
    #[default]
    Memory,
    /// Everything that was promised, in a log in this folder.
    Log(PathBuf),
}

impl Default for ServerOptions {
    /// A lone server that listens on the loopback interface.
    fn default() -> ServerOptions {
        ServerOptions {
            cluster: ClusterId(1),
            node: NodeId(0),
            listen: "127.0.0.1:7400".to_owned(),
            servers: Vec::new(),
            dial: Vec::new(),
            repositories: 1,
            replicas: 1,
            partitions_per_repository: 1,
            sample_one_in: 16,
            samples_kept: 16_384,
            group: 1,
            group_tick: Duration::from_millis(20),
            group_disk: Duration::from_millis(400),
            group_limits: Limits::default(),
            loops: 1,
            procedure_threads: 1,
            joins: false,
            accepts_loss: false,
            masters: Vec::new(),
            sites: Sites::default(),
            shards: None,
            tree: None,
            validator_servers: Vec::new(),
            protocol: "score".to_owned(),
            settings: Settings::default(),
            durability: Durability::Memory,
            log_segment_bytes: 64 << 20,
            checkpoint_bytes: 256 << 20,
            log_backlog_bytes: 64 << 20,
            trouble: None,
            secret: None,
            clients_prove: false,
            trusts_network: false,
            notice: |_| {},
            network: Network::default(),
        }
    }
}
