//! Claims of transactions that keep losing, on the objects of what they have read: the same at all
//! sites, wherever the same commands of an object are applied.
//!
//! # The problem
//! A commit that is certified loses to whoever has overwritten what it has read. Who is far from
//! the other sites, or reads much, may lose for ever, as nobody waits for anybody.
//!
//! # The idea
//! A client that has lost several times says so with its commits, by a *claim* that is the same
//! in all of its attempts. Where such a commit is refused because of what it has read, its claim
//! *holds* the objects of that. Commits of others that write one of these are refused, until a
//! commit with the claim takes effect. So what its next attempt reads stays as it is.
//!
//! * A claim on an object is over after a number of refusals, whatever has become of its owner.
//!   Each claim that ends so doubles that number for the next one on the object, up to a bound, as
//!   there were too few of them; one that has needed few halves it.
//! * Of two claims the older one goes first: it takes objects from the younger one, and its commits
//!   are not refused because of that.
//! * Procedures lose to nobody, and are never refused. What they write nobody holds any more: who
//!   has read it has to read it anew in any case.
//! * Ranges nobody holds. Commands that write within a range have no order among each other, so
//!   refusals by it could not be counted alike at all sites; and one that counts none would hold it
//!   for ever, where its owner is gone.
//!
//! # Why all sites agree
//! What is noted of an object changes only where a command ends that writes it: one with a claim
//! writes the objects of all of its keys, read or written, and a command without one changes what
//! is noted of keys that it writes. All of these have one order, and what is asked of an object is
//! asked by a command that writes it, and so has a place in that order. What changes
//! follows from the command, its end, and what was noted before, and so a replay comes to the same.
//!
//! # Why somebody always commits
//! Suppose nobody does any more. Then nothing changes that anybody has read, so after a while no
//! attempt is refused but because of a claim, and no claim is made anew. Each such refusal takes
//! one from a claim, or is one of those few of its client after which that makes a claim, too.
//! There are finitely many claims with finitely many refusals; so some attempt is not refused. And
//! the oldest client that loses is refused by none but claims of clients that are gone, and where
//! procedures have written what it has read, where it reads what it has not read before, or where
//! it reads ranges.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::{Abort, Decision, wire_struct};

use crate::certified::message::command::{CertifiedCommand, LoserClaim};
use crate::certified::message::objects::{read_key_objects, written_key_objects};

/// A claim refuses at least so many commands of others, if there are as many.
const REFUSALS_LEAST: u16 = 16;
/// It refuses no more than these.
const REFUSALS_MOST: u16 = 512;

/// What is noted of an object that is claimed, or was.
///
/// Invariants: a claim has refusals left, and no more than it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimedObject {
    /// Whose it is.
    holder: Option<LoserClaim>,
    /// How many commands of others the claim refuses still.
    left: u16,
    /// How many each claim is given.
    given: u16,
}

wire_struct!(ClaimedObject { holder: Option<LoserClaim>, left: u16, given: u16 });

impl ClaimedObject {
    /// Nobody has claimed it.
    const FREE: ClaimedObject = ClaimedObject { holder: None, left: 0, given: REFUSALS_LEAST };

    /// Whether a site can have come to it.
    pub fn is_possible(&self) -> bool {
        let can_be_given = (REFUSALS_LEAST..=REFUSALS_MOST).contains(&self.given);
        let is_left = (1..=self.given).contains(&self.left);
        can_be_given && self.holder.map_or(self.left == 0, |_| is_left)
    }

    /// Whether a claim of somebody else comes before this one, or before none.
    fn is_held_before(&self, own: Option<LoserClaim>) -> bool {
        self.holder.is_some_and(|holder| own.is_none_or(|own| holder < own))
    }

    /// It is claimed. A claim that holds it is given no more: one that never gets through would
    /// refuse others for ever.
    fn claim(&mut self, claim: LoserClaim) {
        if self.holder.is_none_or(|holder| claim < holder) {
            (self.holder, self.left) = (Some(claim), self.given);
        }
    }

    /// A command of somebody else was refused.
    fn refuse(&mut self) {
        assert!(self.left > 0, "a claim that is over refuses a command");
        self.left -= 1;
        if self.left == 0 {
            (self.holder, self.given) = (None, (self.given * 2).min(REFUSALS_MOST));
        }
    }

    /// Whose claim holds it has committed.
    fn commit(&mut self) {
        if self.left > self.given / 2 {
            self.given = (self.given / 2).max(REFUSALS_LEAST);
        }
        self.release();
    }

    fn release(&mut self) {
        (self.holder, self.left) = (None, 0);
    }
}

/// Objects that are claimed, and those of which something is noted for the next claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimTable {
    objects: BTreeMap<u64, ClaimedObject>,
}

impl ClaimTable {
    /// Whether claims of others are in the way of a commit, where its turn has come.
    pub fn refuses(&self, command: &CertifiedCommand, own: Option<LoserClaim>) -> bool {
        let is_held = |object| self.of(object).is_held_before(own);
        !self.objects.is_empty() && written_key_objects(command).any(is_held)
    }

