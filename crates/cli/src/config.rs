//! The configuration of a server: one table of keys, for the file, the environment and options.
//!
//! A key is looked for in three places, and the last one counts: the file given by `--config`
//! (TOML, `key = value`), the environment (`MUESLI_KEY`), and the options (`--key value`). What a
//! key means is said once, here, and shown by `muesli start --help`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use muesli_cluster::{ClusterId, Durability, ServerOptions};
use muesli_core::NodeId;

/// How a server is configured.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub server: ServerOptions,
    /// Whether data survive the process.
    pub durable: bool,
    /// Where data, if they are durable, and the server's own files are.
    pub data_dir: PathBuf,
}

/// A key, and what it does.
pub struct Key {
    pub name: &'static str,
    pub value: &'static str,
    pub default: &'static str,
    pub help: &'static str,
    set: fn(&mut Config, &str) -> Result<(), String>,
}

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
        name: "cluster",
        value: "N",
        default: "1",
        help: "The number of the cluster, the same on all its servers; others are not spoken to",
        set: |config, text| put(&mut config.server.cluster, ClusterId(number(text, 1, u64::MAX)?)),
    },
    Key {
        name: "repositories",
        value: "N",
        default: "1",
        help: "How many repositories hold the keys, dealt to the servers in turn",
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
        name: "protocol",
        value: "NAME",
        default: "score",
        help: "The protocol that orders transactions",
        set: |config, text| text_of(text, &mut config.server.protocol),
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
        name: "keep_tombstones",
        value: "true|false",
        default: "false",
        help: "Keep deleted keys known for ever: histories of deletions need it",
        set: |config, text| put(&mut config.server.keep_tombstones, truth(text)?),
    },
    Key {
        name: "key_bytes_max",
        value: "BYTES",
        default: "65536",
        help: "The longest key",
        set: |config, text| bytes(text, &mut config.server.limits.key_bytes),
    },
    Key {
        name: "value_bytes_max",
        value: "BYTES",
        default: "16777216",
        help: "The longest value",
        set: |config, text| bytes(text, &mut config.server.limits.value_bytes),
    },
    Key {
        name: "transaction_bytes_max",
        value: "BYTES",
        default: "67108864",
        help: "The most that a transaction may write, keys and values together",
        set: |config, text| bytes(text, &mut config.server.limits.transaction_bytes),
    },
    Key {
        name: "frame_bytes_max",
        value: "BYTES",
        default: "83886080",
        help: "The longest frame; a message that does not fit is not sent, and a connection that \
               sends a longer one is closed",
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
        format!("MUESLI_{}", self.name.to_uppercase())
    }

    /// The option, without its dashes.
    pub fn option(&self) -> String {
        self.name.replace('_', "-")
    }
}

impl Config {
    /// The configuration from a file, if one is given, the environment, and options by key.
    ///
    /// # Errors
    /// A key that there is not, or a value that it does not take.
    pub fn read(
        file: Option<&Path>,
        variable: impl Fn(&str) -> Option<String>,
        options: &BTreeMap<&str, String>,
    ) -> anyhow::Result<Config> {
        let mut config = Config::default();
        for key in KEYS {
            config.set(key, key.default, "the default")?;
        }
        if let Some(path) = file {
            let text = std::fs::read_to_string(path);
            let text = text.with_context(|| format!("cannot read {}", path.display()))?;
            config.read_file(&text, &path.display().to_string())?;
        }
        for key in KEYS {
            if let Some(value) = variable(&key.variable()) {
                config.set(key, &value, &key.variable())?;
            }
            if let Some(value) = options.get(key.name) {
                config.set(key, value, &format!("--{}", key.option()))?;
            }
        }
        if config.durable {
            config.server.durability = Durability::Log(config.data_dir.clone());
        }
        Ok(config)
    }

    fn read_file(&mut self, text: &str, path: &str) -> anyhow::Result<()> {
        let table: toml::Table = text.parse().with_context(|| format!("{path} is no TOML"))?;
        for (name, value) in table {
            let Some(key) = KEYS.iter().find(|key| key.name == name) else {
                bail!("{path}: there is no key `{name}`; the nearest is `{}`", nearest(&name));
            };
            let value = plain(&value)
                .with_context(|| format!("{path}: `{name}` takes one value, not a table"))?;
            self.set(key, &value, path)?;
        }
        Ok(())
    }

