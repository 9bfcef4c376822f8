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
//! with a later one that it knows. A coordinator that died is not asked anything: what it had sent
//! is done, and what it had not is nothing.

use std::collections::BTreeMap;

use muesli_core::contract::at_once;
use muesli_core::judgement::{ensure, in_range};
use muesli_core::parts::open::{OpenTransaction, OpenTransactions};
use muesli_core::recorder::{Recorder, Status};
use muesli_core::{
    Abort, Address, Answer, Catalog, Committed, Context, Coordinator, Decision, Failure, Here,
    Isolation, NoTimer, NodeId, OpId, Operation, Participant, Protocol, Put, Rejection,
    RepositoryId, Role, Sender, Settings, SmallBytes, SpaceId, Step, Timestamp, Txn, TxnId, View,
    timers, wire_enum, wire_struct,
};

/// The protocol.
#[derive(Clone, Copy, Debug)]
pub enum Central {}

/// Where all keys are.
const CENTRE: RepositoryId = RepositoryId(0);

/// What a transaction read: each key with its version.
type Reads = Vec<(SpaceId, SmallBytes, Timestamp)>;
/// What a transaction writes; a value of `None` deletes.
type Writes = Vec<(SpaceId, SmallBytes, Option<SmallBytes>)>;

/// What the roles say to each other.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are what their names say")]
pub enum Message {
    /// Coordinator to repository: what is there?
    Read { op: u64, space: SpaceId, key: SmallBytes },
    /// Repository to coordinator: this, in this version.
    Value { op: u64, version: Timestamp, value: Option<SmallBytes> },
    /// Coordinator to repository: commit this, and forget what is below.
    Commit { txn: TxnId, settled_below: u64, reads: Reads, writes: Writes },
    /// Repository to coordinator: so it ended.
    Ended { txn: TxnId, decision: Decision },
}

