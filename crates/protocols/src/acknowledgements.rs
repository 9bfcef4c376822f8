//! Acknowledgements that wait for company.
//!
//! A participant tells coordinators which transactions' ends are stable with it. That may be late
//! and costs a message, so several to one coordinator leave together: when they are
//! [many](AT_ONCE_MAX), or when the participant sweeps.

use std::collections::BTreeMap;

use muesli_core::{NodeId, TxnId};

/// So many acknowledgements to one coordinator leave without waiting for more.
pub(crate) const AT_ONCE_MAX: usize = 32;

/// Transactions whose end is to be acknowledged, by coordinator: fewer than [`AT_ONCE_MAX`] each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acknowledgements {
    waiting: BTreeMap<NodeId, Vec<TxnId>>,
}

impl Acknowledgements {
    /// One more. `Some`: these are to leave now, to its coordinator.
    pub(crate) fn add(&mut self, txn: TxnId) -> Option<Vec<TxnId>> {
        let waiting = self.waiting.entry(txn.node).or_default();
        waiting.push(txn);
        assert!(waiting.len() <= AT_ONCE_MAX, "{} at once", waiting.len());
        (waiting.len() == AT_ONCE_MAX).then(|| std::mem::take(waiting))
    }

    /// All that wait, which are to leave now.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = (NodeId, Vec<TxnId>)> + use<> {
        self.assert_invariants(true);
        let all = std::mem::take(&mut self.waiting).into_iter();
        all.filter(|(_, txns)| !txns.is_empty())
    }

    /// Checks what waits; `is_swept`: it is sent soon.
    ///
    /// # Panics
    /// Too many wait for one coordinator, or nobody sends them.
    pub(crate) fn assert_invariants(&self, is_swept: bool) {
        for (node, txns) in &self.waiting {
            assert!(txns.len() < AT_ONCE_MAX, "acknowledgements for {node:?} did not leave");
            assert!(txns.is_empty() || is_swept, "nobody sends what {node:?} is told");
            let are_its_own = txns.iter().all(|txn| txn.node == *node);
            assert!(are_its_own, "an acknowledgement for somebody else");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_leave_when_they_are_many_and_when_they_are_swept() {
        let id = |node, sequence| TxnId { node: NodeId(node), incarnation: 1, sequence };
        let mut all = Acknowledgements::default();
        for sequence in 1..AT_ONCE_MAX as u64 {
            assert_eq!(all.add(id(1, sequence)), None);
        }
        assert_eq!(all.add(id(2, 7)), None);
        all.assert_invariants(true);
        let left = all.add(id(1, AT_ONCE_MAX as u64)).expect("that are many");
        assert_eq!(left, (1..=AT_ONCE_MAX as u64).map(|it| id(1, it)).collect::<Vec<_>>());
        assert_eq!(all.take_all().collect::<Vec<_>>(), [(NodeId(2), vec![id(2, 7)])]);
        assert_eq!(all.take_all().count(), 0);
        all.assert_invariants(false);
    }
}
