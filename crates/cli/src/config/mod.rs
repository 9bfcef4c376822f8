//! The configuration of a server.
//!
//! A key is looked for in three places, and the last one counts: the file given by `--config`
//! (TOML, `key = value`), the environment (`MUESLI_KEY`), and the options (`--key value`). What a
//! key means is said once, here, and shown by `muesli start --help`.

pub mod keys;
#[cfg(test)]
mod page_of_limits;
pub mod tree_form;
mod values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use muesli_cluster::{Durability, ServerOptions};
use muesli_core::catalog::{TreeForm, TreePlan};
use muesli_core::{BatchLinks, Batching, CommitBatch, LinkBatch, Nanos};
use muesli_placement::online::MoveTerms;
use muesli_resp::RespUsers;

pub use keys::ConfigKey;

use crate::names;

/// What the variables of the environment begin with.
pub const PREFIX: &str = "MUESLI_";

/// How a server is configured.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub server: ServerOptions,
    /// Whether data survive the process.
    pub durable: bool,
    /// Where data, if they are durable, and the server's own files are.
    pub data_dir: PathBuf,
    /// How many loops the process runs.
    pub loops: usize,
    /// The tree above the servers, and how many validators each inner node has.
    pub tree: Option<TreeForm>,
    pub validators: u16,
    /// How messages leave.
    pub batch: ConfigBatch,
    /// Whether it was told where to listen.
    pub listens: bool,
    /// Where Redis clients are listened for; empty: nowhere.
    pub resp: String,
    /// Where a monitoring system asks for numbers; empty: nowhere.
    pub metrics: String,
    /// The most Redis clients at a time.
    pub resp_clients_max: usize,
    /// Whom of them to serve; `None`: everybody.
    pub users: Option<RespUsers>,
    /// Redis clients of other machines may connect where there are no users.
    pub insecure: bool,
    /// Whether partitions follow their use.
    pub follow: FollowConfig,
}

/// How partitions follow their use, as the keys say it.
#[derive(Clone, Copy, Debug, Default)]
pub struct FollowConfig {
    /// How long a period is; zero: they do not.
    pub every: Duration,
    /// The most rows that move in a period, and the most milliseconds that it may take.
    pub rows_most: u64,
    pub ms_most: u64,
}

/// How messages leave, as its keys say it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConfigBatch {
    pub size: usize,
    pub timeout: Nanos,
    pub links: BatchLinks,
    pub commits: usize,
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
        for key in keys::all() {
            config.set(key, key.default, "the default")?;
        }
        config.listens = false;
        if let Some(path) = file {
            let text = std::fs::read_to_string(path);
            let text = text.with_context(|| format!("cannot read {}", path.display()))?;
            config.read_text(&text, &path.display().to_string())?;
        }
        for key in keys::all() {
            if let Some(value) = variable(&key.variable()) {
                config.set(key, &value, &key.variable())?;
            }
            if let Some(value) = options.get(key.name) {
                config.set(key, value, &format!("--{}", key.option()))?;
            }
        }
        config.server.loops = config.loops;
        config.check_follow()?;
        let validators = config.validators;
        if config.tree.is_none() && validators > 1 {
            bail!("`validators` = {validators} is of a `tree`, and there is none");
        }
        config.server.tree = config.tree.clone().map(|form| TreePlan { form, validators });
        let ConfigBatch { size, timeout, links, commits } = config.batch;
        let batching = Batching::over(links, LinkBatch::new(size, timeout)?);
        config.server.settings.batching = batching.with_commits(CommitBatch::new(commits)?);
        if config.durable {
            config.server.durability = Durability::Log(config.data_dir.clone());
        }
        Ok(config)
    }

    /// Looks whether partitions can follow their use, if they are to.
    fn check_follow(&self) -> anyhow::Result<()> {
        if self.follow.every.is_zero() {
            return Ok(());
        }
        if self.server.replicas > 1 {
            let replicas = self.server.replicas;
            bail!("`follow_every_s` is for one copy of each key, and `replicas` = {replicas}");
        }
        if self.server.sample_one_in == 0 {
            bail!("`follow_every_s` needs samples of transactions, and `sample_one_in` = 0");
        }
        let (kept, least) = (self.server.samples_kept, MoveTerms::default().samples_least);
        if kept < least {
            bail!("`follow_every_s` plans by {least} samples or more, and `samples_kept` = {kept}");
        }
        Ok(())
    }

    /// Where its data are, in words.
    pub fn data(&self) -> String {
        match &self.server.durability {
            Durability::Memory => "data live in memory only and end with this process".to_owned(),
            Durability::Log(dir) => format!("data are in {}", dir.display()),
        }
    }

    /// Refuses variables of the environment that look like keys and are none.
    ///
    /// # Errors
    /// There is one.
    pub fn check_variables(names: impl Iterator<Item = String>) -> anyhow::Result<()> {
        for name in names.filter(|name| name.starts_with(PREFIX)) {
            if keys::all().all(|key| key.variable() != name) {
                let variables: Vec<_> = keys::all().map(ConfigKey::variable).collect();
                let meant = meant(&name, variables.iter().map(String::as_str));
                bail!("there is no variable `{name}`{meant}");
            }
        }
        Ok(())
    }

    pub(crate) fn read_text(&mut self, text: &str, path: &str) -> anyhow::Result<()> {
        let table: toml::Table = text.parse().with_context(|| format!("{path} is no TOML"))?;
        for (name, value) in table {
            let Some(key) = keys::all().find(|key| key.name == name) else {
                let meant = meant(&name, keys::all().map(|key| key.name));
                bail!("{path}: there is no key `{name}`{meant}");
            };
            let value = plain(&value)
                .with_context(|| format!("{path}: `{name}` takes one value, not a table"))?;
            self.set(key, &value, path)?;
        }
        Ok(())
    }

    fn set(&mut self, key: &ConfigKey, value: &str, place: &str) -> anyhow::Result<()> {
        let set = (key.set)(self, value);
        set.map_err(|why| anyhow::anyhow!("{place}: `{}` = `{value}`: {why}", key.name))
    }
}

