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
//!
//! A closed child is a level of its own within its transaction. When it is merged, what it did is
//! its parent's. When it is undone, its parent forgets what nobody has in hand any more: the
//! writes, and where it is run again the reads, too; a child that gave up has read for its
//! transaction, which is validated with that. It does not forget what the open children within it
//! committed. Their compensations have written the same keys, and the transaction, which goes on
//! with a snapshot from before all of that, could not commit with any of them, whoever undid what.

mod before;
mod reads;
#[cfg(test)]
mod tests;
mod written;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use muesli_core::{Row, Scan, SmallBytes, SpaceId};

use super::ahead::ReadAhead;
use crate::error::Error;
use crate::transaction::detour::{Access, AccessWatcher, ChildMark};
use before::RowsBefore;
pub(super) use before::{UsedRows, WrittenRow};
use reads::OwnValue;
pub(super) use reads::{FoundDigest, ReadNotes, SpaceKey};
use written::WrittenKeys;

/// What levels of one tree may do.
#[derive(Clone, Copy, Debug)]
pub(super) struct AllowedAccess {
    /// They use keys of their own; only tests break that.
    pub are_separate: bool,
    /// Nothing is written.
    pub reads_only: bool,
}

impl Default for AllowedAccess {
    fn default() -> AllowedAccess {
        AllowedAccess { are_separate: true, reads_only: false }
    }
}

/// The keys of one attempt of a transaction.
#[derive(Debug)]
pub(super) struct NestingLevel {
    /// How many ancestors it has.
    depth: usize,
    parent: Option<Arc<NestingLevel>>,
    /// Of an open child, which of its parent's it is, in the order in which they begin, from 1.
    number: u64,
    /// How many open children have begun within it.
    begun: AtomicU64,
    /// Whether it is a closed child: a part of its parent's transaction.
    is_closed: bool,
    /// The layer's own space, which bodies leave alone.
    layer: SpaceId,
    allowed: AllowedAccess,
    /// Whether its transaction locks the rows that it uses, and can put back what it wrote.
    locks_rows: bool,
    /// What is read beside bodies.
    ahead: Mutex<Vec<Weak<ReadAhead>>>,
    accesses: Mutex<Accesses>,
}

#[derive(Debug, Default)]
struct Accesses {
    read: ReadNotes,
    written: WrittenKeys,
    /// Where that is to be put back, what there was before.
    before: RowsBefore,
    /// What open descendants have committed.
    below: WrittenKeys,
    /// Which of them wrote it last: the number of the child, of its child, and so on.
    writers: BTreeMap<SpaceKey, Vec<u64>>,
    /// What open descendants have read, whether they committed or not.
    read_below: ReadNotes,
    /// The first access that must not be.
    fault: Option<Error>,
}

impl Accesses {
    /// How it has used a key.
    fn use_of(&self, key: &SpaceKey) -> Option<&'static str> {
        match () {
            () if self.written.find(key).is_some() => Some("written and not committed"),
            () if self.read.has_key(key) => Some("read"),
            () if self.read.has_around(key) => Some("read a range with"),
            () => None,
        }
    }
}

/// How a closed child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClosedEnd {
    /// What it did is its parent's.
    Merged,
    /// Its writes are undone; what it has read stays with its transaction.
    GaveUp,
    /// It is undone, and run again as if it had not been.
    RunsAgain,
}

impl NestingLevel {
    pub fn new(layer: SpaceId, parent: Option<&Arc<NestingLevel>>) -> NestingLevel {
        let (depth, is_closed) = (parent.map_or(0, |parent| parent.depth + 1), false);
        let (locks_rows, ahead) = (false, Mutex::default());
        let allowed = parent.map_or_else(AllowedAccess::default, |parent| parent.allowed);
        let (parent, accesses) = (parent.cloned(), Mutex::default());
        let (number, begun) = (0, AtomicU64::new(0));
        NestingLevel {
            depth,
            parent,
            number,
            begun,
            is_closed,
            layer,
            allowed,
            locks_rows,
            ahead,
            accesses,
        }
    }

    /// An open child of this level, of this number.
    pub fn open(self: &Arc<Self>, number: u64) -> NestingLevel {
        NestingLevel { number, ..NestingLevel::new(self.layer, Some(self)) }
    }

