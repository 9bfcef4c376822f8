//! A sorted linked list whose nodes are objects.

use muesli::objects::{Object, Objects};
use muesli::structures::Inspected;
use muesli::{Error, Key, Range, Space, Tx};
use serde::{Deserialize, Serialize};

/// The name of nodes.
const KIND: &str = "node";
/// The place before all keys, and after them. A key's place is one above it.
const HEAD: u64 = 0;
const END: u64 = 0;

/// A node: what belongs to its key, and the place of the next one.
#[derive(Clone, Debug, Deserialize, Object, Serialize)]
pub(super) struct ListNode {
    of_key: u64,
    next: u64,
}

/// A list; its head is made with its first key.
#[derive(Clone, Debug)]
pub(super) struct ObjectList {
    number: u32,
    space: Space,
    kind: Objects<(u32, u64), ListNode>,
}

/// The node before a place, and the first one at the place or after it.
struct FoundNodes {
    before: ListNodeFields,
    at_or_after: Option<(u64, ListNodeFields)>,
}

impl ObjectList {
    /// The list of this number.
    pub fn new(space: Space, number: u32) -> ObjectList {
        ObjectList { number, space, kind: Objects::new(space, KIND) }
    }

    async fn open(&self, tx: &Tx, place: u64) -> Result<ListNodeFields, Error> {
        self.kind.open(tx, &(self.number, place)).await
    }

    /// Walks to a place; nothing is there where the list has no head yet.
    async fn find(&self, tx: &Tx, place: u64) -> Result<Option<FoundNodes>, Error> {
        let head = self.kind.try_open(tx, &(self.number, HEAD)).await?;
        let Some(mut before) = head else { return Ok(None) };
        loop {
            let next = before.next().get(tx)?;
            if next == END {
                return Ok(Some(FoundNodes { before, at_or_after: None }));
            }
            let node = self.open(tx, next).await?;
            if next >= place {
                return Ok(Some(FoundNodes { before, at_or_after: Some((next, node)) }));
            }
            before = node;
        }
    }

    /// The first key that is not below this one, with its value.
    pub async fn at_or_after(&self, tx: &Tx, key: u64) -> Result<Option<(u64, u64)>, Error> {
        let found = self.find(tx, key + 1).await?.and_then(|found| found.at_or_after);
        found.map(|(place, node)| Ok((place - 1, node.of_key().get(tx)?))).transpose()
    }

    /// Adds a key; whether it was absent.
    pub async fn add(&self, tx: &Tx, key: &u64, value: &u64) -> Result<bool, Error> {
        let place = key + 1;
        let found = self.find(tx, place).await?;
        let next = found.as_ref().and_then(|found| found.at_or_after.as_ref());
        let next = next.map_or(END, |(next, _)| *next);
        if next == place {
            return Ok(false);
        }
        let node = ListNode { of_key: *value, next };
        self.kind.create(tx, &(self.number, place), node).await?;
        match found {
            Some(found) => found.before.next().set(tx, place).await?,
            None => {
                let head = ListNode { of_key: 0, next: place };
                self.kind.create(tx, &(self.number, HEAD), head).await?;
            }
        }
        Ok(true)
    }

    /// Removes a key; its value.
    pub async fn remove(&self, tx: &Tx, key: &u64) -> Result<Option<u64>, Error> {
        let place = key + 1;
        let Some(FoundNodes { before, at_or_after }) = self.find(tx, place).await? else {
            return Ok(None);
        };
        let Some((_, node)) = at_or_after.filter(|(found, _)| *found == place) else {
            return Ok(None);
        };
        let ListNode { of_key, next } = node.value(tx)?;
        before.next().set(tx, next).await?;
        node.delete(tx).await?;
        Ok(Some(of_key))
    }

    /// All keys with their values, in order.
    pub async fn entries(&self, tx: &Tx) -> Result<Vec<(u64, u64)>, Error> {
        let mut entries = Vec::new();
        let Some(head) = self.kind.try_open(tx, &(self.number, HEAD)).await? else {
            return Ok(entries);
        };
        let mut next = head.next().get(tx)?;
        while next != END {
            let node = self.open(tx, next).await?.value(tx)?;
            let last = entries.last().map_or(0, |(key, _)| key + 1);
            if next <= last {
                return Err(Error::Codec(format!("the list goes from {last} back to {next}")));
            }
            entries.push((next - 1, node.of_key));
            next = node.next;
        }
        Ok(entries)
    }

    /// What is there, and what is wrong with it.
    pub async fn inspect(&self, tx: &Tx) -> Result<Inspected<u64, u64>, Error> {
        let entries = self.entries(tx).await?;
        let all = (KIND.to_owned(), self.number).encoded();
        let rows = tx.scan(self.space, Range::prefix(all.as_slice())).await?.len();
        let reached = if rows == 0 { 0 } else { entries.len() + 1 };
        let wrong = (rows != reached)
            .then(|| format!("{rows} nodes are there, and {reached} are reached"))
            .into_iter();
        Ok(Inspected { entries, wrong: wrong.collect() })
    }
}
