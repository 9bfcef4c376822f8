//! Appends that no read observed.
//!
//! They come after the whole list that was read, in an unknown order: the last writer (ww) and
//! every reader of the whole list (rw) precede each of them. Auxiliary nodes for all prefixes and
//! all suffixes of the group of unseen writers keep this linear, and let a member of the group
//! precede everyone in it but itself.

use super::sink::EdgeSink;
use crate::history::TxnIndex;
use crate::level::EdgeSet;
use crate::resolve::{ChainTail, Resolved};

pub(super) fn add_tails(resolved: &Resolved<'_>, set: EdgeSet, sink: &mut EdgeSink) {
    if resolved.tails.is_empty() {
        return;
    }
    let mut group_of: Vec<Option<Group<'_>>> = vec![None; resolved.history.keys.len()];
    for tail in &resolved.tails {
        let group = Group::new(tail, sink);
        if let Some(last) = resolved.chains.of(tail.key).last() {
            group.precede(last.writer, sink);
        }
        group_of[tail.key.index()] = Some(group);
    }
    if !set.rw {
        return;
    }
    for reader in resolved.history.indices() {
        for place in resolved.reads.of(reader) {
            if let (Some(group), None) = (group_of[place.key.index()], resolved.chains.next(*place))
            {
                group.precede(reader, sink);
            }
        }
    }
}

/// The nodes of one tail: `first + i` leads to the writers `..=i`, `first + len + i` to `i..`.
#[derive(Clone, Copy)]
struct Group<'t> {
    writers: &'t [TxnIndex],
    first: u32,
}

impl<'t> Group<'t> {
    fn new(tail: &'t ChainTail, sink: &mut EdgeSink) -> Self {
        let writers = tail.writers.as_slice();
        let nodes: Vec<u32> = (0..2 * writers.len()).map(|_| sink.new_node()).collect();
        let (prefixes, suffixes) = nodes.split_at(writers.len());
        for (i, writer) in writers.iter().enumerate() {
            sink.push(prefixes[i], writer.0);
            sink.push(suffixes[i], writer.0);
            if i > 0 {
                sink.push(prefixes[i], prefixes[i - 1]);
                sink.push(suffixes[i - 1], suffixes[i]);
            }
        }
        Group { writers, first: nodes[0] }
    }

    /// Puts `txn` before all writers of the tail but itself.
    fn precede(&self, txn: TxnIndex, sink: &mut EdgeSink) {
        let length = self.writers.len() as u32;
        match self.writers.binary_search(&txn) {
            Err(_) => sink.push(txn.0, self.first + length - 1),
            Ok(own) => {
                let own = own as u32;
                if own > 0 {
                    sink.push(txn.0, self.first + own - 1);
                }
                if own + 1 < length {
                    sink.push(txn.0, self.first + length + own + 1);
                }
            }
        }
    }
}
