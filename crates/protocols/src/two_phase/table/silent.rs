//! Clients that are gone: what is forgotten of them, and when.
//!
//! # What nobody can ask for
//! A client that closes says that all of its transactions are settled. Of one that is killed, and
//! so is silent for its lease, what was refused is forgotten, but for the number of the last one:
//! the client may have the votes of all others, and if it comes back and asks again it must not get
//! this one. What is not known below that number is refused as [what comes
//! late](self#requests-that-come-late) is. The number is kept of as many silent clients as [so
//! many](REFUSED_CLIENTS_MAX); those that were silent for longest are forgotten for further ones.
//! What was committed may be asked for by another participant that is in doubt.
//! So this repository asks all others whether they are, and forgets when all have said that they
//! are not. That is for good: whoever took part in a commit had voted yes, stably, before it was
//! decided, and so either is in doubt as it is asked or knows the end, stably, before it answers.
//! Meanwhile nothing may have come to what is kept of the client, or the answers would not be about
//! that: a client that was heard of, and of which something was put in, is not silent any more. Of
//! incarnations before a client's newest nothing new is ever taken up, so they are asked for as
//! soon as nothing of them is prepared here.
//!
//! # Requests that come late
//! A copy of the request for votes may come after its transaction was forgotten, from a buffer or
//! from a client that was cut off. To take it up would be to do it twice. No clock can exclude
//! that, but the transaction's snapshot tells: what committed here came to lie above its own
//! snapshot, and so did what was committed here by the time it was forgotten. So the table keeps
//! one number, the *lower bound*: how far commits had come here when a client was forgotten last. A
//! client that is not known gets that as its own lower bound, and of what it asks for below nothing
//! is taken up that is not known. It is told so, and what commits have come to here; if it asked
//! once, nobody has voted on it here, and it runs again above the lower bound. If it asked more
//! than once, or has waited for so long that it has given up, an earlier copy may have been taken
//! up: then it does not know what became of the transaction, and says so to whoever runs it.

use std::ops::Bound;

use super::*;
use crate::doubts::ClientsUntil;

/// Of so many silent clients it is kept up to where their transactions may have been refused.
pub(in crate::two_phase) const REFUSED_CLIENTS_MAX: usize = 4_096;

impl<V: Variant> Table<V> {
    /// A coordinator, which may have been forgotten if it was not known.
    pub(super) fn known_mut(&mut self, node: NodeId) -> &mut KnownCoordinator {
        let lower_bound = self.lower_bound;
        self.settled
            .entry(node)
            .or_insert_with(|| KnownCoordinator { lower_bound, ..KnownCoordinator::default() })
    }

    /// Forgets coordinators that may go and were not heard of since, with what was refused or
    /// aborted of theirs. One that has something prepared or committed here stays. (Unless `kept`
    /// is false, to see it noticed: then what was committed goes as well.) Commits here have come
    /// to `reached`. Returns of how many coordinators nothing is left.
    pub fn forget_silent(
        &mut self,
        since: Nanos,
        kept: bool,
        reached: u64,
        may_go: impl Fn(NodeId) -> bool,
    ) -> u64 {
        let mut forgotten = 0;
        let silent =
            self.settled.iter().filter(|(node, known)| known.seen_at < since && may_go(**node));
        let silent: Vec<_> = silent.map(|(node, _)| *node).collect();
        for node in silent {
            let end = self.settled[&node].incarnation.saturating_add(1);
            match kept {
                true => {
                    self.note_refused(node);
                    self.forget_refusals_before(node, end);
                }
                false => self.forget_settled(node, self.settled[&node].incarnation, u64::MAX),
            }
            self.count_out(node);
            forgotten += u64::from(self.forget_if_empty(node, reached));
        }
        forgotten + self.forget_refused(since, reached)
    }

