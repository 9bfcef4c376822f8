//! A protocol to start from: repository 0 keeps all keys, and validates each commit.
//!
//! # The idea
//! A transaction reads at repository 0, and remembers the version of each key that it read. Its
//! commit carries these versions and its writes. The repository compares the versions with what is
//! there now: where all are the same, it installs the writes under the next timestamp, else it
//! aborts the transaction. It does one commit after the other, so they have one order, and each
//! read what the order says. A commit is logged before it is answered.
//!
//! # What can go wrong
//! A message may be lost with its link: the coordinator repeats what was not answered. So a commit
//! may come twice: the repository remembers how transactions ended, until their coordinator says
//! with a later one that it knows ([`client`](crate::client)). A coordinator that died is not asked
//! anything: what it had sent is done, and what it had not is nothing.

use std::collections::BTreeMap;

use muesli_core::{
    Abort, Address, Catalog, Context, Decision, Isolation, LoggedRole, NoTimer, NodeId,
    Participant, Protocol, Rejection, RepositoryId, Settings, SmallBytes, SpaceId, StateMachine,
    Timestamp, TxnId, View, wire_enum, wire_struct,
};

use crate::client::{AskingClient, AsksOne, KnownEnd, Outcomes, Question, Reads, Tell, Writes};

/// The protocol.
#[derive(Clone, Copy, Debug)]
pub enum Central {}

/// Where all keys are.
const CENTRE: RepositoryId = RepositoryId(0);

/// What the roles say to each other.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are what their names say")]
pub enum Message {
    /// Coordinator to repository.
    Ask { ask: Question },
    /// Repository to coordinator.
    Tell { tell: Tell },
}

wire_enum!(Message, "message of the central protocol" {
    0 => Ask { ask: Question },
    1 => Tell { tell: Tell },
});

/// A transaction has ended.
#[derive(Clone, Debug)]
pub struct Record {
    txn: TxnId,
    decision: Decision,
    writes: Writes,
}

wire_struct!(Record { txn: TxnId, decision: Decision, writes: Writes });

/// Switches. One that breaks the key rule is there to see that the checker notices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// Commits without comparing versions.
    pub skips_validation: bool,
}

impl Protocol for Central {
    const NAME: &'static str = "central";
    const ISOLATION: Isolation = Isolation::StrictSerializable;
    const REPLICATES_ITSELF: bool = false;
    type Message = Message;
    type Record = Record;
    type Rules = Rules;
    type Coordinator = AskingClient<Central>;
    type Participant = Centre;

    muesli_core::protocol_without_services!();
    muesli_core::protocol_without_extras!();
    muesli_core::protocol_measured_by_encoding!();

    fn is_about(_: &Message, _: &Catalog) -> bool {
        true
    }

    fn judge(message: &Message, view: View<'_>) -> Result<(), Rejection> {
        match message {
            Message::Ask { ask } => ask.judge(view),
            Message::Tell { tell } => tell.judge(view),
        }
    }

    fn offers_strict(_: &Rules) -> bool {
        true
    }
}

impl AsksOne for Central {
    fn base(_: NodeId, _: &Catalog) -> RepositoryId {
        CENTRE
    }

    fn ask(ask: Question) -> Message {
        Message::Ask { ask }
    }

    fn told(message: Message) -> Option<Tell> {
        match message {
            Message::Tell { tell } => Some(tell),
            Message::Ask { .. } => None,
        }
    }
}

/// The participant; that of every repository but [`CENTRE`] stays empty.
#[derive(Clone, Debug)]
pub struct Centre {
    rules: Rules,
    keys: BTreeMap<(SpaceId, SmallBytes), (Timestamp, Option<SmallBytes>)>,
    last: Timestamp,
    outcomes: Outcomes,
}

impl Centre {
    fn read(&self, space: SpaceId, key: SmallBytes) -> (Timestamp, Option<SmallBytes>) {
        self.keys.get(&(space, key)).cloned().unwrap_or((Timestamp::ZERO, None))
    }

    fn decide(&self, reads: Reads) -> Decision {
        let is_new = |(space, key, version)| self.read(space, key).0 == version;
        match self.rules.skips_validation || reads.into_iter().all(is_new) {
            true => Decision::Commit(self.last.after(1, CENTRE)),
            false => Decision::Abort(Abort::StaleRead),
        }
    }

    fn apply(&mut self, Record { txn, decision, writes }: Record) {
        if let Decision::Commit(at) = decision {
            assert!(at > self.last, "{txn} commits at {at}, and {} was before", self.last);
            self.last = at;
            for (space, key, value) in writes {
                self.keys.insert((space, key), (at, value));
            }
        }
        self.outcomes.decide(txn, decision);
    }

    fn commit(
        &mut self,
        txn: TxnId,
        reads: Reads,
        writes: Writes,
        cx: &mut Context<'_, Central>,
    ) -> Decision {
        let decision = self.decide(reads);
        let record = Record { txn, decision, writes };
        cx.log(|| record.clone());
        if let (Decision::Commit(at), Some(recorder)) = (decision, &mut cx.effects.recorder) {
            recorder.applied(txn, at);
        }
        self.apply(record);
        decision
    }
}

impl StateMachine<Central> for Centre {
    type Timer = NoTimer;

    fn unfinished(&self) -> usize {
        0
    }

    muesli_core::role_without_links!(Central);
    muesli_core::role_without_judgement!(Central);

    fn assert_invariants(&self) {
        let newest = self.keys.values().map(|(at, _)| *at).max();
        assert!(newest.is_none_or(|newest| newest <= self.last), "no key is newer than the last");
    }
}

impl LoggedRole<Central> for Centre {
    muesli_core::role_without_checkpoints!(Central);
    muesli_core::role_that_stays!(Central);

    fn start(&mut self, _: &mut Context<'_, Central>) {}

    fn receive(&mut self, from: Address, message: Message, cx: &mut Context<'_, Central>) {
        let tell = match message {
            Message::Ask { ask: Question::Read { op, space, key } } => {
                let (version, value) = self.read(space, key);
                Tell::Value { op, version, value }
            }
            Message::Ask { ask: Question::Commit { txn, settled_below, reads, writes } } => {
                let decision = match self.outcomes.ask(txn, settled_below) {
                    KnownEnd::New => self.commit(txn, reads, writes, cx),
                    KnownEnd::Decided(decision) => decision,
                    KnownEnd::Gone => return,
                };
                Tell::Ended { txn, decision }
            }
            Message::Tell { .. } => return, // For coordinators.
        };
        cx.send(from, Message::Tell { tell });
    }

    fn timer(&mut self, timer: NoTimer, _: &mut Context<'_, Central>) {
        match timer {}
    }

    fn replay(&mut self, record: Record, _: &mut Context<'_, Central>) {
        self.apply(record);
    }
}

impl Participant<Central> for Centre {
    muesli_core::participant_without_marks!(Central);
    muesli_core::participant_without_readers!(Central);
    muesli_core::participant_kept_by_one_node!();

    fn new(_: RepositoryId, _: &Settings, rules: &Rules) -> Centre {
        let (keys, outcomes) = Default::default();
        Centre { rules: *rules, keys, last: Timestamp::ZERO, outcomes }
    }

    fn chains(&self, _: &Catalog) -> Vec<(SpaceId, SmallBytes, Vec<Timestamp>)> {
        let newest = self.keys.iter();
        newest.map(|((space, key), (at, _))| (*space, key.clone(), vec![*at])).collect()
    }
}