    /// Notes how a command ended; whether it claims now what it has read. What procedures have
    /// written stands in it by then.
    pub fn note(
        &mut self,
        command: &CertifiedCommand,
        own: Option<LoserClaim>,
        decision: Decision,
    ) -> bool {
        match (decision, own) {
            (Decision::Abort(Abort::StaleRead | Abort::Phantom), Some(own)) => {
                let read = read_key_objects(command);
                read.for_each(|object| self.change(object, |it| it.claim(own)));
                return true;
            }
            (Decision::Abort(Abort::Locked), _) => self.count_refusal(command, own),
            (Decision::Commit(_), Some(own)) => {
                let held = read_key_objects(command).chain(written_key_objects(command));
                let held = held.filter(|object| self.of(*object).holder == Some(own));
                let held: BTreeSet<u64> = held.collect();
                held.into_iter().for_each(|object| self.change(object, ClaimedObject::commit));
            }
            (Decision::Commit(_), None) if !command.calls.is_empty() => {
                let written = written_key_objects(command);
                written.for_each(|object| self.change(object, ClaimedObject::release));
            }
            (Decision::Commit(_) | Decision::Abort(_), _) => {}
        }
        false
    }

    /// A commit was refused: each claim that was in its way has one refusal less.
    fn count_refusal(&mut self, command: &CertifiedCommand, own: Option<LoserClaim>) {
        let written: BTreeSet<u64> = written_key_objects(command).collect();
        for object in written {
            if self.of(object).is_held_before(own) {
                self.change(object, ClaimedObject::refuse);
            }
        }
    }

    fn of(&self, object: u64) -> ClaimedObject {
        self.objects.get(&object).copied().unwrap_or(ClaimedObject::FREE)
    }

    /// Changes what is noted of an object; nothing, where that is what is noted of all.
    fn change(&mut self, object: u64, change: impl FnOnce(&mut ClaimedObject)) {
        let mut claimed = self.of(object);
        change(&mut claimed);
        assert!(claimed.is_possible(), "{claimed:?} is noted of object {object}");
        match claimed == ClaimedObject::FREE {
            true => self.objects.remove(&object),
            false => self.objects.insert(object, claimed),
        };
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (u64, ClaimedObject)> + '_ {
        self.objects.iter().map(|(object, claimed)| (*object, *claimed))
    }

