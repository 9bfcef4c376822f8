//! Entries of a group's log.

use std::fmt;
use std::sync::Arc;

use muesli_core::Wire;
use omnipaxos::storage::{Entry as LibraryEntry, NoSnapshot};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::agreement::configuration::{Configuration, MARK};

/// A record of the protocol inside, as bytes, or the end of a [`Configuration`]. The library, what
/// a member remembers and what it logs each have it, and share its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry(pub Arc<[u8]>);

impl From<Vec<u8>> for Entry {
    fn from(bytes: Vec<u8>) -> Entry {
        Entry(bytes.into())
    }
}

/// What an entry takes in a message of the consensus or in a record beside its own bytes, at most:
/// its length.
pub const ENTRY_BYTES: u64 = 5;

impl Entry {
    /// How many bytes it takes in a message of the consensus or in a record, at most.
    pub fn message_bytes(&self) -> u64 {
        self.0.len() as u64 + ENTRY_BYTES
    }

    /// The entry by which a configuration ends, and this one begins.
    pub fn that_begins(next: &Configuration) -> Entry {
        let mut bytes = vec![MARK];
        next.encode(&mut bytes);
        Entry::from(bytes)
    }

    /// The configuration that begins with this entry, if it is such.
    pub fn begins(&self) -> Option<Configuration> {
        let (mark, rest) = self.0.split_first()?;
        if *mark != MARK {
            return None;
        }
        Configuration::decode_all(rest).ok()
    }
}

impl LibraryEntry for Entry {
    type Snapshot = NoSnapshot;
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'a> Deserialize<'a> for Entry {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Entry, D::Error> {
        deserializer.deserialize_bytes(EntryVisitor)
    }
}

struct EntryVisitor;

impl Visitor<'_> for EntryVisitor {
    type Value = Entry;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("bytes")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Entry, E> {
        Ok(Entry(bytes.into()))
    }
}
