//! A skip list: a sorted list with express lanes.
//!
//! Each node is linked at as many levels as it is high: at the lowest all of them, at each further
//! level about half of those below. A search goes right as far as it may at the highest level,
//! then one level down, and so on. How high a node is comes from the hash of its key: no chance is
//! needed, and a transaction that is run again does the same again.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::rows::{Link, StructureRows, StructureShape, hash};
use super::{Inspected, KeyedMap, OrderedMap, handle};
use crate::data::key::Key;
use crate::data::space::Space;
use crate::error::Error;
use crate::transaction::tx::Tx;

/// Enough for a few thousand keys, and the head stays short.
const LEVELS: u8 = 12;

/// A sorted map whose searches read about log₂ n nodes.
pub struct SkipList<K, V> {
    rows: StructureRows,
    levels: u8,
    types: PhantomData<fn(K) -> V>,
}

handle!(SkipList);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SkipNode<V> {
    /// The next node at each of the levels that this one is linked at, from the lowest.
    next: Vec<Link>,
    value: V,
}

/// What a search has passed.
struct Path<V> {
    head: Vec<Link>,
    nodes: Vec<(Vec<u8>, SkipNode<V>)>,
    /// The last node before the key at each level; `None` is the head.
    before: Vec<Option<usize>>,
}

impl<K, V> SkipList<K, V> {
    /// The skip list of this name, with 12 levels; empty where nothing was inserted.
    pub fn new(space: Space, name: &str) -> Self {
        SkipList::with_levels(space, name, LEVELS)
    }

    /// The same with so many levels, at least 1. Everybody must use the same number, which is
    /// stored: with another one, operations end in [`Error::Codec`].
    pub fn with_levels(space: Space, name: &str, levels: u8) -> Self {
        let levels = levels.max(1);
        let rows = StructureRows::new(space, name, StructureShape::SkipList { levels });
        SkipList { rows, levels, types: PhantomData }
    }

    /// At how many levels the node of a key is linked.
    fn height(&self, key: &[u8]) -> usize {
        let drawn = 1 + hash(key).trailing_zeros() as usize;
        drawn.min(self.levels.into())
    }

    fn empty_head(&self) -> Vec<Link> {
        vec![None; self.levels.into()]
    }
}

impl<V> Path<V> {
    fn links_mut(&mut self, place: Option<usize>) -> &mut Vec<Link> {
        match place {
            None => &mut self.head,
            Some(place) => &mut self.nodes[place].1.next,
        }
    }

    fn links(&self, place: Option<usize>) -> &[Link] {
        place.map_or(&self.head, |place| &self.nodes[place].1.next)
    }

    /// What follows the key's place, itself included, at the lowest level.
    fn next(&self) -> &Link {
        &self.links(self.before[0])[0]
    }
}

impl<K: Key, V: Serialize + DeserializeOwned + Clone> SkipList<K, V> {
    async fn search(&self, tx: &Tx, key: &[u8]) -> Result<Path<V>, Error> {
        let head = self.rows.read_head(tx).await?.unwrap_or_else(|| self.empty_head());
        if head.len() != usize::from(self.levels) {
            return Err(self.rows.broken("it was made with another number of levels"));
        }
        let before = vec![None; head.len()];
        let mut path = Path { head, nodes: Vec::new(), before };
        let mut place = None;
        for level in (0..path.before.len()).rev() {
            loop {
                let links = path.links(place).get(level);
                let link = links.ok_or_else(|| self.rows.broken("a node is too low"))?;
                let Some(next) = link.clone().filter(|next| next.as_slice() < key) else { break };
                if place.is_some_and(|place: usize| path.nodes[place].0 >= next) {
                    return Err(self.rows.broken("a link leads back"));
                }
                let node = self.rows.follow(tx, &next).await?;
                path.nodes.push((next, node));
                place = Some(path.nodes.len() - 1);
            }
            path.before[level] = place;
        }
        Ok(path)
    }

    /// Writes the heads and nodes before the key at the lowest `levels` levels, each once.
    async fn write_before(&self, tx: &Tx, path: &Path<V>, levels: usize) -> Result<(), Error> {
        let mut changed = path.before[..levels].to_vec();
        changed.dedup();
        for place in changed {
            match place {
                None => self.rows.write_head(tx, &path.head).await?,
                Some(place) => {
                    let (key, node) = &path.nodes[place];
                    self.rows.write(tx, key, node).await?;
                }
            }
        }
        Ok(())
    }
}

impl<K: Key, V: Serialize + DeserializeOwned + Clone> KeyedMap<K, V> for SkipList<K, V> {
    async fn get(&self, tx: &Tx, key: &K) -> Result<Option<V>, Error> {
        let node: Option<SkipNode<V>> = self.rows.read(tx, key.encoded().as_slice()).await?;
        Ok(node.map(|node| node.value))
    }

