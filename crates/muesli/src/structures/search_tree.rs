//! A binary search tree, not balanced: its shape comes from the order of the inserts.
//!
//! The head holds the root. A node without two children is replaced by its only child, if it has
//! one; otherwise the smallest node of its right side takes its place and its children.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::rows::{Link, StructureRows, StructureShape};
use super::{Inspected, KeyedMap, OrderedMap, handle};
use crate::data::key::Key;
use crate::data::space::Space;
use crate::error::Error;
use crate::transaction::tx::Tx;

/// A sorted map whose searches read its depth: about 2 ln n nodes after inserts in random order,
/// all n after inserts in order.
pub struct SearchTree<K, V> {
    rows: StructureRows,
    types: PhantomData<fn(K) -> V>,
}

handle!(SearchTree);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct TreeNode<V> {
    left: Link,
    right: Link,
    value: V,
}

/// The nodes from the root to a key, or to where it would be.
type Path<V> = Vec<(Vec<u8>, TreeNode<V>)>;

impl<V> TreeNode<V> {
    fn child(&self, own: &[u8], key: &[u8]) -> &Link {
        if key < own { &self.left } else { &self.right }
    }

    fn child_mut(&mut self, own: &[u8], key: &[u8]) -> &mut Link {
        if key < own { &mut self.left } else { &mut self.right }
    }
}

impl<K, V> SearchTree<K, V> {
    /// The tree of this name; empty where nothing was inserted.
    pub fn new(space: Space, name: &str) -> Self {
        SearchTree {
            rows: StructureRows::new(space, name, StructureShape::SearchTree),
            types: PhantomData,
        }
    }
}

impl<K: Key, V: Serialize + DeserializeOwned + Clone> SearchTree<K, V> {
    async fn root(&self, tx: &Tx) -> Result<Link, Error> {
        Ok(self.rows.read_head::<Link>(tx).await?.flatten())
    }

    async fn descend(&self, tx: &Tx, key: &[u8]) -> Result<Path<V>, Error> {
        let (mut path, mut link): (Path<V>, _) = (Vec::new(), self.root(tx).await?);
        while let Some(at) = link {
            // Keys only ever come nearer, so a circle would show at once.
            if path.iter().any(|(passed, _)| *passed == at) {
                return Err(self.rows.broken("a link leads back"));
            }
            let node: TreeNode<V> = self.rows.follow(tx, &at).await?;
            link = if at == key { None } else { node.child(&at, key).clone() };
            path.push((at, node));
        }
        Ok(path)
    }

    /// Lets whoever is above a key lead to `link`.
    async fn hang(&self, tx: &Tx, mut above: Path<V>, key: &[u8], link: Link) -> Result<(), Error> {
        match above.pop() {
            None => self.rows.write_head(tx, &link).await,
            Some((own, mut node)) => {
                *node.child_mut(&own, key) = link;
                self.rows.write(tx, &own, &node).await
            }
        }
    }

    /// Lets the smallest node of the right side take over both children; the node's key.
    async fn replace(&self, tx: &Tx, left: Link, right: Vec<u8>) -> Result<Vec<u8>, Error> {
        let mut heir: TreeNode<V> = self.rows.follow(tx, &right).await?;
        let (mut key, mut above) = (right.clone(), None);
        while let Some(smaller) = heir.left.take() {
            let node = self.rows.follow(tx, &smaller).await?;
            above = Some((std::mem::replace(&mut key, smaller), heir));
            heir = node;
        }
        if let Some((own, mut parent)) = above {
            parent.left = heir.right.replace(right);
            self.rows.write(tx, &own, &parent).await?;
        }
        heir.left = left;
        self.rows.write(tx, &key, &heir).await?;
        Ok(key)
    }
}

impl<K: Key, V: Serialize + DeserializeOwned + Clone> KeyedMap<K, V> for SearchTree<K, V> {
    async fn get(&self, tx: &Tx, key: &K) -> Result<Option<V>, Error> {
        let node: Option<TreeNode<V>> = self.rows.read(tx, key.encoded().as_slice()).await?;
        Ok(node.map(|node| node.value))
    }

    async fn put(&self, tx: &Tx, key: &K, value: &V, replaced: bool) -> Result<Option<V>, Error> {
        let key = key.encoded().as_slice().to_vec();
        let mut path = self.descend(tx, &key).await?;
        if let Some((_, node)) = path.pop_if(|(own, _)| *own == key) {
            let TreeNode { left, right, value: old } = node;
            if replaced {
                self.rows.write(tx, &key, &TreeNode { left, right, value: value.clone() }).await?;
            }
            return Ok(Some(old));
        }
        let node = TreeNode { left: None, right: None, value: value.clone() };
        self.rows.write(tx, &key, &node).await?;
        self.hang(tx, path, &key, Some(key.clone())).await?;
        Ok(None)
    }

