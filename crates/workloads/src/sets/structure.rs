//! The structures of the library behind one face.

use muesli::structures::{
    HashTable, Inspected, KeyedMap, LinkedList, OrderedMap, SearchTree, SkipList,
};
use muesli::{Error, Space, Tx};

use super::changing::SetCall;
use super::object_list::ObjectList;
use super::object_skip_list::ObjectSkipList;
use super::object_table::TableOfObjects;
use super::object_tree::ObjectTree;
use crate::interface::Interface;
use crate::parameters::Values;

/// Which structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StructureKind {
    /// A skip list with so many levels.
    SkipList(u8),
    /// A sorted list.
    List,
    /// A hash table with so many buckets.
    HashTable(u32),
    /// A binary search tree.
    Tree,
    /// A sorted list whose nodes are objects.
    ObjectList,
    /// A hash table whose buckets, so many, are objects.
    ObjectTable(u32),
    /// A skip list with so many levels, whose nodes are objects.
    ObjectSkipList(u8),
    /// A binary search tree whose nodes are objects.
    ObjectTree,
}

impl StructureKind {
    /// A skip list, with the parameters `levels` and `interface`.
    pub fn skip_list(values: &Values) -> StructureKind {
        let levels = values.count("levels") as u8;
        match Interface::new(values) {
            Interface::Rows => StructureKind::SkipList(levels),
            Interface::Objects => StructureKind::ObjectSkipList(levels),
        }
    }

    /// A search tree, with the parameter `interface`.
    pub fn tree(values: &Values) -> StructureKind {
        match Interface::new(values) {
            Interface::Rows => StructureKind::Tree,
            Interface::Objects => StructureKind::ObjectTree,
        }
    }

    /// Whether it gets its shape from the order in which keys are added.
    pub fn is_tree(self) -> bool {
        matches!(self, StructureKind::Tree | StructureKind::ObjectTree)
    }

    /// A sorted list, with the parameter `interface`.
    pub fn list(values: &Values) -> StructureKind {
        match Interface::new(values) {
            Interface::Rows => StructureKind::List,
            Interface::Objects => StructureKind::ObjectList,
        }
    }

    /// A hash table, with the parameters `buckets` and `interface`.
    pub fn hash_table(values: &Values) -> StructureKind {
        let buckets = values.count("buckets") as u32;
        match Interface::new(values) {
            Interface::Rows => StructureKind::HashTable(buckets),
            Interface::Objects => StructureKind::ObjectTable(buckets),
        }
    }
}

/// A set of numbers: each key has a value that is a function of it.
#[derive(Clone, Debug)]
pub(super) enum Structure {
    SkipList(SkipList<u64, u64>),
    List(LinkedList<u64, u64>),
    HashTable(HashTable<u64, u64>),
    Tree(SearchTree<u64, u64>),
    ObjectList(ObjectList),
    ObjectTable(TableOfObjects),
    ObjectSkipList(ObjectSkipList),
    ObjectTree(ObjectTree),
}

macro_rules! each {
    ($structure:expr, $map:ident => $does:expr) => {
        match $structure {
            Structure::SkipList($map) => $does,
            Structure::List($map) => $does,
            Structure::HashTable($map) => $does,
            Structure::Tree($map) => $does,
            Structure::ObjectList($map) => $does,
            Structure::ObjectTable($map) => $does,
            Structure::ObjectSkipList($map) => $does,
            Structure::ObjectTree($map) => $does,
        }
    };
}

/// What belongs to a key.
pub(super) fn value_of(key: u64) -> u64 {
    !key
}

impl Structure {
    pub fn new(kind: StructureKind, space: Space, number: u32) -> Structure {
        let name = &*format!("set {number}");
        match kind {
            StructureKind::SkipList(levels) => {
                Structure::SkipList(SkipList::with_levels(space, name, levels))
            }
            StructureKind::List => Structure::List(LinkedList::new(space, name)),
            StructureKind::HashTable(buckets) => {
                Structure::HashTable(HashTable::new(space, name, buckets))
            }
            StructureKind::Tree => Structure::Tree(SearchTree::new(space, name)),
            StructureKind::ObjectList => Structure::ObjectList(ObjectList::new(space, number)),
            StructureKind::ObjectTable(buckets) => {
                Structure::ObjectTable(TableOfObjects::new(space, number, buckets))
            }
            StructureKind::ObjectSkipList(levels) => {
                Structure::ObjectSkipList(ObjectSkipList::new(space, number, levels))
            }
            StructureKind::ObjectTree => Structure::ObjectTree(ObjectTree::new(space, number)),
        }
    }

    /// Whether a key is there, found by a search; the value if it is another key's.
    pub async fn contains(&self, tx: &Tx, key: u64) -> Result<(bool, Option<u64>), Error> {
        let found = match self {
            Structure::SkipList(map) => map.at_or_after(tx, &key).await?,
            Structure::List(map) => map.at_or_after(tx, &key).await?,
            Structure::HashTable(map) => map.get(tx, &key).await?.map(|value| (key, value)),
            Structure::Tree(map) => map.at_or_after(tx, &key).await?,
            Structure::ObjectList(map) => map.at_or_after(tx, key).await?,
            Structure::ObjectTable(map) => map.get(tx, key).await?.map(|value| (key, value)),
            Structure::ObjectSkipList(map) => map.at_or_after(tx, key).await?,
            Structure::ObjectTree(map) => map.at_or_after(tx, key).await?,
        };
        let wrong = found.filter(|(key, value)| *value != value_of(*key)).map(|(_, value)| value);
        Ok((found.is_some_and(|(found, _)| found == key), wrong))
    }

    /// Adds a key; whether it was absent.
    pub async fn add(&self, tx: &Tx, key: u64) -> Result<bool, Error> {
        each!(self, map => map.add(tx, &key, &value_of(key)).await)
    }

    /// Removes a key; whether it was there.
    pub async fn remove(&self, tx: &Tx, key: u64) -> Result<bool, Error> {
        Ok(each!(self, map => map.remove(tx, &key).await?).is_some())
    }

    /// Does something with a key; whether it was there, or that had an effect.
    pub async fn call(&self, tx: &Tx, key: u64, call: SetCall) -> Result<bool, Error> {
        match call {
            SetCall::Look => self.contains(tx, key).await.map(|(found, _)| found),
            SetCall::Add => self.add(tx, key).await,
            SetCall::Remove => self.remove(tx, key).await,
        }
    }

    pub async fn entries(&self, tx: &Tx) -> Result<Vec<(u64, u64)>, Error> {
        each!(self, map => map.entries(tx).await)
    }

    pub async fn inspect(&self, tx: &Tx) -> Result<Inspected<u64, u64>, Error> {
        each!(self, map => map.inspect(tx).await)
    }

    pub fn is_ordered(&self) -> bool {
        !matches!(self, Structure::HashTable(_) | Structure::ObjectTable(_))
    }
}
