//! Which server this is, how it is reached, and what it runs on.

use std::path::Path;

use muesli_cluster::{ClusterId, read_secret};
use muesli_core::NodeId;
use muesli_resp::RespUsers;

use super::super::Config;
use super::super::values::{number, put, text_of, truth};
use super::ConfigKey;

pub(super) const SERVER: &[ConfigKey] = &[
    ConfigKey {
        name: "listen",
        value: "HOST:PORT",
        default: "127.0.0.1:7400",
        help: "Where to listen; port 0 takes any that is free",
        set: |config, text| {
            config.listens = true;
            text_of(text, &mut config.server.listen)
        },
    },
    ConfigKey {
        name: "resp",
        value: "HOST:PORT",
        default: "",
        help: "Where to listen for Redis clients: on the loopback interface, or, with `users`, on \
               any; none: nowhere. A lone server that is not told to `listen` serves these alone, \
               and runs their commands on its own loop",
        set: |config, text| text_of(text, &mut config.resp),
    },
    ConfigKey {
        name: "resp_clients_max",
        value: "N",
        default: "10000",
        help: "The most Redis clients at a time; further ones are told so and closed",
        set: |config, text| put(&mut config.resp_clients_max, number(text, 1, 1_000_000)? as usize),
    },
    ConfigKey {
        name: "users",
        value: "FILE",
        default: "",
        help: "A file with the users that Redis clients say they are, a line for each, as `muesli \
               user` prints it; none: they are not asked, and may do everything",
        set: set_users,
    },
    ConfigKey {
        name: "insecure",
        value: "true|false",
        default: "false",
        help: "Without users: listen for Redis clients where other machines can connect to, all \
               the same. With users: do not warn that passwords go over the network in the clear",
        set: |config, text| put(&mut config.insecure, truth(text)?),
    },
    ConfigKey {
        name: "metrics",
        value: "HOST:PORT",
        default: "",
        help: "Where to answer a monitoring system: /metrics in the text format of Prometheus, \
               /health and /ready; none: nowhere. Whoever reaches it sees the numbers",
        set: |config, text| text_of(text, &mut config.metrics),
    },
    ConfigKey {
        name: "node",
        value: "N",
        default: "0",
        help: "Which of the servers this is, counted from 0",
        set: |config, text| put(&mut config.server.node, NodeId(number(text, 0, 4095)? as u32)),
    },
    ConfigKey {
        name: "servers",
        value: "HOST:PORT,…",
        default: "",
        help: "All servers, this one included, as others reach them; none: this one is alone",
        set: set_servers,
    },
    ConfigKey {
        name: "dial",
        value: "N=HOST:PORT,…",
        default: "",
        help: "Servers that this one reaches at another address than others do, as behind a proxy",
        set: set_dial,
    },
    ConfigKey {
        name: "secret_file",
        value: "FILE",
        default: "",
        help: "A file with the secret of the cluster, the same on all its servers: servers and \
               administrators prove that they know it; none: whoever can connect is believed",
        set: set_secret,
    },
    ConfigKey {
        name: "clients_need_secret",
        value: "true|false",
        default: "false",
        help: "Whether clients must prove the secret, too",
        set: |config, text| put(&mut config.server.clients_prove, truth(text)?),
    },
    ConfigKey {
        name: "trust_network",
        value: "true|false",
        default: "false",
        help: "Without a secret: listen where other machines can connect to, all the same",
        set: |config, text| put(&mut config.server.trusts_network, truth(text)?),
    },
    ConfigKey {
        name: "cluster",
        value: "N",
        default: "1",
        help: "The number of the cluster, the same on all its servers; others are not spoken to",
        set: |config, text| put(&mut config.server.cluster, ClusterId(number(text, 1, u64::MAX)?)),
    },
    ConfigKey {
        name: "loops",
        value: "N",
        default: "1",
        help: "How many loops the process runs, each on a thread, with a port counted up from the \
               server's and repositories of its own; the same on all servers",
        set: |config, text| put(&mut config.loops, number(text, 1, 64)? as usize),
    },
    ConfigKey {
        name: "procedure_threads",
        value: "N",
        default: "1",
        help: "How many threads of each loop run procedures that touch nothing in common, the \
               loop's own included, under granola, granola-passing and certified protocols; more \
               than 1 pays where procedures take long",
        set: |config, text| {
            put(&mut config.server.procedure_threads, number(text, 1, 256)? as usize)
        },
    },
];

fn set_servers(config: &mut Config, text: &str) -> Result<(), String> {
    let texts = text.split(',').map(str::trim).filter(|text| !text.is_empty());
    let servers = (0..).map(NodeId).zip(texts.map(str::to_owned));
    config.server.servers = servers.collect();
    Ok(())
}

fn set_dial(config: &mut Config, text: &str) -> Result<(), String> {
    let texts = text.split(',').map(str::trim).filter(|text| !text.is_empty());
    let one = |text: &str| {
        let (node, address) = text.split_once('=').ok_or("N=HOST:PORT is wanted")?;
        Ok((NodeId(number(node, 0, 4095)? as u32), address.to_owned()))
    };
    put(&mut config.server.dial, texts.map(one).collect::<Result<_, String>>()?)
}

fn set_users(config: &mut Config, text: &str) -> Result<(), String> {
    config.users = match text {
        "" => None,
        path => Some(RespUsers::read(Path::new(path)).map_err(|error| error.to_string())?),
    };
    Ok(())
}

fn set_secret(config: &mut Config, text: &str) -> Result<(), String> {
    config.server.secret = match text {
        "" => None,
        path => Some(read_secret(Path::new(path)).map_err(|error| error.to_string())?),
    };
    Ok(())
}