    fn set(&mut self, key: &Key, value: &str, place: &str) -> anyhow::Result<()> {
        let set = (key.set)(self, value);
        set.map_err(|why| anyhow::anyhow!("{place}: `{}` = `{value}`: {why}", key.name))
    }
}

/// The key that is spelt most like `name`.
fn nearest(name: &str) -> &'static str {
    let alike = |key: &&Key| (strsim::jaro_winkler(key.name, name) * 1e6) as u64;
    KEYS.iter().max_by_key(alike).map_or("", |key| key.name)
}

/// A value of a file as the text that the environment would hold.
fn plain(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Array(values) => {
            let texts: Option<Vec<_>> = values.iter().map(plain).collect();
            texts.map(|texts| texts.join(","))
        }
        toml::Value::Table(_) => None,
        other => Some(other.to_string()),
    }
}

fn set_servers(config: &mut Config, text: &str) -> Result<(), String> {
    let texts = text.split(',').map(str::trim).filter(|text| !text.is_empty());
    let servers = (0..).map(NodeId).zip(texts.map(str::to_owned));
    config.server.servers = servers.collect();
    Ok(())
}

fn put<T>(place: &mut T, value: T) -> Result<(), String> {
    *place = value;
    Ok(())
}

fn text_of(text: &str, place: &mut String) -> Result<(), String> {
    text.clone_into(place);
    Ok(())
}

fn number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let told = || format!("a number from {least} to {most} is wanted");
    let number: u64 = text.replace('_', "").parse().map_err(|_| told())?;
    if (least..=most).contains(&number) { Ok(number) } else { Err(told()) }
}

fn bytes(text: &str, place: &mut usize) -> Result<(), String> {
    *place = number(text, 1, 1 << 31)? as usize;
    Ok(())
}

fn millis(text: &str, place: &mut Duration) -> Result<(), String> {
    *place = Duration::from_millis(number(text, 1, 86_400_000)?);
    Ok(())
}

fn truth(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "true or false is wanted".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(
        file: &str,
        variables: &[(&str, &str)],
        options: &[(&'static str, &str)],
    ) -> anyhow::Result<Config> {
        let mut path = tempfile::NamedTempFile::new().unwrap();
        path.write_all(file.as_bytes()).unwrap();
        let variable = |name: &str| {
            let found = variables.iter().find(|(it, _)| *it == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let options = options.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        Config::read(Some(path.path()), variable, &options)
    }

    #[test]
    fn the_defaults_said_are_the_defaults() {
        let said = read("", &[], &[]).unwrap().server;
        let meant = ServerOptions::default();
        assert_eq!(
            (said.listen, said.node, said.cluster),
            (meant.listen, meant.node, meant.cluster)
        );
        assert_eq!((said.repositories, said.replicas), (meant.repositories, meant.replicas));
        assert_eq!((said.limits, said.network), (meant.limits, meant.network));
        assert_eq!((said.protocol, said.servers), (meant.protocol, meant.servers));
    }

    #[test]
    fn options_come_before_the_environment_before_the_file() {
        let file = "listen = 'f'\nrepositories = 3\nservers = ['a:1', 'b:2']\nreplicas = 2";
        let variables = [("MUESLI_LISTEN", "e"), ("MUESLI_REPOSITORIES", "4")];
        let config = read(file, &variables, &[("listen", "o")]).unwrap().server;
        assert_eq!((&*config.listen, config.repositories, config.replicas), ("o", 4, 2));
        let servers = [(NodeId(0), "a:1".to_owned()), (NodeId(1), "b:2".to_owned())];
        assert_eq!(config.servers, servers);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |file: &str| format!("{:#}", read(file, &[], &[]).unwrap_err());
        let unknown = error("alive_evry_ms = 5");
        assert!(unknown.contains("`alive_evry_ms`") && unknown.contains("`alive_every_ms`"));
        assert!(error("replicas = 0").contains("1 to 4096"));
        assert!(error("keep_tombstones = 3").contains("true or false"));
        assert!(error("[listen]\nx = 1").contains("not a table"));
        assert!(error("listen = ").contains("is no TOML"));
    }
}