    /// The number of the open child that its transaction's body begins next.
    pub fn next_child(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The outermost level, with what all levels may do.
    pub fn root(layer: SpaceId, allowed: AllowedAccess) -> NestingLevel {
        NestingLevel { allowed, ..NestingLevel::new(layer, None) }
    }

    /// A closed child of this level.
    pub fn closed(parent: &Arc<NestingLevel>) -> NestingLevel {
        let locks_rows = parent.locks_rows;
        NestingLevel {
            is_closed: true,
            locks_rows,
            ..NestingLevel::new(parent.layer, Some(parent))
        }
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

    /// The levels of its transaction that it is within, from itself outwards.
    fn of_transaction(&self) -> impl Iterator<Item = &NestingLevel> {
        std::iter::successors(Some(self), |level| {
            level.parent.as_deref().filter(|_| level.is_closed)
        })
    }

    /// The numbers of the open children that it is within, from the outermost one.
    fn path(&self) -> Vec<u64> {
        let levels = std::iter::once(self).chain(self.ancestors());
        let mut path: Vec<u64> = levels.map(|level| level.number).filter(|it| *it > 0).collect();
        path.reverse();
        path
    }

    /// Those that its transaction is within.
    fn above_transaction(&self) -> impl Iterator<Item = &NestingLevel> {
        self.ancestors().skip(self.of_transaction().count() - 1)
    }

    /// Whether the transaction itself has accessed nothing.
    pub fn is_untouched(&self) -> bool {
        let accesses = self.accesses();
        accesses.read.is_empty() && accesses.written.is_empty()
    }

    /// Whether it has written something, beside locks.
    pub fn has_written(&self) -> bool {
        self.accesses().written.spaces().any(|space| space != self.layer)
    }

    /// Whether open descendants have read something, whether they committed or not.
    pub fn has_read_below(&self) -> bool {
        !self.accesses().read_below.is_empty()
    }

    /// Rows are about to be read beside a body.
    pub fn reads_ahead(&self, ahead: &Arc<ReadAhead>) {
        let mut all = self.ahead.lock().unwrap_or_else(|broken| broken.into_inner());
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(ahead));
    }

    /// What it and its open descendants have read.
    pub fn read_by_all(&self) -> ReadNotes {
        let own = self.accesses();
        let mut all = own.read_below.clone();
        all.append(own.read.clone());
        all
    }

    /// What its transaction, or what that is within, has written to a key that it may read.
    fn own_value(&self, key: &SpaceKey) -> Option<OwnValue> {
        let written = |level: &NestingLevel| level.accesses().written.value(key);
        let below = |level: &NestingLevel| level.accesses().below.value(key);
        let of_transaction = self.of_transaction().find_map(written);
        of_transaction.or_else(|| self.above_transaction().find_map(below))
    }

    /// The same of all keys of a range.
    fn own_within(&self, scan: &Scan) -> BTreeMap<SmallBytes, OwnValue> {
        let mut own = BTreeMap::new();
        let mut add = |keys: &WrittenKeys| {
            for ((_, key), value) in keys.within(scan) {
                own.entry(key.clone()).or_insert(value);
            }
        };
        self.of_transaction().for_each(|level| add(&level.accesses().written));
        self.above_transaction().for_each(|level| add(&level.accesses().below));
        own
    }

    /// An open child of this one committed, or its open children did before it was aborted.
    pub fn take_below(&self, child: &NestingLevel, committed: bool) {
        let number = child.number;
        let mut child = child.accesses();
        let mut below = std::mem::take(&mut child.below);
        let mut writers = std::mem::take(&mut child.writers);
        writers.values_mut().for_each(|path| path.insert(0, number));
        match committed {
            true => {
                writers.extend(child.written.keys().map(|key| (key.clone(), vec![number])));
                below.append(&mut child.written);
            }
            false => below.forget_values(),
        }
        let mut own = self.accesses();
        own.below.append(&mut below);
        own.writers.append(&mut writers);
        own.read_below.append(std::mem::take(&mut child.read_below));
        own.read_below.append(std::mem::take(&mut child.read));
    }

    /// A closed child of this one ended.
    pub fn take_closed(&self, child: &NestingLevel, end: ClosedEnd) {
        assert!(child.is_closed, "an open child keeps what it accessed to itself: {child:?}");
        let Accesses { read, mut written, before, mut below, mut writers, read_below, fault: _ } =
            std::mem::take(&mut *child.accesses());
        let mut own = self.accesses();
        if end != ClosedEnd::Merged {
            below.forget_values();
        }
        own.below.append(&mut below);
        own.writers.append(&mut writers);
        own.read_below.append(read_below);
        if end != ClosedEnd::RunsAgain {
            own.read.append(read);
        }
        if end == ClosedEnd::Merged {
            if self.locks_rows {
                own.take_changed(before, &written);
            }
            own.written.append(&mut written);
        }
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
        self.judge(Access::Write(self.layer, key, None))
    }

    fn judge(&self, access: Access<'_>) -> Result<(), Error> {
        let below = |level: &NestingLevel| level.clash_below(access);
        let above = |ancestor: &NestingLevel| self.clash_above(access, ancestor);
        let clash = self.of_transaction().find_map(below);
        let clash = clash.or_else(|| self.above_transaction().find_map(above));
        if let Some(text) = clash.filter(|_| self.allowed.are_separate) {
            return Err(self.blame(Error::Nesting(text)));
        }
        if let (Access::Act(space, key), true) = (access, self.locks_rows) {
            return Err(self.blame(Error::Nesting(format!(
                "an open child that locks rows changes key `{key:?}` of space number {} by a \
                 delayed action, before which nobody knows what is to be put back: read and write \
                 it, or name the locks and the compensation",
                space.0
            ))));
        }
        let mut own = self.accesses();
        match access {
            Access::Read(space, key) => own.read.ask((space, key.clone())),
            Access::Scan(scan) => own.read.ask_range(scan),
            Access::Write(space, key, value) => {
                let (key, left) = ((space, key.clone()), Some(FoundDigest::of_value(value)));
                if self.locks_rows {
                    own.note_write(&key);
                }
                own.written.write(key, left);
            }
            Access::Act(space, key) => {
                own.written.act((space, key.clone()));
            }
        }
        Ok(())
    }

    /// What a transaction must not do, seen what open children of this level of it have done.
    fn clash_below(&self, access: Access<'_>) -> Option<String> {
        let own = self.accesses();
        let (space, key) = match access {
            Access::Read(space, key) | Access::Write(space, key, _) | Access::Act(space, key) => {
                own.below.find(&(space, key.clone()))?
            }
            Access::Scan(scan) => own.below.within(scan).next()?.0,
        };
        let (depth, does) = (self.depth, verb(access));
        let writer = own.writers.get(&(*space, key.clone())).map_or(&[][..], Vec::as_slice);
        let writer = name_child(writer);
        Some(format!(
            "the transaction at level {depth} {does} key `{key:?}` of space number {}, which \
             {writer} has written and committed: separate what the levels use, \
             or let another open child do it",
            space.0
        ))
    }

    /// What a child must not do, seen what this ancestor has done.
    fn clash_above(&self, access: Access<'_>, ancestor: &NestingLevel) -> Option<String> {
        let above = ancestor.accesses();
        let (key, used) = match access {
            Access::Read(space, key) => {
                let written = above.written.find(&(space, key.clone()))?;
                (written.clone(), "written and not committed")
            }
            Access::Scan(scan) => {
                (above.written.within(scan).next()?.0.clone(), "written and not committed")
            }
            Access::Write(space, key, _) | Access::Act(space, key) => {
                let key = (space, key.clone());
                let used = above.use_of(&key)?;
                (key, used)
            }
        };
        let (depth, does, over) = (self.depth, verb(access), ancestor.depth);
        let (space, key) = key;
        let child = name_child(&self.path());
        Some(format!(
            "{child}, at level {depth}, {does} key `{key:?}` of space number {}, which the \
             transaction at level {over} has {used}: separate what the levels use",
            space.0
        ))
    }
}

/// An open child by its number, and those that it is within.
fn name_child(path: &[u64]) -> String {
    let numbers: Vec<_> = path.iter().rev().map(u64::to_string).collect();
    format!("open child number {}", numbers.join(" of open child number "))
}

fn verb(access: Access<'_>) -> &'static str {
    match access {
        Access::Read(..) => "reads",
        Access::Write(..) | Access::Act(..) => "writes",
        Access::Scan(_) => "reads a range with",
    }
}

impl AccessWatcher for NestingLevel {
    fn begin_child(&self) -> Pin<Box<dyn Future<Output = ChildMark> + Send + '_>> {
        Box::pin(async {
            let all = self.ahead.lock().unwrap_or_else(|broken| broken.into_inner()).clone();
            for ahead in all.iter().filter_map(Weak::upgrade) {
                ahead.idle().await;
            }
            self.accesses().mark()
        })
    }

    fn undo_child(&self, from: ChildMark) {
        self.accesses().undo_to(from);
    }

    fn note(&self, access: Access<'_>) -> Result<(), Error> {
        let space = match access {
            Access::Read(space, _) | Access::Write(space, ..) | Access::Act(space, _) => space,
            Access::Scan(scan) => scan.space,
        };
        if space == self.layer {
            let text = format!("space number {} is the open nesting layer's own", space.0);
            return Err(self.blame(Error::Nesting(text)));
        }
        if let (Access::Write(space, key, _) | Access::Act(space, key), true) =
            (access, self.allowed.reads_only)
        {
            return Err(self.blame(Error::Nesting(format!(
                "a read-only transaction writes key `{key:?}` of space number {}, itself or in an \
                 open child: it and its open children may read, and ask for abstract locks, which \
                 are looked at and not taken; to write, run it on a handle without `read_only`",
                space.0
            ))));
        }
        self.judge(access)
    }

    fn acts_at_once(&self, space: SpaceId, key: &SmallBytes) {
        self.accesses().written.acts_at_once(&(space, key.clone()));
    }

    fn reads_before_write(&self, space: SpaceId, key: &SmallBytes) -> bool {
        self.locks_rows && !self.knows_before(&(space, key.clone()))
    }

    fn found(&self, space: SpaceId, key: &SmallBytes, value: Option<&SmallBytes>) {
        let key = (space, key.clone());
        let own = self.own_value(&key);
        let is_before = self.locks_rows && !self.has_written_row(&key);
        let mut accesses = self.accesses();
        if is_before {
            accesses.note_found(key.clone(), value.cloned());
        }
        accesses.read.found(key, value, own);
    }

    fn found_range(&self, scan: &Scan, rows: &[Row]) {
        let own = self.own_within(scan);
        self.accesses().read.found_range(scan, rows, &own);
    }
}
