//! Databases are opened, and clusters are connected to.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use muesli::{
    Connect, Db, Durable, Index, Limits, Options, Retry, Secret, SpaceOptions, SyncPolicy,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::database::{Core, duration};
use crate::errors::{misuse, raised};

/// What all databases are opened with.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct CommonOptions {
    protocol: Option<String>,
    record: Option<PathBuf>,
    transaction_timeout: f64,
    attempts: u32,
    key_bytes: Option<usize>,
    value_bytes: Option<usize>,
    transaction_bytes: Option<usize>,
}

impl CommonOptions {
    fn limits(&self) -> Limits {
        let limits = Limits::default();
        Limits {
            key_bytes: self.key_bytes.unwrap_or(limits.key_bytes),
            value_bytes: self.value_bytes.unwrap_or(limits.value_bytes),
            transaction_bytes: self.transaction_bytes.unwrap_or(limits.transaction_bytes),
            ..limits
        }
    }

    fn retry(&self) -> Retry {
        Retry { attempts: self.attempts.max(1), ..Retry::default() }
    }

    fn timeout(&self) -> PyResult<Duration> {
        duration(self.transaction_timeout)
    }
}

/// Opens a database in this process, in memory or in a folder.
#[pyfunction]
#[pyo3(signature = (path, shape, sync, read_only, common))]
pub fn open_database(
    py: Python<'_>,
    path: Option<PathBuf>,
    shape: (Option<usize>, Option<usize>, Option<usize>),
    sync: &Bound<'_, PyAny>,
    read_only: bool,
    common: CommonOptions,
) -> PyResult<Core> {
    let (sync, timeout) = (sync_policy(sync)?, common.timeout()?);
    let stored = match &path {
        Some(path) if read_only || !is_new(path) => Some(Options::stored(path).map_err(raised)?),
        Some(_) | None => None,
    };
    let is_stored = stored.is_some();
    let mut options = stored.unwrap_or_default();
    let (repositories, replicas, loops) = shape;
    set("repositories", &mut options.repositories, repositories, is_stored)?;
    set("replicas", &mut options.replicas, replicas, is_stored)?;
    set("loops", &mut options.loops, loops, is_stored)?;
    set("protocol", &mut options.protocol, common.protocol.clone(), is_stored)?;
    let durable = path.map(|path| Durable { sync, read_only, ..Durable::at(path) });
    if durable.is_none() && read_only {
        return Err(misuse("a database in memory is empty: to read it only makes no sense"));
    }
    let options = Options {
        durable,
        limits: common.limits(),
        retry: common.retry(),
        history: common.record.is_some(),
        transaction_timeout: timeout,
        ..options
    };
    let db = py.detach(|| Db::open(options)).map_err(raised)?;
    Ok(Core::new(db, common.retry(), timeout, common.record))
}

/// Connects to a cluster.
#[pyfunction]
#[pyo3(signature = (addresses, secret, within, give_up_after, common))]
pub fn connect_database(
    py: Python<'_>,
    addresses: Vec<String>,
    secret: Option<Vec<u8>>,
    within: f64,
    give_up_after: f64,
    common: CommonOptions,
) -> PyResult<Core> {
    let secret = secret.map(|bytes| Secret::new(&bytes)).transpose();
    let (timeout, defaults) = (common.timeout()?, Connect::default());
    let connect = Connect {
        addresses,
        protocol: common.protocol.clone().unwrap_or(defaults.protocol),
        secret: secret.map_err(|error| PyValueError::new_err(error.to_string()))?,
        limits: common.limits(),
        retry: common.retry(),
        history: common.record.is_some(),
        connect_within: duration(within)?,
        give_up_after: duration(give_up_after)?,
        transaction_timeout: timeout,
        ..Connect::default()
    };
    let db = py.detach(|| Db::connect_with(connect)).map_err(raised)?;
    Ok(Core::new(db, common.retry(), timeout, common.record))
}

/// How the keys of a space are found, by its name.
pub fn space_options(index: &str) -> PyResult<SpaceOptions> {
    let index = match index {
        "ordered" => Index::Ordered,
        "hash" => Index::Hash,
        other => {
            let text = format!("an index is \"ordered\" or \"hash\", and not {other:?}");
            return Err(PyValueError::new_err(text));
        }
    };
    Ok(SpaceOptions { index, ..SpaceOptions::default() })
}

/// Takes over what was asked for; a database that is stored has what it was made with.
fn set<T: PartialEq + std::fmt::Debug>(
    name: &str,
    to: &mut T,
    asked: Option<T>,
    is_stored: bool,
) -> PyResult<()> {
    match asked {
        Some(asked) if is_stored && asked != *to => {
            let text = format!("the folder's database has {name}={to:?}, and not {asked:?}");
            Err(misuse(text))
        }
        Some(asked) => {
            *to = asked;
            Ok(())
        }
        None => Ok(()),
    }
}

/// `"always"`, `"never"`, or seconds.
fn sync_policy(sync: &Bound<'_, PyAny>) -> PyResult<SyncPolicy> {
    if let Ok(name) = sync.cast::<PyString>() {
        return match name.to_str()? {
            "always" => Ok(SyncPolicy::Always),
            "never" => Ok(SyncPolicy::Never),
            other => {
                let text = format!("`sync` is \"always\", \"never\" or seconds, not {other:?}");
                Err(PyValueError::new_err(text))
            }
        };
    }
    let seconds = sync.extract::<f64>().map_err(|_| {
        PyTypeError::new_err("`sync` is \"always\", \"never\", or a number of seconds")
    })?;
    Ok(SyncPolicy::Every(duration(seconds)?))
}

/// Whether there is nothing in a folder but what a start that was cut short has made.
fn is_new(folder: &Path) -> bool {
    match std::fs::read_dir(folder) {
        Err(error) => error.kind() == ErrorKind::NotFound,
        Ok(mut entries) => entries.all(|entry| {
            entry.is_ok_and(|entry| {
                let name = entry.file_name();
                name == "lock" || name.to_string_lossy().starts_with("identity")
            })
        }),
    }
}
