//! The history of a run, as the checker reads it.
//!
//! The transactions of all hosts go into one history, in virtual time, with the chains of versions
//! that the repositories hold in the end. A key is named by its space and itself, with a slash
//! between, so that ranges of keys stay ranges.

use std::collections::BTreeSet;

use muesli_check::{
    BuildError, Header, History, HistoryBuilder, Kind, Seen, TxnId, Value, Version,
};
use muesli_core::recorder::{Operation, Status};
use muesli_core::{SmallBytes, SpaceId, Timestamp};

use super::journal::Recorded;
use super::run::{HostHistory, Run};

impl Run {
    /// The history, for the checker. Empty unless the setup asked for one.
    ///
    /// # Errors
    /// What was recorded is no history, such as two transactions of one name: a mistake of the
    /// protocol.
    pub fn history(&self) -> Result<History, BuildError> {
        let mut builder = HistoryBuilder::new(Kind::Version);
        for host in &self.hosts {
            for recorded in host.transactions() {
                let at = recorded.record.at.or_else(|| self.applied_at(&recorded));
                add(&mut builder, &recorded, at)?;
            }
        }
        for host in &self.hosts {
            add_chains(&mut builder, host)?;
        }
        Ok(builder.finish())
    }

    /// Where a transaction's coordinator did not learn its end, some participant may have.
    fn applied_at(&self, recorded: &Recorded<'_>) -> Option<Timestamp> {
        let asked = recorded.status == Status::Unknown;
        let id = recorded.record.id;
        self.hosts.iter().filter(|_| asked).find_map(|host| host.applied_at(id))
    }
}

fn add(
    builder: &mut HistoryBuilder,
    recorded: &Recorded<'_>,
    at: Option<Timestamp>,
) -> Result<(), BuildError> {
    let Recorded { record, status, .. } = recorded;
    let id = record.id.to_string();
    let mut transaction = builder.transaction(Header {
        id: TxnId::Text(&id),
        session: Value::Unsigned(record.session),
        begin: recorded.begin.as_nanos(),
        end: recorded.end.map(|end| end.as_nanos()),
        status: checked(*status),
        read_only: Some(record.read_only),
        timestamp: at.map_or(Value::Unrecorded, |at| Value::Unsigned(at.0)),
    })?;
    let last_writes = last_writes(&recorded.operations);
    let mut written = BTreeSet::new();
    for (place, operation) in recorded.operations.iter().enumerate() {
        match operation {
            Operation::Read { space, key, version, hash } => {
                transaction.read(&name(*space, key), version.0, value(*hash))?;
            }
            Operation::ReadOwn { space, key, hash } => {
                transaction.read(&name(*space, key), Seen::Own, value(*hash))?;
            }
            Operation::Write { space, key, hash } => {
                written.insert((*space, key));
                let installed = *status != Status::Aborted && last_writes.contains(&place);
                let version = at.filter(|_| installed).map(|at| Version::Number(at.0));
                match hash {
                    Some(_) => transaction.write(&name(*space, key), version, value(*hash))?,
                    None => transaction.delete(&name(*space, key), version)?,
                };
            }
            Operation::Scan { space, lo, hi, rows } => {
                let seen = rows.iter().map(|(key, version, hash)| {
                    (name(*space, key), Seen::from(version.0), value(*hash))
                });
                // Own writes hide what else is there, so nothing was read under them.
                let own = written.iter().filter(|(of, key)| {
                    of == space && *key >= lo && hi.as_ref().is_none_or(|hi| *key < hi)
                });
                let own = own.map(|(_, key)| (name(*space, key), Seen::Own, Value::Unrecorded));
                let rows: Vec<_> = seen.chain(own).collect();
                let rows = rows.iter().map(|(key, seen, value)| (&key[..], *seen, *value));
                let high = hi.as_ref().map_or_else(|| end_of(*space), |hi| name(*space, hi));
                transaction.scan(&name(*space, lo), Some(&high), rows)?;
            }
        }
    }
    Ok(())
}

fn add_chains(builder: &mut HistoryBuilder, host: &HostHistory) -> Result<(), BuildError> {
    for (repository, chains) in &host.chains {
        let replica = format!("r{}", repository.0);
        for (space, key, versions) in chains {
            // Version zero is what was there before anybody wrote.
            let written = versions.iter().filter(|version| **version != Timestamp::ZERO);
            let versions: Vec<_> = written.map(|version| Version::Number(version.0)).collect();
            if !versions.is_empty() {
                builder.order(&name(*space, key), Value::Text(&replica), &versions)?;
            }
        }
    }
    Ok(())
}

/// The places of the writes that no later write of the transaction hides.
fn last_writes(operations: &[Operation]) -> BTreeSet<usize> {
    let mut hidden = BTreeSet::new();
    let newest_first = operations.iter().enumerate().rev();
    let last = newest_first.filter_map(|(place, operation)| match operation {
        Operation::Write { space, key, .. } => hidden.insert((*space, key)).then_some(place),
        _ => None,
    });
    last.collect()
}

fn checked(status: Status) -> muesli_check::Status {
    match status {
        Status::Committed => muesli_check::Status::Committed,
        Status::Aborted => muesli_check::Status::Aborted,
        Status::Unknown => muesli_check::Status::Unknown,
        Status::Running => muesli_check::Status::Running,
    }
}

fn value(hash: Option<u64>) -> Value<'static> {
    hash.map_or(Value::Null, Value::Unsigned)
}

fn name(space: SpaceId, key: &SmallBytes) -> Vec<u8> {
    let mut name = format!("{}/", space.0).into_bytes();
    name.extend_from_slice(key.as_slice());
    name
}

/// After all keys of the space: the byte after the slash is the digit zero.
fn end_of(space: SpaceId) -> Vec<u8> {
    format!("{}0", space.0).into_bytes()
}
