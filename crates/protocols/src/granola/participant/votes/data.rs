//! Data that participants tell each other (section 9.1.2, "Exchanging Data in Votes").
//!
//! # The problem
//! A transaction whose participants decide by data that only one of them has needs votes, and with
//! them locks: a transfer that is done only if there is enough. Could the others look at the same
//! data, all would decide alike, and it would be independent.
//!
//! # When to tell
//! The thesis thinks of data that go with the vote. But in timestamp mode a vote is cast before the
//! transaction's turn, and whatever stands before it, or comes to, may change the data. To hold
//! them fast from the vote on is locking mode again, with its conflicts. So data are told when they
//! can change no more: a participant tells when the transaction's place is known to it and its turn
//! has come ([out of order](crate::granola::participant::modes::out_of_order), too, is a turn), *as
//! of that place*. What it has told is a read done there: it raises `done`, so that nothing comes
//! below any more. Then it waits for what the others tell, and whoever stands behind waits with it,
//! or passes. That is a message delay more than an independent transaction has, and no conflict, no
//! lock and no abort.
//!
//! # Why all are told the same, and nobody waits for ever
//! What lies below the place and can conflict is done; what comes lies above. So the values are
//! those of the place, whoever tells them and however often: after a crash the transaction is
//! pending, the state below its place is the same again, and what was told before was told when
//! everything it depends on was stable. Once the transaction is done its keys have changed, so what
//! was told is remembered with the ends, in the log before the end, and in checkpoints. Who misses
//! it asks, as for votes. All participants take transactions in one order and tell before they
//! wait, so of all transactions that wait for data the one with the lowest place will have them.
//!
//! # In locking mode
//! A transaction whose participants tell cannot be run before its votes are there. It claims all
//! that it may touch when it comes, or meets a conflict, and is done by the order of the queue as
//! in timestamp mode; whatever changes the mode meanwhile leaves it where it stands.
//!
//! A *coordinated* transaction tells nothing: whoever has the data has a vote.

use muesli_core::parts::execution::shared_keys;
use muesli_core::parts::transaction::TransactionSets;
use muesli_core::parts::versions::Handle;
use muesli_core::{RepositoryId, SmallBytes, SpaceId, Timestamp, TxnId};

use crate::granola::message::sizes::data_bytes;
use crate::granola::message::{
    Agreement, Ballots, DataByPart, FoundVersion, Message, Part, PartData, Record, Repositories,
    Request, Task, TimestampVote,
};
use crate::granola::participant::execution::Notes;
use crate::granola::participant::execution::read_set::note_read;
use crate::granola::participant::modes::active::Active;
use crate::granola::participant::modes::{QueueKey, WaitQueue};
use crate::granola::participant::{Context, Participant};
use crate::granola::switches::GranolaSwitch;
use crate::sight::Sight;

impl Participant {
    /// Whether a transaction whose turn has come can be done. If not, all that this participant has
    /// to tell is told, and it waits for what it is to be told.
    pub(in super::super) fn has_data(&mut self, stand: QueueKey, cx: &mut Context<'_>) -> bool {
        let (place, txn) = stand;
        let request = self.active[&txn].request.clone();
        if !request.exchanges_data() {
            return true;
        }
        self.rest_on_vote(&self.active[&txn], cx);
        self.send_data(&request, place, cx);
        if self.is_complete(&request) {
            return true;
        }
        let active = self.active.get_mut(&txn).expect("its turn has come");
        assert_eq!(active.place, Some(place), "where {txn} is told of");
        let was = std::mem::replace(&mut active.wait_queue, WaitQueue::Behind(None));
        self.queue.change_wait_queue(was, WaitQueue::Behind(None), stand);
        false
    }