    async fn remove(&self, tx: &Tx, key: &K) -> Result<Option<V>, Error> {
        let key = key.encoded().as_slice().to_vec();
        let mut path = self.descend(tx, &key).await?;
        let Some((_, node)) = path.pop_if(|(own, _)| *own == key) else { return Ok(None) };
        let instead = match (node.left, node.right) {
            (None, only) | (only, None) => only,
            (left, Some(right)) => Some(self.replace(tx, left, right).await?),
        };
        self.hang(tx, path, &key, instead).await?;
        self.rows.delete(tx, &key).await?;
        Ok(Some(node.value))
    }

    async fn entries(&self, tx: &Tx) -> Result<Vec<(K, V)>, Error> {
        // A level at a time, all of its nodes at once.
        let (mut found, mut level) = (BTreeMap::new(), Vec::from_iter(self.root(tx).await?));
        while !level.is_empty() {
            let nodes = self.rows.read_many::<TreeNode<V>>(tx, level.iter().cloned()).await?;
            let mut below = Vec::new();
            for (key, node) in level.into_iter().zip(nodes) {
                let node = node.ok_or_else(|| self.rows.broken("a link leads nowhere"))?;
                below.extend(node.left.into_iter().chain(node.right));
                if found.insert(key, node.value).is_some() {
                    return Err(self.rows.broken("two links lead to one node"));
                }
            }
            level = below;
        }
        found.into_iter().map(|(key, value)| Ok((K::decoded(&key)?, value))).collect()
    }

    async fn inspect(&self, tx: &Tx) -> Result<Inspected<K, V>, Error> {
        let root = self.root(tx).await?;
        let rows: BTreeMap<_, TreeNode<V>> = self.rows.scan(tx).await?.into_iter().collect();
        let wrong = inspect(&root, &rows);
        let entry = |(key, node): (Vec<u8>, TreeNode<V>)| Ok((K::decoded(&key)?, node.value));
        let entries = rows.into_iter().map(entry).collect::<Result<_, Error>>()?;
        Ok(Inspected { entries, wrong })
    }
}

impl<K: Key, V: Serialize + DeserializeOwned + Clone> OrderedMap<K, V> for SearchTree<K, V> {
    async fn at_or_after(&self, tx: &Tx, key: &K) -> Result<Option<(K, V)>, Error> {
        let key = key.encoded();
        let path = self.descend(tx, key.as_slice()).await?;
        // Where the search turned left last, it was just after the key.
        let after = path.into_iter().rfind(|(own, _)| own.as_slice() >= key.as_slice());
        after.map(|(own, node)| Ok((K::decoded(&own)?, node.value))).transpose()
    }
}

/// Every row must be reached once, within the bounds that the nodes above set.
fn inspect<V>(root: &Link, rows: &BTreeMap<Vec<u8>, TreeNode<V>>) -> Vec<String> {
    let (mut wrong, mut reached) = (Vec::new(), 0);
    let mut open = vec![(root, None::<&[u8]>, None::<&[u8]>)];
    while let Some((link, low, high)) = open.pop() {
        let Some(key) = link else { continue };
        let own = key.as_slice();
        // Bounds shrink from node to node, so no way down is longer than there are keys.
        if low.is_some_and(|low| own <= low) || high.is_some_and(|high| own >= high) {
            wrong.push(format!("node {own:x?} is not between {low:x?} and {high:x?}"));
            continue;
        }
        let Some(node) = rows.get(key) else {
            wrong.push(format!("a link leads to {own:x?}, where nothing is"));
            continue;
        };
        reached += 1;
        open.push((&node.left, low, Some(own)));
        open.push((&node.right, Some(own), high));
    }
    if reached != rows.len() {
        wrong.push(format!("{reached} of {} nodes can be reached", rows.len()));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_tree_is_told() {
        let link = |key: u8| (key > 0).then(|| vec![key]);
        let node = |left, right| TreeNode { left: link(left), right: link(right), value: () };
        let found = |root, nodes: &[(u8, u8, u8)]| {
            let rows = nodes.iter().map(|(key, left, right)| (vec![*key], node(*left, *right)));
            inspect(&link(root), &rows.collect()).len()
        };
        assert_eq!(found(2, &[(1, 0, 0), (2, 1, 3), (3, 0, 0)]), 0);
        assert_eq!(found(2, &[(1, 0, 0), (2, 0, 3), (3, 0, 0)]), 1, "one cannot be reached");
        assert_eq!(found(2, &[(1, 0, 0), (2, 3, 1), (3, 0, 0)]), 3, "out of order");
        assert_eq!(found(2, &[(2, 1, 0)]), 1, "a link leads nowhere");
        assert_eq!(found(2, &[(1, 2, 0), (2, 1, 0)]), 1, "a circle");
    }
}
