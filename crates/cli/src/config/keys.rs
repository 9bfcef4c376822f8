//! The keys of a server's configuration: one table, for the file, the environment and options.

use std::path::{Path, PathBuf};
use std::time::Duration;

use muesli_cluster::{ClusterId, read_secret};
use muesli_core::NodeId;

use super::values::{bytes, limit, millis, nanos, number, protocol, put, text_of, truth};
use super::{Config, PREFIX};

/// A key, and what it does.
pub struct Key {
    pub name: &'static str,
    pub value: &'static str,
    pub default: &'static str,
    pub help: &'static str,
    pub(super) set: fn(&mut Config, &str) -> Result<(), String>,
}

/// The most ends of transactions that can be kept for clients.
const UNSETTLED: u64 = 1 << 40;

/// All keys.
pub const KEYS: &[Key] = &[
    Key {
        name: "listen",
        value: "HOST:PORT",
        default: "127.0.0.1:7400",
        help: "Where to listen; port 0 takes any that is free",
        set: |config, text| text_of(text, &mut config.server.listen),
    },
    Key {
        name: "node",
        value: "N",
        default: "0",
        help: "Which of the servers this is, counted from 0",
        set: |config, text| put(&mut config.server.node, NodeId(number(text, 0, 4095)? as u32)),
    },
    Key {
        name: "servers",
        value: "HOST:PORT,…",
        default: "",
        help: "All servers, this one included, as others reach them; none: this one is alone",
        set: set_servers,
    },
    Key {
        name: "dial",
        value: "N=HOST:PORT,…",
        default: "",
        help: "Servers that this one reaches at another address than others do, as behind a proxy",
        set: set_dial,
    },
    Key {
        name: "secret_file",
        value: "FILE",
        default: "",
        help: "A file with the secret of the cluster, the same on all its servers: servers and \
               administrators prove that they know it; none: whoever can connect is believed",
        set: set_secret,
    },
    Key {
        name: "clients_need_secret",
        value: "true|false",
        default: "false",
        help: "Whether clients must prove the secret, too",
        set: |config, text| put(&mut config.server.clients_prove, truth(text)?),
    },
    Key {
        name: "trust_network",
        value: "true|false",
        default: "false",
        help: "Without a secret: listen where other machines can connect to, all the same",
        set: |config, text| put(&mut config.server.trusts_network, truth(text)?),
    },
    Key {
        name: "cluster",
        value: "N",
        default: "1",
        help: "The number of the cluster, the same on all its servers; others are not spoken to",
        set: |config, text| put(&mut config.server.cluster, ClusterId(number(text, 1, u64::MAX)?)),
    },
    Key {
        name: "loops",
        value: "N",
        default: "1",
        help: "How many loops the process runs, each on a thread, with a port counted up from the \
               server's and repositories of its own; the same on all servers",
        set: |config, text| put(&mut config.loops, number(text, 1, 64)? as usize),
    },
    Key {
        name: "procedure_threads",
        value: "N",
        default: "1",
        help: "How many threads of each loop run procedures that touch nothing in common, the \
               loop's own included, under granola and granola-passing; more than 1 pays where \
               procedures take long",
        set: |config, text| {
            put(&mut config.server.procedure_threads, number(text, 1, 256)? as usize)
        },
    },
    Key {
        name: "repositories",
        value: "N",
        default: "1",
        help: "How many repositories hold the keys, dealt to the servers' loops in turn",
        set: |config, text| put(&mut config.server.repositories, number(text, 1, 4096)? as usize),
    },
    Key {
        name: "replicas",
        value: "N",
        default: "1",
        help: "How many repositories hold each key",
        set: |config, text| put(&mut config.server.replicas, number(text, 1, 4096)? as usize),
    },
    Key {
        name: "spread",
        value: "N",
        default: "1",
        help: "How many partitions there are for each repository; more than one, so that moves of \
               partitions can share the keys out anew",
        set: |config, text| put(&mut config.server.spread, number(text, 1, 1024)? as usize),
    },
    Key {
        name: "group",
        value: "N",
        default: "1",
        help: "How many servers keep each repository: with 3, one of them may be lost at any \
               moment",
        set: |config, text| put(&mut config.server.group, number(text, 1, 9)? as u16),
    },
    Key {
        name: "group_tick_ms",
        value: "MS",
        default: "20",
        help: "The step of a group's time: a leader that is silent for about ten of them is \
               followed by another member",
        set: |config, text| millis(text, &mut config.server.group_tick),
    },
    Key {
        name: "group_disk_ms",
        value: "MS",
        default: "400",
        help: "A member of a group whose disk makes nothing stable for so long leaves leading to \
               another one; where it took longer than half of that lately, twice as long counts, \
              up to half as long again as this",
        set: |config, text| millis(text, &mut config.server.group_disk),
    },
    Key {
        name: "group_log_bytes",
        value: "BYTES",
        default: "1048576",
        help: "A member of a group keeps at least so many bytes of its log's decided end in memory",
        set: |config, text| {
            put(&mut config.server.group_limits.log_bytes_min, number(text, 0, u64::MAX)?)
        },
    },
    Key {
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
    Key {
        name: "group_piece_bytes",
        value: "BYTES",
        default: "262144",
        help: "Members fetch entries and state from each other in pieces of about so many bytes",
        set: |config, text| {
            put(&mut config.server.group_limits.piece_bytes, number(text, 1, 16 << 20)?)
        },
    },
    Key {
        name: "group_window_bytes",
        value: "BYTES",
        default: "16777216",
        help: "So many bytes are sent to a member that fetches ahead of what it has on its disk",
        set: |config, text| {
            put(&mut config.server.group_limits.window_bytes, number(text, 1, 1 << 30)?)
        },
    },
    Key {
        name: "group_undecided_bytes",
        value: "BYTES",
        default: "8388608",
        help: "A leader has at most so many bytes of its log undecided, or one entry; others wait",
        set: |config, text| {
            put(&mut config.server.group_limits.undecided_bytes_max, number(text, 1, 1 << 30)?)
        },
    },
    Key {
        name: "join",
        value: "true|false",
        default: "false",
        help: "Come into a cluster of groups that runs already and was told of this server by \
               `muesli admin join`",
        set: |config, text| put(&mut config.server.joins, truth(text)?),
    },
    Key {
        name: "accept_loss",
        value: "true|false",
        default: "false",
        help: "Where a majority of a group has lost its folders: go on with what the others know, \
               though what only the lost ones knew is gone then; else members there wait. Where \
               the folder is an older copy: go on with it; else the server is refused",
        set: |config, text| put(&mut config.server.accepts_loss, truth(text)?),
    },
    Key {
        name: "protocol",
        value: "NAME",
        default: "score",
        help: "The protocol that orders transactions",
        set: |config, text| put(&mut config.server.protocol, protocol(text)?),
    },
    Key {
        name: "masters",
        value: "N,…",
        default: "",
        help: "Which of the servers, as in 3 or 3,4, decide for the clients under sinfonia, and \
               hold no repositories; the same on all servers. None: each client decides for \
               itself",
        set: set_masters,
    },
    Key {
        name: "durability",
        value: "memory|log",
        default: "log",
        help: "What survives this process: nothing, or all that was promised",
        set: |config, text| match text {
            "memory" => put(&mut config.durable, false),
            "log" => put(&mut config.durable, true),
            _ => Err("memory or log is wanted".to_owned()),
        },
    },
    Key {
        name: "data_dir",
        value: "DIR",
        default: "./muesli-data",
        help: "Where the server keeps its files",
        set: |config, text| put(&mut config.data_dir, PathBuf::from(text)),
    },
    Key {
        name: "trouble_file",
        value: "FILE",
        default: "",
        help: "For tests: while this file holds `slow N`, `fail`, `hang` or `full`, syncs of the \
               log take N milliseconds longer, fail, do not end, or writes find no room; the \
               same file with the extension `clock` holds by how many milliseconds the clock \
               is wrong",
        set: |config, text| {
            put(&mut config.server.trouble, (!text.is_empty()).then(|| PathBuf::from(text)))
        },
    },
    Key {
        name: "log_segment_bytes",
        value: "BYTES",
        default: "67108864",
        help: "A file of the log that has grown to this is followed by another one",
        set: |config, text| {
            put(&mut config.server.log_segment_bytes, number(text, 1 << 16, 1 << 32)?)
        },
    },
    Key {
        name: "checkpoint_bytes",
        value: "BYTES",
        default: "268435456",
        help: "When the log has grown by this, and by the size of the last checkpoint, the next \
               one is written beside the running server, and the log cut before it; 0 never",
        set: |config, text| put(&mut config.server.checkpoint_bytes, number(text, 0, 1 << 40)?),
    },
    Key {
        name: "log_backlog_bytes",
        value: "BYTES",
        default: "67108864",
        help: "With more than this waiting for the disk, nothing is read from clients",
        set: |config, text| bytes(text, &mut config.server.log_backlog_bytes),
    },
    Key {
        name: "record_collected",
        value: "true|false",
        default: "false",
        help: "Remember the versions of collected deletions: clients that record histories need \
               them",
        set: |config, text| put(&mut config.server.settings.record_collected, truth(text)?),
    },
    Key {
        name: "key_bytes_max",
        value: "BYTES",
        default: "65536",
        help: "The longest key",
        set: |config, text| bytes(text, &mut config.server.settings.limits.key_bytes),
    },
    Key {
        name: "value_bytes_max",
        value: "BYTES",
        default: "16777216",
        help: "The longest value",
        set: |config, text| bytes(text, &mut config.server.settings.limits.value_bytes),
    },
    Key {
        name: "transaction_bytes_max",
        value: "BYTES",
        default: "100663296",
        help: "The largest transaction: keys and values written, keys read by an update, and 16 \
               bytes for each; 64 MiB fit under 2,097,152 keys",
        set: |config, text| bytes(text, &mut config.server.settings.limits.transaction_bytes),
    },
    Key {
        name: "answer_bytes_max",
        value: "BYTES",
        default: "1073741824",
        help: "The largest answer of one operation of a transaction that this server runs itself",
        set: |config, text| bytes(text, &mut config.server.settings.limits.answer_bytes),
    },
    Key {
        name: "page_rows_max",
        value: "N",
        default: "1000",
        help: "The most rows that a scan is answered with at a time; the next page is asked for",
        set: |config, text| bytes(text, &mut config.server.settings.limits.page_rows),
    },
    Key {
        name: "page_bytes_max",
        value: "BYTES",
        default: "262144",
        help: "A page of a scan, or of a read of many keys, ends when it has grown to this",
        set: |config, text| bytes(text, &mut config.server.settings.limits.page_bytes),
    },
    Key {
        name: "retry_after_ms",
        value: "MS",
        default: "20",
        help: "A request between servers that was not answered for so long is sent again",
        set: |config, text| nanos(text, &mut config.server.settings.retry_after),
    },
    Key {
        name: "lock_wait_ms",
        value: "MS",
        default: "2",
        help: "A commit waits so long for a lock before it is refused",
        set: |config, text| nanos(text, &mut config.server.settings.lock_wait),
    },
    Key {
        name: "in_doubt_after_ms",
        value: "MS",
        default: "100",
        help: "A transaction undecided for so long is finished without its client",
        set: |config, text| nanos(text, &mut config.server.settings.in_doubt_after),
    },
    Key {
        name: "snapshot_lease_ms",
        value: "MS",
        default: "10000",
        help: "A client silent for so long does not hold old versions back any more",
        set: |config, text| nanos(text, &mut config.server.settings.snapshot_lease),
    },
    Key {
        name: "snapshot_age_max_ms",
        value: "MS",
        default: "60000",
        help: "A transaction open for so long does not hold old versions back any more: its \
               snapshot is too old where they are gone",
        set: |config, text| nanos(text, &mut config.server.settings.snapshot_age_max),
    },
    Key {
        name: "old_version_bytes",
        value: "BYTES",
        default: "268435456",
        help: "Versions that were replaced and that open snapshots hold take at most about so much \
               memory; then the oldest snapshots are too old",
        set: |config, text| limit(text, &mut config.server.settings.memory.old_limit),
    },
    Key {
        name: "memory_bytes",
        value: "BYTES",
        default: "9223372036854775807",
        help: "Where keys and versions, and transactions under way, take more memory than this, \
               writes are refused, and nothing else: reads and deletes go on",
        set: |config, text| limit(text, &mut config.server.settings.memory.limit),
    },
    Key {
        name: "client_lease_ms",
        value: "MS",
        default: "600000",
        help: "Of a client silent for so long a server forgets what nobody can ask for any more",
        set: |config, text| nanos(text, &mut config.server.settings.client_lease),
    },
    Key {
        name: "unsettled_max",
        value: "N",
        default: "100000",
        help: "Of so many transactions of one client a repository keeps the end, until the client \
               says that it is known everywhere; further ones wait",
        set: |config, text| {
            put(&mut config.server.settings.unsettled_max, number(text, 1, UNSETTLED)? as usize)
        },
    },
    Key {
        name: "unsettled_total_max",
        value: "N",
        default: "1000000",
        help: "The same of all clients together, each counting as one more; at least \
               `unsettled_max`",
        set: |config, text| {
            let settings = &mut config.server.settings;
            put(&mut settings.unsettled_total_max, number(text, 1, UNSETTLED)? as usize)
        },
    },
    Key {
        name: "frame_bytes_max",
        value: "BYTES",
        default: "117440512",
        help: "The longest frame, at least 65,536 bytes more than the largest transaction; a \
               message that does not fit is not sent, and a connection that sends a longer one \
               is closed",
        set: |config, text| bytes(text, &mut config.server.network.frame_bytes_max),
    },
    Key {
        name: "connections_max",
        value: "N",
        default: "12000",
        help: "The most connections; further ones are told so and closed",
        set: |config, text| {
            put(&mut config.server.network.connections_max, number(text, 1, 1_000_000)? as usize)
        },
    },
    Key {
        name: "connections_reserved",
        value: "N",
        default: "64",
        help: "So many more are kept for servers and administrators",
        set: |config, text| {
            put(&mut config.server.network.connections_reserved, number(text, 1, 4096)? as usize)
        },
    },
    Key {
        name: "incoming_bytes_total",
        value: "BYTES",
        default: "268435456",
        help: "The most bytes of unfinished frames that are held for clients and strangers \
               together; further long frames are not read until there is room",
        set: |config, text| bytes(text, &mut config.server.network.incoming_bytes_total),
    },
    Key {
        name: "outgoing_bytes_high",
        value: "BYTES",
        default: "4194304",
        help: "With more than this waiting to be sent to a client, nothing is read from it",
        set: |config, text| bytes(text, &mut config.server.network.outgoing_bytes_high),
    },
    Key {
        name: "outgoing_bytes_max",
        value: "BYTES",
        default: "268435456",
        help: "With more than this waiting for one connection, it is closed",
        set: |config, text| bytes(text, &mut config.server.network.outgoing_bytes_max),
    },
    Key {
        name: "outgoing_bytes_total",
        value: "BYTES",
        default: "536870912",
        help: "With more than this waiting for all connections, nothing is read from clients",
        set: |config, text| bytes(text, &mut config.server.network.outgoing_bytes_total),
    },
    Key {
        name: "watch_for_us",
        value: "US",
        default: "50",
        help: "For so long after something came, a loop looks for more before it sleeps; 0: never",
        set: |config, text| {
            let micros = number(text, 0, 1_000_000)?;
            put(&mut config.server.network.watch_for, Duration::from_micros(micros))
        },
    },
    Key {
        name: "alive_every_ms",
        value: "MS",
        default: "1000",
        help: "A connection that was not written to for so long gets a sign of life",
        set: |config, text| millis(text, &mut config.server.network.alive_every),
    },
    Key {
        name: "dead_after_ms",
        value: "MS",
        default: "5000",
        help: "A connection that was silent for so long is closed",
        set: |config, text| millis(text, &mut config.server.network.dead_after),
    },
    Key {
        name: "hello_within_ms",
        value: "MS",
        default: "5000",
        help: "A connection must say who it is within this",
        set: |config, text| millis(text, &mut config.server.network.hello_within),
    },
    Key {
        name: "slow_after_ms",
        value: "MS",
        default: "10000",
        help: "A frame must be whole, and a crowded connection have room again, within this",
        set: |config, text| millis(text, &mut config.server.network.slow_after),
    },
    Key {
        name: "redial_first_ms",
        value: "MS",
        default: "20",
        help: "The first pause before a lost server is dialled again; it doubles",
        set: |config, text| millis(text, &mut config.server.network.redial_first),
    },
    Key {
        name: "redial_most_ms",
        value: "MS",
        default: "1000",
        help: "The longest such pause",
        set: |config, text| millis(text, &mut config.server.network.redial_most),
    },
];

impl Key {
    /// The environment variable.
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.to_uppercase())
    }

    /// The option, without its dashes.
    pub fn option(&self) -> String {
        self.name.replace('_', "-")
    }
}