    /// Tells the others what the keys of this repository have, once.
    pub(in super::super) fn send_data(
        &mut self,
        request: &Request,
        place: Timestamp,
        cx: &mut Context<'_>,
    ) {
        let mine = |part: &Part| part.is_held_by(self.id, cx.catalog);
        let known = self.memory.data(request.txn);
        let is_new = |number: &u16| known.is_none_or(|all| !all.contains_key(number));
        let parts = request.parts_with_data().filter(|(number, part)| mine(part) && is_new(number));
        let shared: Vec<PartData> =
            parts.map(|(number, part)| (number, self.values_of(part, cx))).collect();
        if shared.is_empty() {
            return;
        }
        if self.switches.keeps(GranolaSwitch::DataSentInOrder) {
            self.cover(place, cx);
            self.clock.raise(place);
        }
        self.memory.add_data(request.txn, shared.iter().cloned());
        let txn = request.txn;
        if self.is_logged(request) {
            for shared in pieces(shared.clone(), most(cx)) {
                cx.log_lazily(|| Record::SharedData { txn, shared });
            }
        }
        for other in self.others(request) {
            self.send_data_to(other, request, shared.clone(), cx);
        }
    }

    /// The values of the keys of a part, as they are now.
    fn values_of(&self, part: &Part, cx: &Context<'_>) -> Vec<(SpaceId, SmallBytes, FoundVersion)> {
        let Task::Call { procedure, arguments, .. } = &part.task else { return Vec::new() };
        let Some(known) = cx.settings.procedures.get(procedure) else { return Vec::new() };
        let value = |(space, key): (SpaceId, SmallBytes)| {
            let found = self.found(space, &key);
            (space, key, found)
        };
        shared_keys(known, part.partition, cx.catalog, arguments).into_iter().map(value).collect()
    }

    /// Tells of what the other one does not hold itself.
    fn send_data_to(
        &self,
        to: RepositoryId,
        request: &Request,
        mut shared: Vec<PartData>,
        cx: &mut Context<'_>,
    ) {
        let part = |number: u16| &request.parts[usize::from(number)];
        shared.retain(|(number, _)| !part(*number).is_held_by(to, cx.catalog));
        for shared in pieces(shared, most(cx)) {
            cx.send_to_repository(to, Message::Tell { txn: request.txn, shared });
        }
    }

    /// Tells once more, whoever asks; if it has told before.
    pub(in super::super) fn send_data_again(
        &self,
        to: RepositoryId,
        request: &Request,
        cx: &mut Context<'_>,
    ) {
        if request.exchanges_data()
            && let Some(received) = self.memory.data(request.txn)
        {
            let shared =
                received.iter().filter(|(part, _)| usize::from(**part) < request.parts.len());
            let shared = shared.map(|(part, values)| (*part, values.clone())).collect();
            self.send_data_to(to, request, shared, cx);
        }
    }

    /// Another participant tells.
    pub(in super::super) fn on_tell(
        &mut self,
        txn: TxnId,
        shared: Vec<PartData>,
        cx: &mut Context<'_>,
    ) {
        // Who does not know the transaction has forgotten it in a crash, and will ask.
        let Some(active) = self.active.get(&txn) else { return };
        let (request, stand, wait_queue) =
            (active.request.clone(), (active.bound, txn), active.wait_queue);
        self.memory.add_data(txn, shared);
        if active.awaits_data() && self.is_complete(&request) {
            self.active.get_mut(&txn).expect("just seen").wait_queue = WaitQueue::Placed;
            self.queue.change_wait_queue(wait_queue, WaitQueue::Placed, stand);
            self.queue.check_again(stand);
            self.go_on(cx);
        }
    }

    /// Whether all is there that a transaction is told.
    pub(in super::super) fn is_complete(&self, request: &Request) -> bool {
        let received = self.memory.data(request.txn);
        let has = |number: u16| received.is_some_and(|all| all.contains_key(&number));
        request.parts_with_data().all(|(number, _)| has(number))
    }

    /// Those who can tell what a transaction waits for.
    pub(in super::super) fn data_holders(&self, active: &Active, cx: &Context<'_>) -> Repositories {
        let received = self.memory.data(active.request.txn);
        let missing = |(number, _): &(u16, &Part)| {
            received.is_none_or(|all| !all.contains_key(number)) // Nobody has told of it yet.
        };
        let parts: Vec<&Part> =
            active.request.parts_with_data().filter(missing).map(|(_, it)| it).collect();
        let shares =
            |other: &RepositoryId| parts.iter().any(|it| it.is_held_by(*other, cx.catalog));
        self.others(&active.request).filter(shares).collect()
    }

