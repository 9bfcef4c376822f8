//! What a transaction with open children accesses, and what it must leave alone.
//!
//! An open child is a transaction of its own: it sees what is committed, and its effects are
//! committed before its ancestors are. So what an ancestor has in hand, a child must not touch, and
//! the other way round:
//!
//! 1. an ancestor must not access what an open descendant of its own has committed: that is newer
//!    than what the ancestor has seen, and would be so on every retry;
//! 2. a child must not read what an ancestor has written and not committed: it would see the old
//!    value;
//! 3. a child must not write what an ancestor has accessed.
//!
//! Each is a mistake of the program, which another attempt would make as well.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use muesli_core::{Scan, SmallBytes, SpaceId};

use crate::error::Error;
use crate::transaction::detour::{Access, AccessWatcher};

type SpaceKey = (SpaceId, SmallBytes);

/// The keys of one attempt of a transaction.
#[derive(Debug)]
pub(super) struct NestingLevel {
    /// How many ancestors it has.
    depth: usize,
    parent: Option<Arc<NestingLevel>>,
    /// The layer's own space, which bodies leave alone.
    layer: SpaceId,
    accesses: Mutex<Accesses>,
}

#[derive(Debug, Default)]
struct Accesses {
    read: BTreeSet<SpaceKey>,
    scanned: Vec<Scan>,
    written: BTreeSet<SpaceKey>,
    /// What open descendants have committed.
    below: BTreeSet<SpaceKey>,
    /// The first access that must not be.
    fault: Option<Error>,
}

impl Accesses {
    /// How it has used a key.
    fn use_of(&self, key: &SpaceKey) -> Option<&'static str> {
        let scanned = || self.scanned.iter().any(|scan| covers(scan, key));
        match () {
            () if self.written.contains(key) => Some("written"),
            () if self.read.contains(key) => Some("read"),
            () if scanned() => Some("read a range with"),
            () => None,
        }
    }
}

fn covers(scan: &Scan, (space, key): &SpaceKey) -> bool {
    let below = scan.hi.as_ref().is_none_or(|hi| key < hi);
    scan.space == *space && scan.lo <= *key && below
}

fn first_within<'a>(keys: &'a BTreeSet<SpaceKey>, scan: &Scan) -> Option<&'a SpaceKey> {
    let from = keys.range((scan.space, scan.lo.clone())..);
    from.take_while(|(space, _)| *space == scan.space).find(|key| covers(scan, key))
}

impl NestingLevel {
    pub fn new(layer: SpaceId, parent: Option<&Arc<NestingLevel>>) -> NestingLevel {
        let depth = parent.map_or(0, |parent| parent.depth + 1);
        NestingLevel { depth, parent: parent.cloned(), layer, accesses: Mutex::default() }
    }

    fn accesses(&self) -> MutexGuard<'_, Accesses> {
        self.accesses.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    fn ancestors(&self) -> impl Iterator<Item = &NestingLevel> {
        std::iter::successors(self.parent.as_deref(), |level| level.parent.as_deref())
    }

    fn top(&self) -> &NestingLevel {
        self.ancestors().last().unwrap_or(self)
    }

    /// Whether the transaction itself has accessed nothing.
    pub fn is_untouched(&self) -> bool {
        let accesses = self.accesses();
        let reads = accesses.read.is_empty() && accesses.scanned.is_empty();
        reads && accesses.written.is_empty()
    }

    /// Whether it has written something, beside locks.
    pub fn has_written(&self) -> bool {
        self.accesses().written.iter().any(|(space, _)| *space != self.layer)
    }

    /// An open child of this one committed, or its open children did before it was aborted.
    pub fn take_below(&self, child: &NestingLevel, committed: bool) {
        let mut child = child.accesses();
        let mut below = std::mem::take(&mut child.below);
        if committed {
            below.append(&mut child.written);
        }
        self.accesses().below.append(&mut below);
    }

    /// What must not be, of any transaction of the tree.
    pub fn fault(&self) -> Option<Error> {
        self.top().accesses().fault.clone()
    }

    /// A mistake of the program: no attempt is to commit.
    pub fn blame(&self, error: Error) -> Error {
        self.top().accesses().fault.get_or_insert(error).clone()
    }

    /// A lock is to be taken. Its row is a key like others.
    pub fn note_lock(&self, key: &SmallBytes) -> Result<(), Error> {
        self.judge(Access::Write(self.layer, key))
    }

    fn judge(&self, access: Access<'_>) -> Result<(), Error> {
        let clash = {
            let own = self.accesses();
            match access {
                Access::Read(space, key) | Access::Write(space, key) => {
                    own.below.get(&(space, key.clone())).map(|key| self.clash_below(access, key))
                }
                Access::Scan(scan) => {
                    first_within(&own.below, scan).map(|key| self.clash_below(access, key))
                }
            }
        };
        let clash = clash
            .or_else(|| self.ancestors().find_map(|ancestor| self.clash_above(access, ancestor)));
        if let Some(text) = clash {
            return Err(self.blame(Error::Nesting(text)));
        }
        let mut own = self.accesses();
        match access {
            Access::Read(space, key) => drop(own.read.insert((space, key.clone()))),
            Access::Write(space, key) => drop(own.written.insert((space, key.clone()))),
            Access::Scan(scan) => own.scanned.push(scan.clone()),
        }
        Ok(())
    }

