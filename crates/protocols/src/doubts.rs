//! Asking all other repositories whether they are in doubt of what clients began that are gone.
//!
//! What a repository keeps of such clients it keeps for others that may be in doubt, and forgets
//! once all have said that they are not. One question is under way at a time, about at most
//! [`CLIENTS_ASKED_MAX`] clients, with one message to each repository; the next one is about the
//! clients behind those. An answer that is lost ends the question: all of them are asked about
//! again when the repository looks for silent clients next.

use std::collections::BTreeSet;

use muesli_core::{Catalog, Nanos, NodeId, RepositoryId};

/// A client and an incarnation: all of its transactions of earlier incarnations are meant.
pub type ClientsUntil = (NodeId, u32);

/// Of so many clients is asked at a time.
pub const CLIENTS_ASKED_MAX: usize = 256;

/// A question that is under way.
///
/// Invariants: somebody has not answered, and it is not whoever asks; the clients ascend, up to the
/// last one that was asked about, and there are no more than are asked about at a time.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    /// When it was asked; it tells its answers from those of an earlier one.
    pub asked: Nanos,
    /// Those of which nobody who has answered is in doubt.
    pub clients: Vec<ClientsUntil>,
    /// The last one that was asked about.
    pub last: NodeId,
    /// Who has not answered.
    missing: BTreeSet<RepositoryId>,
}

impl Asking {
    /// A question of `me` about these clients, of which there is one at least; and who is asked.
    pub fn new(
        me: RepositoryId,
        asked: Nanos,
        clients: Vec<ClientsUntil>,
        catalog: &Catalog,
    ) -> (Asking, BTreeSet<RepositoryId>) {
        assert!(clients.len() <= CLIENTS_ASKED_MAX, "{} clients at a time", clients.len());
        assert!(clients.is_sorted(), "clients out of order");
        let all = (0..catalog.repositories() as u16).map(RepositoryId);
        let others: BTreeSet<_> = all.filter(|other| *other != me).collect();
        assert!(!others.contains(&me), "{me:?} asks itself whether it is in doubt");
        let (last, _) = *clients.last().expect("a question is about somebody");
        (Asking { asked, clients, last, missing: others.clone() }, others)
    }

    /// A repository has answered the question of then, and is in doubt of nothing of these.
    pub fn observe(&mut self, repository: RepositoryId, asked: Nanos, clients: &[ClientsUntil]) {
        if asked == self.asked && self.missing.remove(&repository) {
            let clients: BTreeSet<&ClientsUntil> = clients.iter().collect();
            assert!(self.clients.len() <= CLIENTS_ASKED_MAX, "asked about too many clients");
            self.clients.retain(|client| clients.contains(client));
            let last = self.clients.last().map_or(self.last, |(node, _)| *node);
            assert!(last <= self.last, "{last:?} was not asked about, and is in doubt of nothing");
        }
    }

    /// Checks the invariants, of a question of `me`.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self, me: RepositoryId) {
        assert!(!self.is_over(), "all have answered, and the question is under way");
        assert!(!self.missing.contains(&me), "{me:?} asks itself");
        assert!(self.clients.len() <= CLIENTS_ASKED_MAX, "{} clients", self.clients.len());
        assert!(self.clients.is_sorted(), "clients out of order");
        let last = self.clients.last().map_or(self.last, |(node, _)| *node);
        assert!(last <= self.last, "{last:?} is behind the last that was asked about");
    }

    /// Whether all have answered.
    pub fn is_over(&self) -> bool {
        self.missing.is_empty()
    }
}

/// Counts, in tests of this crate, the transactions that are looked at to find what may be
/// forgotten.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps {
    #[cfg(test)]
    count: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl Steps {
    /// One more is looked at.
    #[inline]
    pub fn count(&self) {
        #[cfg(test)]
        self.count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

    /// How many there were since this was asked last.
    #[cfg(test)]
    pub fn take(&self) -> u64 {
        self.count.swap(0, std::sync::atomic::Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_once_and_for_its_own_question() {
        let nodes = [0, 1, 2].map(NodeId);
        let catalog = Catalog::new(&nodes, 1, &nodes).unwrap();
        let clients = vec![(NodeId(7), 2), (NodeId(8), 3), (NodeId(9), 1)];
        let (me, asked) = (RepositoryId(1), Nanos(5));
        let (mut asking, others) = Asking::new(me, asked, clients.clone(), &catalog);
        assert_eq!(Vec::from_iter(others), [RepositoryId(0), RepositoryId(2)]);
        asking.observe(RepositoryId(0), Nanos(4), &[]);
        asking.observe(RepositoryId(0), asked, &clients[..2]);
        asking.observe(RepositoryId(0), asked, &[]);
        assert!(!asking.is_over() && asking.clients == clients[..2]);
        asking.observe(RepositoryId(2), asked, &clients[1..]);
        assert!(asking.is_over() && asking.clients == clients[1..2]);
        assert_eq!(asking.last, NodeId(9));
    }
}