    /// Notes up to where transactions of a client's newest life were refused or aborted.
    fn note_refused(&mut self, node: NodeId) {
        let incarnation = self.settled[&node].incarnation;
        let first = TxnId { node, incarnation, sequence: 0 };
        let all = self.entries.range(first..=TxnId { sequence: u64::MAX, ..first });
        let refused = all.rev().find(|(_, entry)| !entry.lasts()).map(|(txn, _)| txn.sequence + 1);
        let known = self.settled.get_mut(&node).expect("a known client");
        known.refused_below = known.refused_below.max(refused.unwrap_or(0));
    }

    /// Forgets clients of which nothing but refusals is noted, where there are too many: those that
    /// were heard of longest ago. Returns how many.
    fn forget_refused(&mut self, since: Nanos, reached: u64) -> u64 {
        let is_left = |known: &KnownCoordinator| {
            known.refused_below > 0 && known.is_empty() && known.seen_at < since
        };
        let left = self.settled.iter().filter(|(_, known)| is_left(known));
        let mut left: Vec<_> = left.map(|(&node, known)| (known.seen_at, node)).collect();
        let Some(more) = left.len().checked_sub(REFUSED_CLIENTS_MAX) else { return 0 };
        left.sort_unstable();
        for (_, node) in &left[..more] {
            self.settled.get_mut(node).expect("just seen").refused_below = 0;
            let is_gone = self.forget_if_empty(*node, reached);
            assert!(is_gone, "nothing was left of {node:?}");
        }
        more as u64
    }

    /// What is left of a client that is gone keeps no room from others.
    fn count_out(&mut self, node: NodeId) {
        let known = self.settled.get_mut(&node).expect("a known client");
        if std::mem::take(&mut known.is_client) {
            assert!(self.of_clients > known.entries, "{node:?} was not counted as a client");
            self.of_clients -= known.entries + 1;
        }
    }

    /// Forgets a client that is silent if nothing of it is left; whether it did.
    fn forget_if_empty(&mut self, node: NodeId, reached: u64) -> bool {
        let known = self.settled.get_mut(&node).expect("a known client");
        if !known.is_empty() {
            return false;
        }
        assert!(!known.is_client, "{node:?} counts as one that speaks");
        if known.refused_below > 0 {
            known.lower_bound = known.lower_bound.max(reached);
            return false;
        }
        self.settled.remove(&node);
        self.lower_bound = self.lower_bound.max(reached);
        true
    }

