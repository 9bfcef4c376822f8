//! A binary search tree, not balanced, whose nodes are objects.
//!
//! The root hangs under a node of its own, which has no key and stays. A node without two children
//! is replaced by its only child, if it has one; otherwise the smallest node of its right side
//! takes its place and its children.

use std::collections::BTreeMap;

use muesli::objects::{Object, Objects};
use muesli::structures::Inspected;
use muesli::{Error, Key, Range, Space, Tx};
use serde::{Deserialize, Serialize};

/// The name of nodes.
const KIND: &str = "branch";
/// The place of the node above the root. A key's place is one above it.
const TOP: u64 = 0;
/// Where nothing hangs.
const NONE: u64 = 0;

/// A node: what belongs to its key, and the places of its two children. Of the node above the root
/// the right one is the root.
#[derive(Clone, Debug, Deserialize, Object, Serialize)]
pub(super) struct BranchNode {
    of_key: u64,
    left: u64,
    right: u64,
}

/// A tree; the node above its root is made with its first key.
#[derive(Clone, Debug)]
pub(super) struct ObjectTree {
    number: u32,
    space: Space,
    kind: Objects<(u32, u64), BranchNode>,
}

/// The nodes from the one above the root to a place, or to where it would be.
type BranchPath = Vec<(u64, BranchNodeFields)>;

impl BranchNodeFields {
    /// What hangs on the side of `own` that a place is on.
    fn child(&self, tx: &Tx, own: u64, place: u64) -> Result<u64, Error> {
        if place < own { self.left().get(tx) } else { self.right().get(tx) }
    }

    async fn hang(&self, tx: &Tx, own: u64, place: u64, child: u64) -> Result<(), Error> {
        match place < own {
            true => self.left().set(tx, child).await,
            false => self.right().set(tx, child).await,
        }
    }
}

impl ObjectTree {
    /// The tree of this number.
    pub fn new(space: Space, number: u32) -> ObjectTree {
        ObjectTree { number, space, kind: Objects::new(space, KIND) }
    }

    async fn open(&self, tx: &Tx, place: u64) -> Result<BranchNodeFields, Error> {
        self.kind.open(tx, &(self.number, place)).await
    }

    /// Goes down to a place; nothing is there where the tree never had a key.
    async fn descend(&self, tx: &Tx, place: u64) -> Result<BranchPath, Error> {
        let top = self.kind.try_open(tx, &(self.number, TOP)).await?;
        let mut path = Vec::from_iter(top.map(|node| (TOP, node)));
        while let Some((at, node)) = path.last().filter(|(at, _)| *at != place) {
            let next = node.child(tx, *at, place)?;
            if next == NONE {
                break;
            }
            // Keys only ever come nearer, so a circle would show at once.
            if path.iter().any(|(passed, _)| *passed == next) {
                return Err(Error::Codec(format!("the tree goes from {at} back to {next}")));
            }
            path.push((next, self.open(tx, next).await?));
        }
        Ok(path)
    }

    /// The first key that is not below this one, with its value.
    pub async fn at_or_after(&self, tx: &Tx, key: u64) -> Result<Option<(u64, u64)>, Error> {
        // Where the search turned left last, it was just after the key.
        let after = self.descend(tx, key + 1).await?.into_iter().rfind(|(own, _)| *own > key);
        after.map(|(own, node)| Ok((own - 1, node.of_key().get(tx)?))).transpose()
    }

    /// Adds a key; whether it was absent.
    pub async fn add(&self, tx: &Tx, key: &u64, value: &u64) -> Result<bool, Error> {
        let (place, path) = (key + 1, self.descend(tx, key + 1).await?);
        let node = BranchNode { of_key: *value, left: NONE, right: NONE };
        match path.last() {
            Some((found, _)) if *found == place => return Ok(false),
            Some((own, above)) => above.hang(tx, *own, place, place).await?,
            None => {
                let top = BranchNode { of_key: 0, left: NONE, right: place };
                self.kind.create(tx, &(self.number, TOP), top).await?;
            }
        }
        self.kind.create(tx, &(self.number, place), node).await?;
        Ok(true)
    }

