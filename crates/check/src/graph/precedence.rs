//! "Ended before the other began", with linearly many edges.
//!
//! The pairs of an interval order can be quadratic in number, even after removing implied ones.
//! A chain of points in time carries the same paths: each transaction leads to the first point
//! after its end, each point to the next, and the last point before its begin leads to each
//! transaction. Points are only made where an end is followed by a begin.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::sink::EdgeSink;
use crate::history::{Transaction, TxnIndex};

/// When a transaction ran; `end` `None` is later than everything.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    txn: TxnIndex,
    begin: u64,
    end: Option<u64>,
    /// Whether it comes after what ended before its begin; else it only comes before others.
    follows: bool,
}

impl Interval {
    /// As its client ran it.
    pub(super) fn new(txn: TxnIndex, transaction: &Transaction) -> Self {
        let (begin, end) = (transaction.begin, transaction.real_end());
        Interval { txn, begin, end, follows: true }
    }

    /// As real time counts: one that may be stale begins at the moment that it must see.
    pub(super) fn in_real_time(txn: TxnIndex, transaction: &Transaction, follows: bool) -> Self {
        let begin = transaction.real_begin();
        Interval { begin, follows, ..Interval::new(txn, transaction) }
    }
}

/// Whether an end and a begin at the same instant are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ties {
    /// No: on a shared clock, equal readings order nothing.
    Concurrent,
    /// Yes, in order of recording: one session does one thing after the other.
    InOrder,
}

/// Adds a path between any two of `intervals` of which one ended before the other began.
pub(super) fn precede(intervals: &mut [Interval], ties: Ties, sink: &mut EdgeSink) {
    intervals.sort_by_key(|interval| (interval.begin, interval.txn));
    let mut running: BinaryHeap<Reverse<(u64, TxnIndex)>> = BinaryHeap::new();
    let mut point: Option<u32> = None;
    for interval in intervals.iter() {
        let ended = |end: u64| match ties {
            Ties::Concurrent => end < interval.begin,
            Ties::InOrder => end <= interval.begin,
        };
        let follows = interval.follows;
        if follows && running.peek().is_some_and(|Reverse((end, _))| ended(*end)) {
            let next = sink.new_node();
            if let Some(point) = point {
                sink.push(point, next);
            }
            point = Some(next);
            while let Some(Reverse((end, txn))) = running.pop() {
                if !ended(end) {
                    running.push(Reverse((end, txn)));
                    break;
                }
                sink.push(txn.0, next);
            }
        }
        if let Some(point) = point.filter(|_| follows) {
            sink.push(point, interval.txn.0);
        }
        if let Some(end) = interval.end {
            running.push(Reverse((end, interval.txn)));
        }
    }
}