    /// Takes one back, from a checkpoint.
    pub fn restore(&mut self, object: u64, claimed: ClaimedObject) {
        self.objects.insert(object, claimed);
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        for (object, claimed) in &self.objects {
            assert!(claimed.is_possible(), "{claimed:?} of object {object}");
        }
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::{KeyRange, Nanos};
    use muesli_core::{NodeId, RepositoryId, SmallBytes, SpaceId, Timestamp, TxnId};

    use super::*;
    use crate::certified::message::command::{
        BroadcastCommit, ReadKey, ReadRange, RowsDigest, SeenVersion,
    };

    const SPACE: SpaceId = SpaceId(0);
    const STALE: Decision = Decision::Abort(Abort::StaleRead);
    const HELD: Decision = Decision::Abort(Abort::Locked);

    fn committed() -> Decision {
        Decision::Commit(Timestamp::new(9, RepositoryId(0)))
    }

    /// A command of a node that reads and writes these keys, and was tried since then.
    fn commit(node: u32, since: u64, reads: &[&str], writes: &[&str]) -> BroadcastCommit {
        let seen = SeenVersion::Absent { deletions: 0 };
        let reads = reads.iter().map(|key| ReadKey { space: SPACE, key: (*key).into(), seen });
        let writes = writes.iter().map(|key| (SPACE, SmallBytes::from(*key), None));
        let command = CertifiedCommand {
            txn: TxnId { node: NodeId(node), incarnation: 1, sequence: 1 },
            after: 0,
            spaces: 1,
            reads: reads.collect(),
            ranges: Vec::new(),
            writes: writes.collect(),
            calls: Vec::new(),
        };
        let tried_since = Some(Nanos(since)).filter(|since| *since > Nanos(0));
        BroadcastCommit { settled_below: 0, tried_since, command }
    }

    impl ClaimTable {
        fn refuses_it(&self, commit: &BroadcastCommit) -> bool {
            self.refuses(&commit.command, commit.claim())
        }

        fn note_it(&mut self, commit: &BroadcastCommit, decision: Decision) -> bool {
            let has_claimed = self.note(&commit.command, commit.claim(), decision);
            self.assert_invariants();
            has_claimed
        }

        /// Has this commit refused as long as it is; how often that is.
        fn refuse_while_held(&mut self, commit: &BroadcastCommit) -> u16 {
            let mut count = 0;
            while self.refuses_it(commit) {
                self.note_it(commit, HELD);
                count += 1;
            }
            count
        }
    }

    #[test]
    fn what_a_loser_has_read_nobody_else_writes_until_it_commits() {
        let mut table = ClaimTable::default();
        let (loser, writer) = (commit(1, 5, &["a", "b"], &["c"]), commit(2, 0, &["a"], &["b"]));
        assert!(!table.note_it(&writer, STALE) && !table.refuses_it(&writer), "no claim");
        assert!(table.note_it(&loser, STALE) && table.refuses_it(&writer));
        assert!(!table.refuses_it(&commit(2, 0, &["a", "b"], &["c"])), "it reads them alone");
        assert!(!table.refuses_it(&commit(1, 5, &[], &["a", "b"])), "another attempt");
        assert!(table.refuses_it(&commit(1, 6, &[], &["a"])), "another client of its node");
        table.note_it(&loser, committed());
        assert!(!table.refuses_it(&writer));
        assert_eq!(table, ClaimTable::default(), "nothing is left of it");
    }

    #[test]
    fn a_claim_is_over_after_so_many_refusals_and_the_next_one_is_given_more() {
        let mut table = ClaimTable::default();
        let (gone, writer) = (commit(1, 5, &["a"], &[]), commit(2, 0, &[], &["a", "z"]));
        let mut refused = Vec::new();
        for _ in 0..7 {
            table.note_it(&gone, STALE);
            table.note_it(&gone, STALE); // It is given no more by that.
            refused.push(table.refuse_while_held(&writer));
        }
        assert_eq!(refused, [16, 32, 64, 128, 256, 512, 512]);
        for given in [256, 128, 64, 32, 16, 16] {
            table.note_it(&gone, STALE);
            table.note_it(&gone, committed());
            assert_eq!(table.of(written_key_objects(&writer.command).next().unwrap()).given, given);
        }
        assert_eq!(table, ClaimTable::default());
    }

    #[test]
    fn the_older_of_two_goes_first() {
        let mut table = ClaimTable::default();
        let (old, young) = (commit(1, 5, &["a", "b"], &["b"]), commit(2, 7, &["b", "c"], &["b"]));
        table.note_it(&young, STALE);
        assert!(!table.refuses_it(&old) && !table.refuses_it(&young), "it is older, and its own");
        table.note_it(&old, STALE);
        assert!(!table.refuses_it(&old) && table.refuses_it(&young));
        table.note_it(&young, STALE);
        assert!(table.refuses_it(&young), "it takes nothing from the older one");
        assert!(table.refuses_it(&commit(3, 0, &[], &["c"])), "what nobody else claims is held");
        let same = (commit(1, 5, &["a"], &["a"]), commit(2, 5, &["a"], &["a"]));
        table.note_it(&same.1, STALE);
        table.note_it(&same.0, STALE);
        assert!(table.refuses_it(&same.1) && !table.refuses_it(&same.0), "of one time, by nodes");
        let dead = table.refuse_while_held(&young);
        assert_eq!(dead, REFUSALS_LEAST, "the claim of who is gone is over for losers, too");
    }

    #[test]
    fn a_range_nobody_holds() {
        let mut table = ClaimTable::default();
        let range = KeyRange { space: SPACE, lo: "a".into(), hi: None };
        let digest = RowsDigest::of(std::iter::empty());
        let mut reader = commit(1, 5, &["k"], &[]);
        reader.command.ranges =
            vec![ReadRange { within: range.clone(), seen: range, digest, deletions: 0 }];
        table.note_it(&reader, Decision::Abort(Abort::Phantom));
        assert!(!table.refuses_it(&commit(2, 0, &[], &["x"])), "though it has read all of them");
        assert!(table.refuses_it(&commit(2, 0, &[], &["k"])), "this key it has read itself");
    }

    #[test]
    fn what_procedures_write_nobody_holds_any_more() {
        let mut table = ClaimTable::default();
        let (loser, writer) = (commit(1, 5, &["a", "b"], &["b"]), commit(2, 0, &[], &["a"]));
        table.note_it(&loser, STALE);
        let mut calls = commit(2, 9, &[], &["b"]);
        let procedure = muesli_core::ProcedureId { name: "any".into(), version: 1 };
        let arguments = SmallBytes::EMPTY;
        calls.command.calls = vec![super::super::super::message::command::ReplicatedCall {
            procedure,
            partition: 0,
            arguments,
        }];
        assert_eq!(calls.claim(), None, "it loses to nobody");
        table.note_it(&calls, Decision::Abort(Abort::Rollback));
        let other = commit(2, 0, &[], &["b"]);
        assert!(table.refuses_it(&other) && table.refuses_it(&writer));
        table.note_it(&calls, committed());
        assert!(!table.refuses_it(&other) && table.refuses_it(&writer));
    }

    #[test]
    #[should_panic(expected = "a claim that is over refuses a command")]
    fn a_claim_that_is_over_refuses_nobody() {
        let mut free = ClaimedObject::FREE;
        free.refuse();
    }

    #[test]
    #[should_panic(expected = "of object 7")]
    fn a_claim_without_refusals_is_noticed() {
        let mut table = ClaimTable::default();
        let holder = commit(1, 5, &[], &[]).claim();
        let claimed = ClaimedObject { holder, ..ClaimedObject::FREE };
        assert!(!claimed.is_possible() && ClaimedObject::FREE.is_possible());
        table.restore(7, claimed);
        table.assert_invariants();
    }
}