    /// Removes a key; its value.
    pub async fn remove(&self, tx: &Tx, key: &u64) -> Result<Option<u64>, Error> {
        let place = key + 1;
        let mut path = self.descend(tx, place).await?;
        let Some((_, node)) = path.pop_if(|(own, _)| *own == place) else { return Ok(None) };
        let BranchNode { of_key, left, right } = node.value(tx)?;
        let instead = match (left, right) {
            (NONE, only) | (only, NONE) => only,
            (left, right) => self.replace(tx, left, right).await?,
        };
        let (own, above) = path.last().expect("a key hangs under the node above the root");
        above.hang(tx, *own, place, instead).await?;
        node.delete(tx).await?;
        Ok(Some(of_key))
    }

    /// Lets the smallest node of the right side take over both children; its place.
    async fn replace(&self, tx: &Tx, left: u64, right: u64) -> Result<u64, Error> {
        let (mut place, mut heir, mut above) = (right, self.open(tx, right).await?, None);
        loop {
            let smaller = heir.left().get(tx)?;
            if smaller == NONE {
                break;
            }
            let node = self.open(tx, smaller).await?;
            (place, above) = (smaller, Some(std::mem::replace(&mut heir, node)));
        }
        if let Some(parent) = above {
            parent.left().set(tx, heir.right().get(tx)?).await?;
            heir.right().set(tx, right).await?;
        }
        heir.left().set(tx, left).await?;
        Ok(place)
    }

    /// All nodes that hang under the root, by their places; what is wrong with where they hang.
    async fn reached(&self, tx: &Tx) -> Result<(BTreeMap<u64, BranchNode>, Vec<String>), Error> {
        let (mut found, mut wrong) = (BTreeMap::new(), Vec::new());
        let Some(top) = self.kind.try_open(tx, &(self.number, TOP)).await? else {
            return Ok((found, wrong));
        };
        let mut open = vec![(top.right().get(tx)?, TOP, u64::MAX)];
        while let Some((place, low, high)) = open.pop().filter(|(place, ..)| *place != NONE) {
            // Bounds shrink from node to node, so no way down is longer than there are keys.
            if place <= low || place >= high {
                wrong.push(format!("node {place} is not between {low} and {high}"));
                continue;
            }
            let node = self.open(tx, place).await?.value(tx)?;
            let sides = [(node.left, low, place), (node.right, place, high)];
            open.extend(sides.into_iter().filter(|(child, ..)| *child != NONE));
            found.insert(place, node);
        }
        Ok((found, wrong))
    }

    /// All keys with their values, in order.
    pub async fn entries(&self, tx: &Tx) -> Result<Vec<(u64, u64)>, Error> {
        let (nodes, wrong) = self.reached(tx).await?;
        match wrong.into_iter().next() {
            Some(wrong) => Err(Error::Codec(wrong)),
            None => Ok(nodes.into_iter().map(|(place, node)| (place - 1, node.of_key)).collect()),
        }
    }

    /// What is there, and what is wrong with it.
    pub async fn inspect(&self, tx: &Tx) -> Result<Inspected<u64, u64>, Error> {
        let (nodes, mut wrong) = self.reached(tx).await?;
        let all = (KIND.to_owned(), self.number).encoded();
        let rows = tx.scan(self.space, Range::prefix(all.as_slice())).await?.len();
        let reached = if rows == 0 { 0 } else { nodes.len() + 1 };
        if rows != reached {
            wrong.push(format!("{rows} nodes are there, and {reached} are reached"));
        }
        let entries = nodes.into_iter().map(|(place, node)| (place - 1, node.of_key)).collect();
        Ok(Inspected { entries, wrong })
    }
}
