//! The participant: a site with all keys, which applies commands in their order.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use muesli_core::parts::single_repository::{
    KnownOutcome, KnownOutcomes, NewValues, RepositoryReply, RepositoryRequest,
};
use muesli_core::{
    Abort, Address, Catalog, Context, Decision, LoggedRole, NoTimer, Participant, RepositoryId,
    Settings, SmallBytes, SpaceId, StateMachine, Timestamp, TxnId,
};

use super::broadcast::Broadcast;
use super::certify::Certify;
use super::names::{orderer, timestamp};
use super::{Message, Ordered, OrderedCommit, Record};

/// A site.
#[derive(Clone, Debug)]
pub struct Site<B, C> {
    id: RepositoryId,
    keys: BTreeMap<(SpaceId, SmallBytes), (Timestamp, Option<SmallBytes>)>,
    /// Commands up to here are applied.
    applied: u64,
    outcomes: KnownOutcomes,
    /// Who waits for the end of a transaction.
    waiting: BTreeMap<TxnId, Address>,
    layers: PhantomData<(B, C)>,
}

impl<B: Broadcast, C: Certify> Site<B, C> {
    fn send_each(&self, message: Message<B::Message>, cx: &mut Context<'_, Ordered<B, C>>) {
        cx.send(Address::service(cx.me.node, orderer(self.id.0)), message);
    }

    fn on_ask(
        &mut self,
        from: Address,
        ask: RepositoryRequest,
        cx: &mut Context<'_, Ordered<B, C>>,
    ) {
        let tell = match ask {
            RepositoryRequest::Read { op, space, key } => {
                let found = self.keys.get(&(space, key)).cloned();
                let (version, value) = found.unwrap_or((Timestamp::ZERO, None));
                RepositoryReply::Value { op, version, value }
            }
            RepositoryRequest::Commit { txn, settled_below, reads, writes } => {
                match self.outcomes.known(txn) {
                    KnownOutcome::Decided(decision) => RepositoryReply::Ended { txn, decision },
                    KnownOutcome::Gone => return,
                    KnownOutcome::New => {
                        self.waiting.insert(txn, from);
                        let command = OrderedCommit { txn, settled_below, reads, writes };
                        return self.send_each(Message::Submit { command }, cx);
                    }
                }
            }
        };
        cx.send(from, Message::Tell { tell });
    }

    fn on_deliver(
        &mut self,
        position: u64,
        command: OrderedCommit,
        cx: &mut Context<'_, Ordered<B, C>>,
    ) {
        if position == self.applied + 1 {
            let OrderedCommit { txn, settled_below, .. } = command;
            // A command that was ordered twice is applied once.
            let decision = match self.outcomes.ask(txn, settled_below) {
                KnownOutcome::New => Some(self.decide(position, &command)),
                KnownOutcome::Decided(_) | KnownOutcome::Gone => None,
            };
            let writes = command.writes;
            cx.log(|| Record::Applied { position, txn, decision, writes: writes.clone() });
            if let (Some(Decision::Commit(at)), Some(recorder)) =
                (decision, &mut cx.effects.recorder)
            {
                recorder.applied(txn, at);
            }
            self.apply(position, txn, decision, writes);
            if let (Some(decision), Some(from)) = (decision, self.waiting.remove(&txn)) {
                cx.send(from, Message::Tell { tell: RepositoryReply::Ended { txn, decision } });
            }
        }
        self.send_each(Message::Applied { upto: self.applied }, cx);
    }

    fn decide(&self, position: u64, command: &OrderedCommit) -> Decision {
        let newest = |space, key: &SmallBytes| {
            self.keys.get(&(space, key.clone())).map_or(Timestamp::ZERO, |(version, _)| *version)
        };
        match C::certify(command, newest) {
            true => Decision::Commit(timestamp(position)),
            false => Decision::Abort(Abort::StaleRead),
        }
    }

    fn apply(&mut self, position: u64, txn: TxnId, decision: Option<Decision>, writes: NewValues) {
        assert_eq!(position, self.applied + 1, "commands are applied in their order");
        self.applied = position;
        if let Some(Decision::Commit(at)) = decision {
            for (space, key, value) in writes {
                self.keys.insert((space, key), (at, value));
            }
        }
        if let Some(decision) = decision {
            self.outcomes.decide(txn, decision);
        }
    }
}

impl<B: Broadcast, C: Certify> StateMachine<Ordered<B, C>> for Site<B, C> {
    type Timer = NoTimer;

    fn unfinished(&self) -> usize {
        0
    }

    muesli_core::role_without_links!(Ordered<B, C>);
    muesli_core::role_without_judgement!(Ordered<B, C>);

    fn assert_invariants(&self) {
        let newest = self.keys.values().map(|(at, _)| *at).max();
        let last = timestamp(self.applied);
        assert!(newest.is_none_or(|newest| newest <= last), "no key is newer than what is applied");
    }
}

impl<B: Broadcast, C: Certify> LoggedRole<Ordered<B, C>> for Site<B, C> {
    muesli_core::role_without_checkpoints!(Ordered<B, C>);
    muesli_core::role_that_stays!(Ordered<B, C>);

    fn start(&mut self, cx: &mut Context<'_, Ordered<B, C>>) {
        self.send_each(Message::Applied { upto: self.applied }, cx);
    }

    fn receive(
        &mut self,
        from: Address,
        message: Message<B::Message>,
        cx: &mut Context<'_, Ordered<B, C>>,
    ) {
        match message {
            Message::Ask { ask } => self.on_ask(from, ask, cx),
            Message::Deliver { position, command } => self.on_deliver(position, command, cx),
            Message::Tell { .. }
            | Message::Submit { .. }
            | Message::Applied { .. }
            | Message::Broadcast { .. } => {} // For others.
        }
    }

    fn timer(&mut self, timer: NoTimer, _: &mut Context<'_, Ordered<B, C>>) {
        match timer {}
    }

    fn replay(&mut self, record: Record<B::Record>, _: &mut Context<'_, Ordered<B, C>>) {
        let Record::Applied { position, txn, decision, writes } = record else {
            unreachable!("a site logs what it applies")
        };
        self.apply(position, txn, decision, writes);
    }
}

impl<B: Broadcast, C: Certify> Participant<Ordered<B, C>> for Site<B, C> {
    muesli_core::participant_without_marks!(Ordered<B, C>);
    muesli_core::participant_without_readers!(Ordered<B, C>);
    muesli_core::participant_kept_by_one_node!();
    muesli_core::participant_without_sizes!();

    fn new(id: RepositoryId, _: &Settings, (): &()) -> Site<B, C> {
        let (keys, outcomes, waiting) = Default::default();
        Site { id, keys, applied: 0, outcomes, waiting, layers: PhantomData }
    }

    fn chains(&self, _: &Catalog) -> Vec<(SpaceId, SmallBytes, Vec<Timestamp>)> {
        let newest = self.keys.iter();
        newest.map(|((space, key), (at, _))| (*space, key.clone(), vec![*at])).collect()
    }
}