    /// What procedures of a transaction are told; `None`: nobody tells.
    pub(in super::super) fn data_for(
        &self,
        request: &Request,
        cx: &Context<'_>,
    ) -> Option<DataByPart> {
        let mut sharing = request.parts_with_data().peekable();
        sharing.peek()?;
        match request.agreement {
            Agreement::Coordinated => None,
            Agreement::Independent => {
                Some(self.memory.data(request.txn).cloned().unwrap_or_default())
            }
            Agreement::Alone => {
                Some(sharing.map(|(number, part)| (number, self.values_of(part, cx))).collect())
            }
        }
    }

    /// Notes what a transaction is told as read before all else, and after which number the notes
    /// of its parts come. Who is alone claims it, too; others have claimed it if there is need.
    pub(in super::super) fn note_data(
        &self,
        request: &Request,
        received: &DataByPart,
        sets: &mut TransactionSets,
        notes: &mut Notes,
        cx: Sight<'_>,
    ) -> u16 {
        let start = sets.operations.mark();
        for (space, key, found) in received.values().flatten() {
            if cx.recording {
                sets.operations.read(*space, key, found.recorded(), found.value.as_ref());
            }
            if request.agreement == Agreement::Alone {
                note_read(sets, *space, key.clone(), Handle::NONE, found.version);
            }
        }
        let here = |part: &Part| part.is_held_by(self.id, cx.catalog);
        if let Some(first) = request.parts.iter().position(here) {
            notes.push((first as u16, start..sets.operations.mark()));
        }
        request.parts.len() as u16
    }

    /// In locking mode: claims all that a transaction may touch whose participants tell, and votes.
    pub(in super::super) fn claim_untold(
        &mut self,
        request: std::sync::Arc<Request>,
        early: Ballots,
        cx: &mut Context<'_>,
    ) {
        let claim = self.all_it_may_touch(&request, cx);
        if self.footprint_locks.conflict(&claim) {
            return self.refuse(&request, TimestampVote::Conflict, cx);
        }
        self.footprint_locks.hold(request.txn, claim);
        self.vote_in_timestamp_mode(request, early, cx);
    }
}

impl Active {
    /// Its turn has come, and it waits for what others tell.
    pub(in super::super) fn awaits_data(&self) -> bool {
        self.place.is_some() && self.wait_queue == WaitQueue::Behind(None)
    }
}

/// How long a record or a message of what is told may be.
fn most(cx: &Context<'_>) -> usize {
    cx.settings.limits.transaction_bytes
}

/// What is told, in pieces that are as long as a transaction at most, or one part of it.
fn pieces(shared: Vec<PartData>, most: usize) -> Vec<Vec<PartData>> {
    let (mut all, mut bytes) = (Vec::<Vec<PartData>>::new(), 0);
    for one in shared {
        let more = data_bytes(std::slice::from_ref(&one));
        match all.last_mut().filter(|_| bytes + more <= most) {
            Some(piece) => piece.push(one),
            None => {
                bytes = 0;
                all.push(vec![one]);
            }
        }
        bytes += more;
    }
    assert!(all.iter().all(|piece| !piece.is_empty()), "a piece that tells nothing");
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_no_longer_than_a_transaction_but_for_one_part() {
        let shared = |number: u16, bytes: usize| {
            let value = Some(SmallBytes::from(vec![7; bytes]));
            let found = FoundVersion { version: Timestamp(1), value, collected: Timestamp::ZERO };
            (number, vec![(SpaceId(0), SmallBytes::from("k"), found)])
        };
        let all =
            vec![shared(0, 300), shared(1, 300), shared(2, 300), shared(3, 2_000), shared(4, 10)];
        let numbers = |most: usize| -> Vec<Vec<u16>> {
            let pieces = pieces(all.clone(), most);
            pieces.iter().map(|piece| piece.iter().map(|(number, _)| *number).collect()).collect()
        };
        assert_eq!(numbers(100_000), [vec![0, 1, 2, 3, 4]]);
        assert_eq!(numbers(800), [vec![0, 1], vec![2], vec![3], vec![4]]);
        assert!(pieces(Vec::new(), 1_000).is_empty());
    }
}