wire_enum!(Message, "message of the central protocol" {
    0 => Read { op: u64, space: SpaceId, key: SmallBytes },
    1 => Value { op: u64, version: Timestamp, value: Option<SmallBytes> },
    2 => Commit { txn: TxnId, settled_below: u64, reads: Reads, writes: Writes },
    3 => Ended { txn: TxnId, decision: Decision },
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
    type Coordinator = Client;
    type Participant = Centre;

    muesli_core::protocol_without_services!();
    muesli_core::protocol_without_extras!();
    muesli_core::protocol_measured_by_encoding!();

    fn is_about(_: &Message, _: &Catalog) -> bool {
        true
    }

    fn judge(
        message: &Message,
        from: Address,
        sender: Sender,
        view: View<'_>,
    ) -> Result<(), Rejection> {
        let is_asked = matches!(message, Message::Read { .. } | Message::Commit { .. });
        let asked = if is_asked { Role::Repository(CENTRE) } else { Role::Coordinator };
        ensure(view.me.role == asked, Rejection::Role)?;
        match message {
            Message::Read { .. } => Ok(()),
            Message::Commit { txn, settled_below, reads, .. } => {
                ensure(*settled_below <= txn.sequence, Rejection::Range)?;
                reads.iter().try_for_each(|(_, _, version)| in_range(*version))?;
                view.owner(from, *txn)
            }
            Message::Value { .. } | Message::Ended { .. } => view.voter(from, sender, CENTRE),
        }
    }

    fn offers_strict(_: &Rules) -> bool {
        true
    }
}

/// The coordinator.
#[derive(Clone, Debug)]
pub struct Client {
    node: NodeId,
    incarnation: u32,
    ops: u64,
    sequence: u64,
    open: OpenTransactions,
    reads: BTreeMap<OpId, (Txn, SpaceId, SmallBytes)>,
    commits: BTreeMap<u64, (OpId, OpenTransaction)>,
}

timers! {
    /// The timers of a coordinator.
    pub enum ClientTimer {
        /// Repeats what was not answered.
        Repeat = 0,
    }
}

impl Client {
    fn next_op(&mut self) -> OpId {
        self.ops += 1;
        OpId(self.ops)
    }

    fn id(&self, sequence: u64) -> TxnId {
        TxnId { node: self.node, incarnation: self.incarnation, sequence }
    }

    fn get(
        &mut self,
        txn: Txn,
        (space, key): (SpaceId, SmallBytes),
        cx: &mut Context<'_, Central>,
    ) -> Result<Step, Failure> {
        if let Some(own) = self.open.get(txn)?.read_own(space, &key) {
            return Ok(Step::Done(Ok(Answer::Value(own))));
        }
        let op = self.next_op();
        self.reads.insert(op, (txn, space, key.clone()));
        cx.send_to_repository(CENTRE, Message::Read { op: op.0, space, key });
        Ok(Step::Wait(op))
    }

    fn commit(&mut self, txn: Txn, cx: &mut Context<'_, Central>) -> Result<Step, Failure> {
        let open = self.open.end(txn)?;
        self.sequence += 1;
        let op = self.next_op();
        self.commits.insert(self.sequence, (op, open));
        self.send_commit(self.sequence, cx);
        Ok(Step::Wait(op))
    }

    /// Sends a commit, perhaps once more.
    fn send_commit(&self, sequence: u64, cx: &mut Context<'_, Central>) {
        let settled_below = *self.commits.keys().next().expect("one at least");
        let ((_, open), txn) = (&self.commits[&sequence], self.id(sequence));
        let (reads, writes) = (open.reads(), open.writes());
        cx.send_to_repository(CENTRE, Message::Commit { txn, settled_below, reads, writes });
    }

    fn on_ended(&mut self, txn: TxnId, decision: Decision, cx: &mut Context<'_, Central>) {
        let Some((op, open)) = self.commits.remove(&txn.sequence) else { return };
        let (status, at, answer) = match decision {
            Decision::Commit(at) => {
                (Status::Committed, Some(at), Ok(Answer::Committed(Committed { at })))
            }
            Decision::Abort(reason) => (Status::Aborted, None, Err(Failure::Aborted(reason))),
        };
        let now = cx.now();
        if let Some(recorder) = &mut cx.effects.recorder {
            open.record(txn, status, (Some(now), at), recorder);
        }
        cx.complete(op, answer);
    }
}

impl Coordinator<Central> for Client {
    type Timer = ClientTimer;

    muesli_core::coordinator_without_peeks!(Central);
    muesli_core::coordinator_without_neighbours!(Central);
    muesli_core::coordinator_without_memory!();
    muesli_core::role_without_judgement!(Central);

    fn new(node: NodeId, incarnation: u32, _: &Rules) -> Client {
        let (open, reads, commits) = Default::default();
        Client { node, incarnation, ops: 0, sequence: 0, open, reads, commits }
    }

    fn start(&mut self, _: Here<'_, Central>, cx: &mut Context<'_, Central>) {
        cx.set_timer(ClientTimer::Repeat, cx.settings.retry_after);
    }

    fn operate(
        &mut self,
        operation: Operation,
        _: Here<'_, Central>,
        cx: &mut Context<'_, Central>,
    ) -> Step {
        let step = match operation {
            Operation::Begin(options) => {
                Ok(Step::Done(Ok(Answer::Begun(self.open.begin(options, cx.now())))))
            }
            Operation::Get(txn, space, key) => self.get(txn, (space, key), cx),
            Operation::Put(txn, Put { space, key, value, .. }) => {
                let open = self.open.get(txn);
                open.and_then(|open| open.write(space, key, value, &cx.settings.limits))
                    .map(|()| Step::Done(Ok(Answer::Written)))
            }
            Operation::Delay(_, delay, _) => {
                at_once(&delay, cx.settings).map(|later| Step::Done(Ok(Answer::Delayed(later))))
            }
            Operation::Commit(txn) => self.commit(txn, cx),
            Operation::Abort(txn, failure) => {
                let _ = self.open.end(txn); // It may have ended.
                for (op, _) in self.reads.extract_if(.., |_, (of, ..)| *of == txn) {
                    cx.complete(op, Err(failure.clone()));
                }
                Ok(Step::Done(Ok(Answer::Ended)))
            }
            Operation::GetMany(..) | Operation::Scan(..) => {
                Err(Failure::Space("keys are read one by one under `central`".into()))
            }
            Operation::Invoke(..) => Err(Failure::Procedure("`central` has no procedures".into())),
        };
        step.unwrap_or_else(|failure| Step::Done(Err(failure)))
    }

    fn receive(
        &mut self,
        _: Address,
        message: Message,
        _: Here<'_, Central>,
        cx: &mut Context<'_, Central>,
    ) {
        match message {
            Message::Value { op, version, value } => {
                let Some((txn, space, key)) = self.reads.remove(&OpId(op)) else { return };
                if let Ok(open) = self.open.get(txn) {
                    open.has_read((space, key), CENTRE, (version, value.as_ref()));
                    cx.complete(OpId(op), Ok(Answer::Value(value)));
                }
            }
            Message::Ended { txn, decision } => {
                if txn == self.id(txn.sequence) {
                    self.on_ended(txn, decision, cx);
                }
            }
            Message::Read { .. } | Message::Commit { .. } => {} // For the repository.
        }
    }

    fn timer(&mut self, _: ClientTimer, _: Here<'_, Central>, cx: &mut Context<'_, Central>) {
        for (op, (_, space, key)) in &self.reads {
            let read = Message::Read { op: op.0, space: *space, key: key.clone() };
            cx.send_to_repository(CENTRE, read);
        }
        self.commits.keys().for_each(|sequence| self.send_commit(*sequence, cx));
        cx.set_timer(ClientTimer::Repeat, cx.settings.retry_after);
    }

    fn open_transactions(&self) -> Vec<Txn> {
        self.open.all()
    }

    fn record_running(&self, recorder: &mut Recorder) {
        for (sequence, (_, open)) in &self.commits {
            open.record(self.id(*sequence), Status::Unknown, (None, None), recorder);
        }
    }

    fn unfinished(&self) -> usize {
        self.open.len() + self.commits.len()
    }
}

/// The participant; that of every repository but [`CENTRE`] stays empty.
#[derive(Clone, Debug)]
pub struct Centre {
    rules: Rules,
    keys: BTreeMap<(SpaceId, SmallBytes), (Timestamp, Option<SmallBytes>)>,
    last: Timestamp,
    /// How transactions of each coordinator's newest life ended, as far as it may ask.
    ended: BTreeMap<NodeId, (u32, BTreeMap<u64, Decision>)>,
}

impl Centre {
    fn read(&self, space: SpaceId, key: SmallBytes) -> (Timestamp, Option<SmallBytes>) {
        self.keys.get(&(space, key)).cloned().unwrap_or((Timestamp::ZERO, None))
    }

    fn decide(&self, reads: Reads) -> Decision {
        let is_new = |(space, key, version): (_, _, _)| self.read(space, key).0 == version;
        match self.rules.skips_validation || reads.into_iter().all(is_new) {
            true => Decision::Commit(self.last.after(1, CENTRE)),
            false => Decision::Abort(Abort::StaleRead),
        }
    }

    /// The newest life of a transaction's coordinator; `None`: its own is older.
    fn life_of(&mut self, txn: TxnId) -> Option<&mut BTreeMap<u64, Decision>> {
        let (incarnation, ended) = self.ended.entry(txn.node).or_default();
        if *incarnation < txn.incarnation {
            (*incarnation, *ended) = (txn.incarnation, BTreeMap::new());
        }
        (*incarnation == txn.incarnation).then_some(ended)
    }

    fn apply(&mut self, Record { txn, decision, writes }: Record) {
        if let Decision::Commit(at) = decision {
            self.last = at;
            for (space, key, value) in writes {
                self.keys.insert((space, key), (at, value));
            }
        }
        self.life_of(txn).expect("it was looked for").insert(txn.sequence, decision);
    }
}

impl Participant<Central> for Centre {
    type Timer = NoTimer;

    muesli_core::participant_without_checkpoints!(Central);
    muesli_core::participant_without_doubts!(Central);
    muesli_core::participant_kept_by_one_node!(Central);
    muesli_core::role_without_judgement!(Central);

    fn new(_: RepositoryId, _: &Settings, rules: &Rules) -> Centre {
        let (keys, ended) = Default::default();
        Centre { rules: *rules, keys, last: Timestamp::ZERO, ended }
    }

    fn start(&mut self, _: &mut Context<'_, Central>) {}

    fn receive(&mut self, from: Address, message: Message, cx: &mut Context<'_, Central>) {
        match message {
            Message::Read { op, space, key } => {
                let (version, value) = self.read(space, key);
                cx.send(from, Message::Value { op, version, value });
            }
            Message::Commit { txn, settled_below, reads, writes } => {
                let Some(ended) = self.life_of(txn) else { return };
                ended.retain(|sequence, _| *sequence >= settled_below);
                let known = ended.get(&txn.sequence).copied();
                let decision = known.unwrap_or_else(|| {
                    let decision = self.decide(reads);
                    let record = Record { txn, decision, writes };
                    cx.log(|| record.clone());
                    if let (Decision::Commit(at), Some(recorder)) =
                        (decision, &mut cx.effects.recorder)
                    {
                        recorder.applied(txn, at);
                    }
                    self.apply(record);
                    decision
                });
                cx.send(from, Message::Ended { txn, decision });
            }
            Message::Value { .. } | Message::Ended { .. } => {} // For coordinators.
        }
    }

    fn timer(&mut self, timer: NoTimer, _: &mut Context<'_, Central>) {
        match timer {}
    }

    fn replay(&mut self, record: Record, _: &mut Context<'_, Central>) {
        self.apply(record);
    }

    fn chains(&self, _: &Catalog) -> Vec<(SpaceId, SmallBytes, Vec<Timestamp>)> {
        let newest = self.keys.iter();
        newest.map(|((space, key), (at, _))| (*space, key.clone(), vec![*at])).collect()
    }
}