    async fn put(&self, tx: &Tx, key: &K, value: &V, replaced: bool) -> Result<Option<V>, Error> {
        let key = key.encoded().as_slice().to_vec();
        let mut path = self.search(tx, &key).await?;
        if path.next().as_ref() == Some(&key) {
            let node: SkipNode<V> = self.rows.follow(tx, &key).await?;
            if replaced {
                let changed = SkipNode { next: node.next, value: value.clone() };
                self.rows.write(tx, &key, &changed).await?;
            }
            return Ok(Some(node.value));
        }
        let height = self.height(&key);
        let mut next = Vec::with_capacity(height);
        for level in 0..height {
            let before = path.before[level];
            next.push(path.links_mut(before)[level].replace(key.clone()));
        }
        self.rows.write(tx, &key, &SkipNode { next, value: value.clone() }).await?;
        self.write_before(tx, &path, height).await?;
        Ok(None)
    }

    async fn remove(&self, tx: &Tx, key: &K) -> Result<Option<V>, Error> {
        let key = key.encoded().as_slice().to_vec();
        let mut path = self.search(tx, &key).await?;
        if path.next().as_ref() != Some(&key) {
            return Ok(None);
        }
        let SkipNode { next, value } = self.rows.follow(tx, &key).await?;
        let height = next.len();
        if height > path.before.len() {
            return Err(self.rows.broken("a node is too high"));
        }
        for (level, after) in next.into_iter().enumerate() {
            let before = path.before[level];
            path.links_mut(before)[level] = after;
        }
        self.rows.delete(tx, &key).await?;
        self.write_before(tx, &path, height).await?;
        Ok(Some(value))
    }

    async fn entries(&self, tx: &Tx) -> Result<Vec<(K, V)>, Error> {
        let head = self.rows.read_head::<Vec<Link>>(tx).await?;
        let mut entries = Vec::new();
        let (mut at, mut link) = (Vec::new(), head.and_then(|head| head.into_iter().next()?));
        while let Some(key) = link {
            if key <= at && !entries.is_empty() {
                return Err(self.rows.broken("a link leads back"));
            }
            let node: SkipNode<V> = self.rows.follow(tx, &key).await?;
            entries.push((K::decoded(&key)?, node.value));
            link = node.next.into_iter().next().flatten();
            at = key;
        }
        Ok(entries)
    }

    async fn inspect(&self, tx: &Tx) -> Result<Inspected<K, V>, Error> {
        let head = self.rows.read_head(tx).await?.unwrap_or_else(|| self.empty_head());
        let rows: BTreeMap<_, SkipNode<V>> = self.rows.scan(tx).await?.into_iter().collect();
        let wrong = inspect(&head, &rows, |key| self.height(key));
        let entry = |(key, node): (Vec<u8>, SkipNode<V>)| Ok((K::decoded(&key)?, node.value));
        let entries = rows.into_iter().map(entry).collect::<Result<_, Error>>()?;
        Ok(Inspected { entries, wrong })
    }
}

impl<K: Key, V: Serialize + DeserializeOwned + Clone> OrderedMap<K, V> for SkipList<K, V> {
    async fn at_or_after(&self, tx: &Tx, key: &K) -> Result<Option<(K, V)>, Error> {
        let path = self.search(tx, key.encoded().as_slice()).await?;
        let Some(next) = path.next() else { return Ok(None) };
        let node: SkipNode<V> = self.rows.follow(tx, next).await?;
        Ok(Some((K::decoded(next)?, node.value)))
    }
}

/// Each level must link exactly the nodes that are high enough, in the order of their keys.
fn inspect<V>(
    head: &[Link],
    rows: &BTreeMap<Vec<u8>, SkipNode<V>>,
    height: impl Fn(&[u8]) -> usize,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (key, node) in rows {
        if node.next.len() != height(key) {
            wrong.push(format!("node {key:x?} is {} high, not {}", node.next.len(), height(key)));
        }
    }
    for (level, first) in head.iter().enumerate() {
        let mut expected = rows.iter().filter(|(_, node)| node.next.len() > level);
        let mut link = first;
        loop {
            let node = expected.next();
            if link.as_ref() != node.map(|(key, _)| key) {
                let found =
                    format!("level {level} leads to {link:x?}, not {:x?}", node.map(|n| n.0));
                wrong.push(found);
                break;
            }
            match node {
                Some((_, node)) => link = &node.next[level],
                None => break,
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(next: &[Option<u8>]) -> SkipNode<()> {
        SkipNode { next: next.iter().map(|link| link.map(|key| vec![key])).collect(), value: () }
    }

    #[test]
    fn what_is_wrong_with_a_skip_list_is_told() {
        let height = |key: &[u8]| usize::from(key[0] % 2) + 1;
        let rows = |second: SkipNode<()>| {
            BTreeMap::from([(vec![1], node(&[Some(2), Some(3)])), (vec![2], second), {
                (vec![3], node(&[None, None]))
            }])
        };
        let head = [Some(vec![1]), Some(vec![1])];
        let found = |head: &[Link], second| inspect(head, &rows(second), height).len();
        assert_eq!(found(&head, node(&[Some(3)])), 0);
        assert_eq!(found(&head, node(&[None])), 1, "a node that cannot be reached");
        assert_eq!(found(&head, node(&[Some(1)])), 1, "a link that leads back");
        assert_eq!(found(&[Some(vec![1]), Some(vec![3])], node(&[Some(3)])), 1, "a level");
        assert_eq!(found(&head, node(&[Some(3), Some(3)])), 2, "a node that is too high");
    }
}
