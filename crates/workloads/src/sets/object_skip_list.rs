//! A skip list whose nodes are objects.

use muesli::objects::{Object, Objects};
use muesli::structures::Inspected;
use muesli::{Error, Key, Range, Space, Tx};
use serde::{Deserialize, Serialize};

/// The name of nodes.
const KIND: &str = "tower";
/// The place before all keys, and after them. A key's place is one above it.
const HEAD: u64 = 0;
const END: u64 = 0;

/// A node: what belongs to its key, and the place of the next node at each of its levels, from the
/// lowest.
#[derive(Clone, Debug, Deserialize, Object, Serialize)]
pub(super) struct TowerNode {
    of_key: u64,
    next: Vec<u64>,
}

/// A skip list of so many levels; its head, which has all of them, is made with its first key.
#[derive(Clone, Debug)]
pub(super) struct ObjectSkipList {
    number: u32,
    levels: usize,
    space: Space,
    kind: Objects<(u32, u64), TowerNode>,
}

/// What a search for a place has passed.
struct TowerPath {
    /// The last node before the place, at each level.
    before: Vec<TowerNodeFields>,
    /// The first place at or after it.
    next: u64,
}

impl ObjectSkipList {
    /// The list of this number, with so many levels.
    pub fn new(space: Space, number: u32, levels: u8) -> ObjectSkipList {
        let levels = usize::from(levels.max(1));
        ObjectSkipList { number, levels, space, kind: Objects::new(space, KIND) }
    }

    /// At how many levels the node of a key is linked: half of those at each are at the next one.
    fn height(&self, key: u64) -> usize {
        let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.levels.min(1 + (mixed as u32).trailing_zeros() as usize)
    }

    async fn open(&self, tx: &Tx, place: u64) -> Result<TowerNodeFields, Error> {
        self.kind.open(tx, &(self.number, place)).await
    }

    /// Walks to a place; nothing is there where the list has no head yet.
    async fn find(&self, tx: &Tx, place: u64) -> Result<Option<TowerPath>, Error> {
        let head = self.kind.try_open(tx, &(self.number, HEAD)).await?;
        let Some(mut at) = head else { return Ok(None) };
        let (mut before, mut next) = (Vec::with_capacity(self.levels), END);
        for level in (0..self.levels).rev() {
            loop {
                next = at.with(tx, |node| node.next.get(level).copied())?.unwrap_or(END);
                if next == END || next >= place {
                    break;
                }
                at = self.open(tx, next).await?;
            }
            before.push(at.clone());
        }
        before.reverse();
        Ok(Some(TowerPath { before, next }))
    }

    /// The first key that is not below this one, with its value.
    pub async fn at_or_after(&self, tx: &Tx, key: u64) -> Result<Option<(u64, u64)>, Error> {
        match self.find(tx, key + 1).await? {
            Some(TowerPath { next, .. }) if next != END => {
                let node = self.open(tx, next).await?;
                Ok(Some((next - 1, node.of_key().get(tx)?)))
            }
            _ => Ok(None),
        }
    }

    /// Adds a key; whether it was absent.
    pub async fn add(&self, tx: &Tx, key: &u64, value: &u64) -> Result<bool, Error> {
        let (place, height) = (key + 1, self.height(*key));
        let Some(TowerPath { before, next }) = self.find(tx, place).await? else {
            let node = TowerNode { of_key: *value, next: vec![END; height] };
            self.kind.create(tx, &(self.number, place), node).await?;
            let next = (0..self.levels).map(|at| if at < height { place } else { END }).collect();
            let head = TowerNode { of_key: 0, next };
            return self.kind.create(tx, &(self.number, HEAD), head).await.map(|_| true);
        };
        if next == place {
            return Ok(false);
        }
        let mut own = Vec::with_capacity(height);
        for (level, node) in before.iter().take(height).enumerate() {
            let link = |next: &mut Vec<u64>| std::mem::replace(&mut next[level], place);
            own.push(node.next().update(tx, link).await?);
        }
        let node = TowerNode { of_key: *value, next: own };
        self.kind.create(tx, &(self.number, place), node).await?;
        Ok(true)
    }

    /// Removes a key; its value.
    pub async fn remove(&self, tx: &Tx, key: &u64) -> Result<Option<u64>, Error> {
        let place = key + 1;
        let path = self.find(tx, place).await?.filter(|path| path.next == place);
        let Some(TowerPath { before, .. }) = path else { return Ok(None) };
        let node = self.open(tx, place).await?;
        let TowerNode { of_key, next } = node.value(tx)?;
        for (level, after) in next.into_iter().enumerate().take(before.len()) {
            before[level].next().update(tx, |next| next[level] = after).await?;
        }
        node.delete(tx).await?;
        Ok(Some(of_key))
    }

    /// The places and nodes of a level, in their order.
    async fn level(&self, tx: &Tx, level: usize) -> Result<Vec<(u64, TowerNode)>, Error> {
        let mut nodes: Vec<(u64, TowerNode)> = Vec::new();
        let Some(head) = self.kind.try_open(tx, &(self.number, HEAD)).await? else {
            return Ok(nodes);
        };
        let mut next = head.with(tx, |node| node.next.get(level).copied())?.unwrap_or(END);
        while next != END {
            let last = nodes.last().map_or(0, |(place, _)| *place);
            if next <= last {
                return Err(Error::Codec(format!("level {level} goes from {last} back to {next}")));
            }
            let node = self.open(tx, next).await?.value(tx)?;
            let after = node.next.get(level).copied().unwrap_or(END);
            nodes.push((next, node));
            next = after;
        }
        Ok(nodes)
    }

    /// All keys with their values, in order.
    pub async fn entries(&self, tx: &Tx) -> Result<Vec<(u64, u64)>, Error> {
        let nodes = self.level(tx, 0).await?;
        Ok(nodes.into_iter().map(|(place, node)| (place - 1, node.of_key)).collect())
    }

    /// What is there, and what is wrong with it.
    pub async fn inspect(&self, tx: &Tx) -> Result<Inspected<u64, u64>, Error> {
        let (lowest, mut wrong) = (self.level(tx, 0).await?, Vec::new());
        for (place, node) in &lowest {
            let (is, height) = (node.next.len(), self.height(place - 1));
            if is != height {
                wrong.push(format!("the node of {} is {is} high, not {height}", place - 1));
            }
        }
        for level in 1..self.levels {
            let linked = self.level(tx, level).await?;
            let is_high = |(_, node): &&(u64, TowerNode)| node.next.len() > level;
            let expected = lowest.iter().filter(is_high).map(|(place, _)| place);
            if !expected.eq(linked.iter().map(|(place, _)| place)) {
                wrong.push(format!("level {level} does not link all nodes that are high enough"));
            }
        }
        let all = (KIND.to_owned(), self.number).encoded();
        let rows = tx.scan(self.space, Range::prefix(all.as_slice())).await?.len();
        let reached = if rows == 0 { 0 } else { lowest.len() + 1 };
        if rows != reached {
            wrong.push(format!("{rows} nodes are there, and {reached} are reached"));
        }
        let entries = lowest.into_iter().map(|(place, node)| (place - 1, node.of_key)).collect();
        Ok(Inspected { entries, wrong })
    }
}
