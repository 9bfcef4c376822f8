//! The database that a command is about.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use muesli::{Connect, Db, Options};
use muesli_workloads::available;

use super::folders::{stored, stored_or_new};
use crate::names;
use crate::reach;

/// Which database.
#[derive(Args, Clone, Debug)]
#[group(skip)]
pub struct ChosenDatabase {
    #[command(flatten)]
    pub place: DatabasePlace,
    /// The protocol of the servers
    #[arg(long, value_name = "NAME", default_value = "score", value_parser = names::protocols())]
    pub protocol: String,
    /// The file of the cluster's secret, where its servers ask clients for it
    #[arg(long, value_name = "FILE", requires = "connect")]
    pub secret_file: Option<PathBuf>,
}

/// Where it is: one of these.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub struct DatabasePlace {
    /// The folder of an embedded database, or the `data_dir` of a lone server that has stopped
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Servers that run, with commas between
    #[arg(long, value_name = "ADDRESS")]
    pub connect: Option<String>,
}

impl ChosenDatabase {
    /// The database, to be read.
    ///
    /// # Errors
    /// It cannot be opened, or no server answers.
    pub fn open_to_read(&self) -> anyhow::Result<Db> {
        match &self.place.folder {
            Some(folder) => Ok(Db::open(stored(folder, true)?)?),
            None => self.connect(),
        }
    }

    /// The database, to be written: made in a folder where there is none, with so many
    /// repositories.
    ///
    /// # Errors
    /// It cannot be opened, or no server answers.
    pub fn open_to_write(&self, repositories: usize) -> anyhow::Result<Db> {
        let Some(folder) = &self.place.folder else { return self.connect() };
        let (protocol, procedures) = (self.protocol.clone(), available::procedures());
        let new = Options { protocol, repositories, procedures, ..Options::default() };
        Ok(Db::open(stored_or_new(folder, new, false)?)?)
    }

    /// The database on servers.
    ///
    /// # Errors
    /// None of them answers.
    pub fn connect(&self) -> anyhow::Result<Db> {
        let Some(addresses) = &self.place.connect else {
            bail!("give a FOLDER or --connect ADDRESS")
        };
        let addresses = reach::addresses(addresses);
        reach::first(&addresses)?;
        let (protocol, secret) = (self.protocol.clone(), self.secret_file.as_deref());
        let (secret, procedures) = (crate::options::secret(secret)?, available::procedures());
        let connect = Connect { addresses, protocol, secret, procedures, ..Connect::default() };
        Ok(Db::connect_with(connect)?)
    }
}