/// The name that is spelt most like `name`, as a question; where none is, where all are listed.
fn meant<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    match names::nearest(name, names) {
        None => "; `muesli start --help` lists all".to_owned(),
        meant => names::question(meant),
    }
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use muesli_core::NodeId;

    use super::*;

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
        let defaults = read("", &[], &[]).unwrap().server;
        let meant = ServerOptions::default();
        assert_eq!(
            (defaults.listen, defaults.node, defaults.cluster),
            (meant.listen, meant.node, meant.cluster)
        );
        assert_eq!(
            (defaults.repositories, defaults.replicas),
            (meant.repositories, meant.replicas)
        );
        assert_eq!(defaults.procedure_threads, meant.procedure_threads);
        assert_eq!(
            (defaults.partitions_per_repository, defaults.group),
            (meant.partitions_per_repository, meant.group)
        );
        assert_eq!((defaults.settings, defaults.network), (meant.settings, meant.network));
        assert_eq!(defaults.checkpoint_bytes, meant.checkpoint_bytes);
        assert_eq!((defaults.dial, defaults.trouble), (meant.dial, meant.trouble));
        assert_eq!(
            (defaults.log_segment_bytes, defaults.log_backlog_bytes),
            (meant.log_segment_bytes, meant.log_backlog_bytes)
        );
        assert_eq!((defaults.protocol, defaults.servers), (meant.protocol, meant.servers));
        assert_eq!(defaults.masters, meant.masters);
        assert_eq!(
            (defaults.tree, defaults.validator_servers),
            (meant.tree, meant.validator_servers)
        );
    }

    /// The page for operators has a row for each key, as the command's help says it.
    #[test]
    fn the_page_of_keys_is_complete() {
        let page = include_str!("../../../../docs/running/configuration.md");
        let rows = keys::all().map(|key| {
            let default = if key.default.is_empty() { "none" } else { key.default };
            format!(
                "| `{}` | {} | {default} | {} |",
                key.name,
                key.value.replace('|', " or "),
                key.help
            )
        });
        let missing: Vec<_> = rows.filter(|row| !page.contains(row.as_str())).collect();
        assert!(missing.is_empty(), "configuration.md lacks:\n{}", missing.join("\n"));
    }

    #[test]
    fn options_come_before_the_environment_before_the_file() {
        let file = "listen = 'f'\nrepositories = 3\nservers = ['a:1', 'b:2']\nreplicas = 2";
        let variables = [("MUESLI_LISTEN", "e"), ("MUESLI_REPOSITORIES", "4")];
        let config = read(file, &variables, &[("listen", "o")]).unwrap().server;
        assert_eq!((&*config.listen, config.repositories, config.replicas), ("o", 4, 2));
        let kept = read("unsettled_max = 7\nunsettled_total_max = 70", &[], &[]).unwrap().server;
        let kept = (kept.settings.unsettled_max, kept.settings.unsettled_total_max);
        assert_eq!(kept, (7, 70));
        let file = "batch = 10\nbatch_timeout_us = 300\nbatch_links = 'up'\n\
                    commits_per_command = 7";
        let batched = read(file, &[], &[]);
        let batch = LinkBatch::new(10, Nanos::from_micros(300)).unwrap();
        let expected = Batching::over(BatchLinks::Up, batch);
        let expected = expected.with_commits(CommitBatch::new(7).unwrap());
        assert_eq!(batched.unwrap().server.settings.batching, expected);
        let sites = read("sites = 'east=0,1 west=2'", &[], &[]).unwrap().server.sites;
        assert_eq!(sites.of(NodeId(1)), Some("east"));
        let shards = read("shards = 'east,west west,east'", &[], &[]).unwrap().server.shards;
        assert_eq!(shards.map(|it| (it.repositories(), it.replicas())), Some((4, 2)));
        assert!(read("shards = 'east west,east'", &[], &[]).is_err());
        for wrong in ["east", "=1", "a=0 b=0", "a=x"] {
            assert!(read(&format!("sites = '{wrong}'"), &[], &[]).is_err(), "{wrong}");
        }
        assert_eq!(read("masters = [3, 1, 3]", &[], &[]).unwrap().server.masters.len(), 2);
        let file = "validators = 2\ntree = '2x2'\nvalidator_servers = [5, 4]";
        let tree = read(file, &[], &[]).unwrap().server;
        assert_eq!(tree.validator_servers, [4, 5].map(NodeId));
        let tree = tree.tree.unwrap();
        assert_eq!((tree.to_string(), tree.validators), ("2x2".to_owned(), 2));
        let servers = [(NodeId(0), "a:1".to_owned()), (NodeId(1), "b:2".to_owned())];
        assert_eq!(config.servers, servers);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |file: &str| format!("{:#}", read(file, &[], &[]).unwrap_err());
        let unknown = error("alive_evry_ms = 5");
        assert!(unknown.contains("`alive_evry_ms`") && unknown.contains("`alive_every_ms`"));
        assert!(error("replicas = 0").contains("1 to 4096"));
        assert!(error("unsettled_total_max = 0").contains("1 to 1099511627776"));
        assert!(error("procedure_threads = 257").contains("1 to 256"));
        assert!(error("batch = 1025").contains("1 to 1024"));
        assert!(error("batch_timeout_us = 0").contains("1 to 1000000"));
        assert!(error("batch_links = 'none'").contains("all, tree (up and down), up or down"));
        assert!(error("masters = '1,x'").contains("0 to 4095"));
        assert!(error("record_collected = 3").contains("true or false"));
        assert!(error("[listen]\nx = 1").contains("not a table"));
        assert!(error("tree = '2y2'").contains("`2y2` is no shape of a tree"));
        let follow = |key: &str| error(&format!("follow_every_s = 9\n{key}"));
        assert!(follow("replicas = 2").contains("one copy of each key"));
        assert!(follow("sample_one_in = 0").contains("needs samples"));
        assert!(follow("samples_kept = 10").contains("200 samples or more"));
        assert!(error("follow_every_s = -1").contains("0 to 86400"));
        assert!(error("validators = 2").contains("is of a `tree`, and there is none"));
        assert!(error("listen = ").contains("is no TOML"));
        let names = |name: &str| ["HOME", "MUESLI_LISTEN", name].map(str::to_owned).into_iter();
        let unknown = Config::check_variables(names("MUESLI_DATADIR")).unwrap_err().to_string();
        assert!(unknown.contains("`MUESLI_DATADIR`; did you mean `MUESLI_DATA_DIR`?"));
        assert!(Config::check_variables(names("MUESLI_NODE")).is_ok());
    }
}