    fn clash_below(&self, access: Access<'_>, (space, key): &SpaceKey) -> String {
        let (depth, does) = (self.depth, verb(access));
        format!(
            "the transaction at level {depth} {does} key `{key:?}` of space number {}, which an \
             open child of its own has written and committed: separate what the levels use, or \
             let another open child do it",
            space.0
        )
    }

    /// What a child must not do, seen what this ancestor has done.
    fn clash_above(&self, access: Access<'_>, ancestor: &NestingLevel) -> Option<String> {
        let above = ancestor.accesses();
        let (key, used) = match access {
            Access::Read(space, key) => {
                (above.written.get(&(space, key.clone()))?.clone(), "written and not committed")
            }
            Access::Scan(scan) => {
                (first_within(&above.written, scan)?.clone(), "written and not committed")
            }
            Access::Write(space, key) => {
                let key = (space, key.clone());
                let used = above.use_of(&key)?;
                (key, used)
            }
        };
        let (depth, does, over) = (self.depth, verb(access), ancestor.depth);
        let (space, key) = key;
        Some(format!(
            "the open child at level {depth} {does} key `{key:?}` of space number {}, which the \
             transaction at level {over} has {used}: separate what the levels use",
            space.0
        ))
    }
}

fn verb(access: Access<'_>) -> &'static str {
    match access {
        Access::Read(..) => "reads",
        Access::Write(..) => "writes",
        Access::Scan(_) => "reads a range with",
    }
}

impl AccessWatcher for NestingLevel {
    fn note(&self, access: Access<'_>) -> Result<(), Error> {
        let space = match access {
            Access::Read(space, _) | Access::Write(space, _) => space,
            Access::Scan(scan) => scan.space,
        };
        if space == self.layer {
            let text = format!("space number {} is the open nesting layer's own", space.0);
            return Err(self.blame(Error::Nesting(text)));
        }
        self.judge(access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: SpaceId = SpaceId(3);

    fn key(name: &str) -> SmallBytes {
        name.into()
    }

    fn read(level: &NestingLevel, name: &str) -> Result<(), Error> {
        level.note(Access::Read(SPACE, &key(name)))
    }

    fn write(level: &NestingLevel, name: &str) -> Result<(), Error> {
        level.note(Access::Write(SPACE, &key(name)))
    }

    fn scan(level: &NestingLevel, lo: &str, hi: &str) -> Result<(), Error> {
        let (lo, hi) = (key(lo), Some(key(hi)));
        level.note(Access::Scan(&Scan { space: SPACE, lo, hi, reverse: false, limit: 9 }))
    }

    fn two() -> (Arc<NestingLevel>, NestingLevel) {
        let root = Arc::new(NestingLevel::new(SpaceId(9), None));
        let child = NestingLevel::new(SpaceId(9), Some(&root));
        (root, child)
    }

    /// What an ancestor did, what a child does, and whether it may.
    #[test]
    fn a_child_keeps_away_from_what_its_ancestors_have_in_hand() {
        type Does = fn(&NestingLevel) -> Result<(), Error>;
        let (reads, writes): (Does, Does) = (|it| read(it, "b"), |it| write(it, "b"));
        let (scans, beside): (Does, Does) = (|it| scan(it, "a", "c"), |it| scan(it, "c", "d"));
        for (above, below, may) in [
            (reads, reads, true),
            (scans, reads, true),
            (scans, scans, true),
            (reads, writes, false),
            (scans, writes, false),
            (beside, writes, true),
            (writes, writes, false),
            (writes, reads, false),
            (writes, scans, false),
            (writes, beside, true),
        ] {
            let (root, child) = two();
            above(&root).unwrap();
            let did = below(&child);
            assert_eq!(did.is_ok(), may, "{did:?}");
            assert_eq!(root.fault().is_some(), !may);
        }
    }

    #[test]
    fn an_ancestor_keeps_away_from_what_its_children_committed() {
        for committed in [true, false] {
            let (root, child) = two();
            write(&child, "b").unwrap();
            root.take_below(&child, committed);
            let sibling = NestingLevel::new(SpaceId(9), Some(&root));
            assert!(read(&sibling, "b").is_ok(), "a sibling may");
            for did in [read(&root, "b"), write(&root, "b"), scan(&root, "a", "c")] {
                assert_eq!(did.is_err(), committed, "{did:?}");
            }
            assert!(read(&root, "a").is_ok());
        }
    }

    #[test]
    fn errors_name_both_accesses_and_their_levels() {
        let (root, child) = two();
        read(&root, "b").unwrap();
        let text = write(&child, "b").unwrap_err().to_string();
        for part in ["level 1 writes", "level 0 has read", "`b`", "space number 3"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn the_layers_space_is_its_own() {
        let (root, _) = two();
        assert!(root.note(Access::Read(SpaceId(9), &key("b"))).is_err());
    }
}