fn set_dial(config: &mut Config, text: &str) -> Result<(), String> {
    let texts = text.split(',').map(str::trim).filter(|text| !text.is_empty());
    let one = |text: &str| {
        let (node, address) = text.split_once('=').ok_or("N=HOST:PORT is wanted")?;
        Ok((NodeId(number(node, 0, 4095)? as u32), address.to_owned()))
    };
    put(&mut config.server.dial, texts.map(one).collect::<Result<_, String>>()?)
}

fn set_servers(config: &mut Config, text: &str) -> Result<(), String> {
    let texts = text.split(',').map(str::trim).filter(|text| !text.is_empty());
    let servers = (0..).map(NodeId).zip(texts.map(str::to_owned));
    config.server.servers = servers.collect();
    Ok(())
}

fn set_secret(config: &mut Config, text: &str) -> Result<(), String> {
    config.server.secret = match text {
        "" => None,
        path => Some(read_secret(Path::new(path)).map_err(|error| error.to_string())?),
    };
    Ok(())
}

fn set_masters(config: &mut Config, text: &str) -> Result<(), String> {
    let texts = text.split(',').map(str::trim).filter(|text| !text.is_empty());
    let masters = texts.map(|text| Ok(NodeId(number(text, 0, 4095)? as u32)));
    let mut masters: Vec<_> = masters.collect::<Result<_, String>>()?;
    masters.sort_unstable();
    masters.dedup();
    put(&mut config.server.masters, masters)
}