    /// Clients behind `after` whose commits are kept for others that may be in doubt, and may go
    /// if these are not: at most so many. Of one that is silent all may go, of others what is of
    /// earlier incarnations.
    pub fn kept_for_others(
        &self,
        since: Nanos,
        after: Option<NodeId>,
        most: usize,
        may_go: impl Fn(NodeId) -> bool,
    ) -> Vec<ClientsUntil> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let kept = self.settled.range((from, Bound::Unbounded)).filter_map(|(&node, known)| {
            let is_silent = known.seen_at < since;
            let until =
                if is_silent { known.incarnation.saturating_add(1) } else { known.incarnation };
            let goes = known.lasting > 0
                && may_go(node)
                && self.prepared_of((node, until)).next().is_none()
                && self.entries_before((node, until)).any(TableEntry::lasts);
            goes.then_some((node, until))
        });
        kept.take(most).collect()
    }

    /// What is kept of a client's incarnations before one.
    fn entries_before(&self, of: ClientsUntil) -> impl Iterator<Item = &TableEntry<V>> {
        self.entries.range(transactions_before(of)).map(|(_, entry)| {
            self.steps.count();
            entry
        })
    }

    /// What is prepared of these. Of most clients nothing is, and then nothing is looked at.
    fn prepared_of(&self, of: ClientsUntil) -> impl Iterator<Item = &Prepared<V>> {
        let prepared = self.settled.get(&of.0).map_or(0, |known| known.prepared);
        let entries = (prepared > 0).then(|| self.entries_before(of)).into_iter().flatten();
        entries.filter_map(|entry| match entry {
            TableEntry::Prepared(owner) => Some(self.get(*owner)),
            TableEntry::Over(..) => None,
        })
    }

    /// Of these, the ones of which nothing is in doubt here.
    pub fn not_in_doubt(&self, clients: &[ClientsUntil]) -> Vec<ClientsUntil> {
        let has_none =
            |of: &&ClientsUntil| self.prepared_of(**of).all(|prepared| prepared.decided.is_some());
        clients.iter().filter(has_none).copied().collect()
    }

    /// Nobody was in doubt of anything of a client as it was asked: forgets it, if nothing was put
    /// in since. Commits here have come to `reached`. Returns whether the client is not known any
    /// more.
    pub fn forget_commits(&mut self, of: ClientsUntil, asked: Nanos, reached: u64) -> bool {
        let (node, until) = of;
        let Some(known) = self.settled.get(&node) else { return false };
        let is_whole = until > known.incarnation;
        let put = if is_whole { known.seen_at } else { known.earlier_put };
        if put >= asked {
            return false;
        }
        let all = transactions_before(of);
        let over: Vec<TxnId> = self.entries.range(all.clone()).map(|(txn, _)| *txn).collect();
        for txn in over {
            assert!(self.owner(txn).is_none(), "{txn} was prepared since");
            self.take(txn);
        }
        self.forget_answers(all.start, all.end);
        if is_whole {
            // Where the others were asked about several in turn, it may have become silent since
            // silent clients were last looked for.
            self.count_out(node);
        }
        is_whole && self.forget_if_empty(node, reached)
    }

    /// Whether a transaction of a client that is not known here may have been and was forgotten.
    pub fn may_be_forgotten(&self, txn: TxnId, reached: u64) -> bool {
        self.settled.get(&txn.node).is_some_and(|known| {
            let is_its_incarnation = txn.incarnation == known.incarnation;
            reached < known.lower_bound || is_its_incarnation && txn.sequence < known.refused_below
        })
    }

    /// Of each client of which refusals were forgotten, up to where.
    pub fn refused(&self) -> Vec<(NodeId, u64)> {
        let refused = self.settled.iter().filter(|(_, known)| known.refused_below > 0);
        refused.map(|(node, known)| (*node, known.refused_below)).collect()
    }

    /// Takes over what another table [forgot](Self::refused), once its clients are known.
    pub fn recall_refused(&mut self, refused: Vec<(NodeId, u64)>) {
        for (node, below) in refused {
            self.settled.entry(node).or_default().refused_below = below;
        }
    }

    /// The lower bound, and those of the clients that came again.
    pub fn lower_bounds(&self) -> (u64, Vec<(NodeId, u64)>) {
        let lower_bounds = self.settled.iter().filter(|(_, known)| known.lower_bound > 0);
        (self.lower_bound, lower_bounds.map(|(node, known)| (*node, known.lower_bound)).collect())
    }

    /// Takes over the [lower bounds](Self::lower_bounds) of clients that another table knows.
    pub fn recall_lower_bounds(&mut self, lower_bounds: Vec<(NodeId, u64)>) {
        for (node, lower_bound) in lower_bounds {
            self.settled.entry(node).or_default().lower_bound = lower_bound;
        }
    }

    /// Takes over the [lower bound](Self::lower_bounds) of another table, once its clients are
    /// known.
    pub fn recall_lower_bound(&mut self, lower_bound: u64) {
        self.lower_bound = lower_bound;
    }
}

impl KnownCoordinator {
    /// Whether nothing of it is in the table.
    fn is_empty(&self) -> bool {
        self.entries == 0 && self.answers == 0
    }
}

/// All transactions of a client's incarnations before one.
fn transactions_before((node, incarnation): ClientsUntil) -> std::ops::Range<TxnId> {
    let end = TxnId { node, incarnation, sequence: 0 };
    TxnId { incarnation: 0, ..end }..end
}
