//! A protocol to start from: repository 0 keeps all keys, and validates each commit.
//!
//! # The idea
//! A transaction reads at repository 0. Its commit carries the versions that it read, and its
//! writes. Where these versions are still there, they are installed under the next timestamp.
//!
//! # What can go wrong
//! A message may be lost: the coordinator repeats what was not answered, so a commit may come
//! twice, and the repository remembers how transactions ended ([`KnownOutcomes`]).

use std::collections::BTreeMap;

use muesli_core::checkpoint::CopiedAtOnce;
use muesli_core::parts::single_repository::{
    KnownOutcomes, NewValues, ReadVersions, RepositoryMessage, SingleRepository,
    SingleRepositoryCoordinator, SingleRepositoryProtocol,
};
use muesli_core::{
    Abort, Address, Catalog, Context, Decision, Isolation, LoggedRole, NoTimer, NodeId,
    Participant, Protocol, Rejection, RepositoryId, Settings, SmallBytes, SpaceId, StateMachine,
    Timestamp, TxnId, View, wire_struct,
};

/// The protocol.
#[derive(Clone, Copy, Debug)]
pub enum Central {}

/// Where all keys are.
const CENTRE: RepositoryId = RepositoryId(0);

/// A transaction has ended.
#[derive(Clone, Debug)]
pub struct Record {
    txn: TxnId,
    decision: Decision,
    writes: NewValues,
}

wire_struct!(Record { txn: TxnId, decision: Decision, writes: NewValues });

/// Switches: one that breaks the key rule, to see that the checker notices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Switches {
    /// Commits without comparing versions.
    pub skips_validation: bool,
}

impl Protocol for Central {
    const NAME: &'static str = "central";
    const REPLICATES_ITSELF: bool = false;
    type Message = RepositoryMessage;
    type Record = Record;
    type Switches = Switches;
    type Coordinator = SingleRepositoryCoordinator<Central>;
    type Participant = Centre;

    muesli_core::protocol_without_services!();
    muesli_core::protocol_without_extras!();
    muesli_core::protocol_measured_by_encoding!();

    fn isolation(_: &Switches) -> Isolation {
        Isolation::StrictSerializable
    }

    fn is_about(_: &RepositoryMessage, _: &Catalog) -> bool {
        true
    }

    fn judge(message: &RepositoryMessage, view: View<'_>) -> Result<(), Rejection> {
        message.judge(view)
    }

    fn offers_strict(_: &Switches) -> bool {
        true
    }
}

impl SingleRepositoryProtocol for Central {
    fn base(_: NodeId, _: &Catalog) -> RepositoryId {
        CENTRE
    }
}

/// The participant; that of every repository but [`CENTRE`] stays empty.
#[derive(Clone, Debug, Default)]
pub struct Centre {
    switches: Switches,
    keys: BTreeMap<(SpaceId, SmallBytes), (Timestamp, Option<SmallBytes>)>,
    last: Timestamp,
    outcomes: KnownOutcomes,
}

impl SingleRepository<Central> for Centre {
    fn outcomes(&mut self) -> &mut KnownOutcomes {
        &mut self.outcomes
    }

    fn read(&self, space: SpaceId, key: SmallBytes) -> (Timestamp, Option<SmallBytes>) {
        self.keys.get(&(space, key)).cloned().unwrap_or_default()
    }

    fn decide(&self, _: TxnId, reads: ReadVersions) -> Decision {
        let is_new = |(space, key, version)| self.read(space, key).0 == version;
        match self.switches.skips_validation || reads.into_iter().all(is_new) {
            true => Decision::Commit(self.last.after(1, CENTRE)),
            false => Decision::Abort(Abort::StaleRead),
        }
    }

    fn record(txn: TxnId, decision: Decision, writes: NewValues) -> Record {
        Record { txn, decision, writes }
    }

    fn apply(&mut self, Record { txn, decision, writes }: Record) {
        if let Decision::Commit(at) = decision {
            assert!(at > self.last, "{txn} commits at {at}, and {} was before", self.last);
            self.last = at;
            let writes = writes.into_iter().map(|(space, key, value)| ((space, key), (at, value)));
            self.keys.extend(writes);
        }
        self.outcomes.decide(txn, decision);
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
        assert!(self.keys.values().all(|(at, _)| *at <= self.last), "a key is newer than the last");
    }
}

impl LoggedRole<Central> for Centre {
    muesli_core::role_copied_at_once!(Central);
    muesli_core::role_that_stays!(Central);

    fn start(&mut self, _: &mut Context<'_, Central>) {}

    fn receive(
        &mut self,
        from: Address,
        message: RepositoryMessage,
        cx: &mut Context<'_, Central>,
    ) {
        let RepositoryMessage::Request { request } = message else { return }; // For others.
        if let Some(reply) = self.answer(request, cx) {
            cx.send(from, RepositoryMessage::Reply { reply });
        }
    }

    fn timer(&mut self, timer: NoTimer, _: &mut Context<'_, Central>) {
        match timer {}
    }

    fn replay(&mut self, record: Record, _: &mut Context<'_, Central>) {
        self.apply(record);
    }
}

impl CopiedAtOnce for Centre {
    type Head = (Timestamp, KnownOutcomes);
    type Item = ((SpaceId, SmallBytes), (Timestamp, Option<SmallBytes>));

    fn head(&self) -> Self::Head {
        (self.last, self.outcomes.clone())
    }

    fn items(&self) -> impl Iterator<Item = Self::Item> {
        self.keys.iter().map(|(key, found)| (key.clone(), found.clone()))
    }

    fn take_head(&mut self, head: Self::Head) {
        (self.last, self.outcomes) = head;
    }

    fn take_item(&mut self, (key, found): Self::Item) {
        self.keys.insert(key, found);
    }
}

impl Participant<Central> for Centre {
    muesli_core::participant_without_marks!(Central);
    muesli_core::participant_without_readers!(Central);
    muesli_core::participant_kept_by_one_node!();
    muesli_core::participant_without_sizes!();
    fn new(_: RepositoryId, _: &Settings, switches: &Switches) -> Centre {
        Centre { switches: *switches, ..Centre::default() }
    }

    fn chains(&self, _: &Catalog) -> Vec<(SpaceId, SmallBytes, Vec<Timestamp>)> {
        self.keys.iter().map(|((space, key), (at, _))| (*space, key.clone(), vec![*at])).collect()
    }
}
