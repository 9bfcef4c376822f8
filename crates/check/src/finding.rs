//! What is wrong with single reads, writes and replica chains, without looking at any cycle.

use std::collections::BTreeMap;
use std::fmt;

/// How many findings of one sort are kept in full; all are counted.
const KEPT_PER_SORT: u64 = 10;

/// The sort of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anomaly {
    /// Two transactions installed the same version of a key.
    DuplicateVersion,
    /// A committed write without a version: its place in the order is unknown.
    MissingVersion,
    /// A read of a version, or of an element, that nobody wrote.
    UnknownVersion,
    /// A read of something an uncommitted transaction wrote (G1a).
    DirtyRead,
    /// A read of a write that its transaction overwrote later (G1b).
    IntermediateRead,
    /// One transaction read two versions of one key.
    UnrepeatableRead,
    /// A read that disagrees with the transaction's own writes, or a row outside its scan.
    InternalRead,
    /// The value read is not the value written under that version.
    ValueMismatch,
    /// A replica's chain at the end is not the chain of committed versions.
    ReplicaChain,
    /// Two reads of a list of which neither is a prefix of the other.
    IncompatibleOrder,
    /// An element appended twice, or twice in one list.
    DuplicateElement,
    /// A transaction that read all keys of a sum saw another total.
    Sum,
    /// A transaction is part of a root that the history does not have.
    MissingRoot,
    /// A transaction ran before its root or, though it is no handler, after it.
    OutsideRoot,
    /// A root ended otherwise than its own transactions.
    RootOutcome,
    /// No serial order of roots explains what their operations answered.
    Operations,
}

impl Anomaly {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Anomaly::DuplicateVersion => "duplicate version",
            Anomaly::MissingVersion => "missing version",
            Anomaly::UnknownVersion => "unknown version",
            Anomaly::DirtyRead => "dirty read (G1a)",
            Anomaly::IntermediateRead => "intermediate read (G1b)",
            Anomaly::UnrepeatableRead => "unrepeatable read",
            Anomaly::InternalRead => "internal inconsistency",
            Anomaly::ValueMismatch => "value mismatch",
            Anomaly::ReplicaChain => "replica chain",
            Anomaly::IncompatibleOrder => "incompatible order",
            Anomaly::DuplicateElement => "duplicate element",
            Anomaly::Sum => "sum",
            Anomaly::MissingRoot => "missing root",
            Anomaly::OutsideRoot => "outside of its root",
            Anomaly::RootOutcome => "outcome of a root",
            Anomaly::Operations => "operations",
        }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its sort.
    pub anomaly: Anomaly,
    /// Whether a committed transaction is at fault; only the levels that judge aborted and
    /// running transactions care for the others.
    pub committed: bool,
    /// What happened, with the transactions, keys and versions.
    pub detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.anomaly, self.detail)
    }
}

/// All findings of a history: every one counted, the first of each sort kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    counts: BTreeMap<(Anomaly, bool), u64>,
    kept: Vec<Finding>,
}

impl Findings {
    pub(crate) fn add(
        &mut self,
        anomaly: Anomaly,
        committed: bool,
        detail: impl FnOnce() -> String,
    ) {
        let count = self.counts.entry((anomaly, committed)).or_insert(0);
        *count += 1;
        if *count <= KEPT_PER_SORT {
            self.kept.push(Finding { anomaly, committed, detail: detail() });
        }
    }

    /// The findings for which `counts` says they matter: their number and the kept ones.
    pub(crate) fn select(&self, counts: impl Fn(Anomaly, bool) -> bool) -> (u64, Vec<Finding>) {
        let total = self.counts.iter().filter(|((a, c), _)| counts(*a, *c)).map(|(_, n)| n).sum();
        let kept = self.kept.iter().filter(|f| counts(f.anomaly, f.committed)).cloned().collect();
        (total, kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_the_first_kept() {
        let mut findings = Findings::default();
        for i in 0..25 {
            findings.add(Anomaly::DirtyRead, true, || i.to_string());
        }
        findings.add(Anomaly::DirtyRead, false, || "aborted".to_owned());
        let (total, kept) = findings.select(|_, committed| committed);
        assert_eq!(total, 25);
        assert_eq!(kept.len(), 10);
        assert_eq!(findings.select(|_, _| true).0, 26);
    }
}
