//! A small protocol to test the world with: registers that are read and written by messages.
//!
//! Transactions are neither isolated nor aborted. What is promised is that a write whose commit
//! was answered is there for ever, and that every commit is answered once nothing is wrong any
//! more. Its rules switch each of the two off, so that tests can see themselves fail.

pub mod client;

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasherDefault;

use muesli_core::{
    Address, Answer, Catalog, Committed, Context, Coordinator, Doubt, Failure, Here, Isolation,
    LoggedRole, Nanos, NoTimer, NodeId, OpId, Operation, Outcome, Participant, Protocol, Put,
    Reader, Recorder, Rejection, RepositoryId, Settings, SmallBytes, SpaceId, StateMachine, Step,
    Timestamp, Txn, TxnId, View, Wire, WireError, timers, wire_struct,
};

#[derive(Clone, Copy, Debug)]
pub enum Registers {}

#[derive(Clone, Debug)]
pub enum Message {
    /// Coordinator to repository: what does the register hold?
    Read { op: OpId, key: SmallBytes },
    /// Repository to coordinator.
    Value { op: OpId, value: Option<SmallBytes> },
    /// Coordinator to repository: may be repeated.
    Write { txn: TxnId, writes: Vec<Write> },
    /// Repository to coordinator: the writes are stable.
    Written { txn: TxnId },
}

pub type Write = (SmallBytes, Option<SmallBytes>);

#[derive(Clone, Debug)]
pub struct Record {
    txn: TxnId,
    writes: Vec<Write>,
}

#[derive(Clone, Copy, Debug)]
pub struct Switches {
    /// A repository logs before it says that it has written.
    pub log: bool,
    /// A coordinator says again what was not answered.
    pub resend: bool,
}

impl Default for Switches {
    fn default() -> Self {
        Switches { log: true, resend: true }
    }
}

wire_struct!(Record { txn: TxnId, writes: Vec<Write> });

impl Wire for Message {
    const LEAST_BYTES: usize = 10;

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Message::Read { op, key } => {
                out.push(0);
                (*op, key.clone()).encode(out);
            }
            Message::Value { op, value } => {
                out.push(1);
                (*op, value.clone()).encode(out);
            }
            Message::Write { txn, writes } => {
                out.push(2);
                (*txn, writes.clone()).encode(out);
            }
            Message::Written { txn } => {
                out.push(3);
                txn.encode(out);
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Message, WireError> {
        Ok(match input.variant("message of registers", 4)? {
            0 => Message::Read { op: Wire::decode(input)?, key: Wire::decode(input)? },
            1 => Message::Value { op: Wire::decode(input)?, value: Wire::decode(input)? },
            2 => Message::Write { txn: Wire::decode(input)?, writes: Wire::decode(input)? },
            _ => Message::Written { txn: Wire::decode(input)? },
        })
    }
}

fn writes_bytes(writes: &[Write]) -> usize {
    writes.iter().map(|(key, value)| key.len() + value.as_ref().map_or(1, SmallBytes::len)).sum()
}

impl Protocol for Registers {
    const NAME: &'static str = "registers";
    type Message = Message;
    type Record = Record;
    type Switches = Switches;
    type Coordinator = Client;
    type Participant = Bank;
    fn isolation(_: &Self::Switches) -> Isolation {
        Isolation::RepeatableRead
    }

    muesli_core::protocol_without_services!();
    const TIMESTAMP_STEP: Option<Nanos> = None;
    const REPLICATES_ITSELF: bool = false;
    const KEEPS_COPIES: bool = false;
    const KEEPS_OLD_VERSIONS: bool = false;

    fn as_client(_: &Message, _: NodeId) -> Option<Message> {
        None
    }

    fn has_masters(_: &Switches) -> bool {
        false
    }

    fn is_for_all(_: &Message) -> bool {
        false
    }

    fn is_for_any(_: &Message) -> bool {
        false
    }

    fn is_about(_: &Message, _: &Catalog) -> bool {
        true
    }

    fn offers_strict(_: &Switches) -> bool {
        false
    }

    fn judge(_: &Message, _: View<'_>) -> Result<(), Rejection> {
        Ok(())
    }

    fn wire_bytes(message: &Message) -> usize {
        match message {
            Message::Read { key, .. } => 24 + key.len(),
            Message::Value { value, .. } => 24 + value.as_ref().map_or(0, SmallBytes::len),
            Message::Write { writes, .. } => 32 + writes_bytes(writes),
            Message::Written { .. } => 32,
        }
    }

    fn record_bytes(record: &Record) -> usize {
        24 + writes_bytes(&record.writes)
    }

    fn message_name(message: &Message) -> &'static str {
        match message {
            Message::Read { .. } => "Read",
            Message::Value { .. } => "Value",
            Message::Write { .. } => "Write",
            Message::Written { .. } => "Written",
        }
    }
}

/// The coordinator.
#[derive(Clone, Debug)]
pub struct Client {
    node: NodeId,
    incarnation: u32,
    switches: Switches,
    begun: u32,
    ops: u64,
    running: BTreeMap<u32, Vec<Write>>,
    reads: BTreeMap<OpId, (RepositoryId, SmallBytes)>,
    commits: BTreeMap<TxnId, Commit>,
}

#[derive(Clone, Debug)]
struct Commit {
    op: OpId,
    unanswered: BTreeMap<RepositoryId, Vec<Write>>,
}

const RESEND_EVERY: Nanos = Nanos::from_millis(20);

impl Client {
    fn next_op(&mut self) -> OpId {
        self.ops += 1;
        OpId(self.ops)
    }

    fn home(key: &SmallBytes, cx: &Context<'_, Registers>) -> RepositoryId {
        let place = key.as_slice().iter().map(|byte| usize::from(*byte)).sum::<usize>();
        RepositoryId((place % cx.catalog.repositories()) as u16)
    }

    fn commit(&mut self, txn: Txn, cx: &mut Context<'_, Registers>) -> Step {
        let Some(writes) = self.running.remove(&txn.slot) else {
            return Step::Done(Err(Failure::Ended));
        };
        let sequence = u64::from(txn.slot);
        let id = TxnId { node: self.node, incarnation: self.incarnation, sequence };
        let mut unanswered: BTreeMap<RepositoryId, Vec<Write>> = BTreeMap::new();
        for (key, value) in writes {
            unanswered.entry(Client::home(&key, cx)).or_default().push((key, value));
        }
        if unanswered.is_empty() {
            return Step::Done(Ok(Answer::Committed(Committed { at: Timestamp::ZERO })));
        }
        for (repository, writes) in &unanswered {
            let message = Message::Write { txn: id, writes: writes.clone() };
            cx.send_to_repository(*repository, message);
        }
        let op = self.next_op();
        self.commits.insert(id, Commit { op, unanswered });
        Step::Wait(op)
    }

    fn send_all(&self, cx: &mut Context<'_, Registers>) {
        for (op, (repository, key)) in &self.reads {
            cx.send_to_repository(*repository, Message::Read { op: *op, key: key.clone() });
        }
        for (txn, commit) in &self.commits {
            for (repository, writes) in &commit.unanswered {
                let message = Message::Write { txn: *txn, writes: writes.clone() };
                cx.send_to_repository(*repository, message);
            }
        }
    }
}

timers! {
    pub enum ClientTimer {
        Resend = 0,
    }
}

impl StateMachine<Registers> for Client {
    type Timer = ClientTimer;

    muesli_core::role_without_links!(Registers);
    muesli_core::role_without_judgement!(Registers);

    fn assert_invariants(&self) {
        let begun = |slot: &u32| *slot <= self.begun;
        assert!(self.running.keys().all(begun), "a transaction that nobody began");
        assert!(self.reads.keys().all(|op| op.0 <= self.ops), "a read that nobody asked for");
        let mut commits = self.commits.values();
        assert!(commits.all(|commit| !commit.unanswered.is_empty()), "a commit waits for nobody");
    }

    fn unfinished(&self) -> usize {
        self.running.len() + self.commits.len()
    }
}

impl Coordinator<Registers> for Client {
    fn new(node: NodeId, incarnation: u32, switches: &Switches) -> Self {
        let (running, reads, commits) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Client { node, incarnation, switches: *switches, begun: 0, ops: 0, running, reads, commits }
    }

    fn operate(
        &mut self,
        operation: Operation,
        _: Here<'_, Registers>,
        cx: &mut Context<'_, Registers>,
    ) -> Step {
        match operation {
            Operation::Begin(_) => {
                self.begun += 1;
                self.running.insert(self.begun, Vec::new());
                Step::Done(Ok(Answer::Begun(Txn { slot: self.begun, generation: 0 })))
            }
            Operation::Get(_, _, key) => {
                let (op, repository) = (self.next_op(), Client::home(&key, cx));
                self.reads.insert(op, (repository, key.clone()));
                cx.send_to_repository(repository, Message::Read { op, key });
                Step::Wait(op)
            }
            Operation::Put(txn, Put { key, value, .. }) => {
                let Some(writes) = self.running.get_mut(&txn.slot) else {
                    return Step::Done(Err(Failure::Ended));
                };
                writes.push((key, value));
                Step::Done(Ok(Answer::Written))
            }
            Operation::Commit(txn) => self.commit(txn, cx),
            Operation::Abort(txn, _) => {
                self.running.remove(&txn.slot);
                Step::Done(Ok(Answer::Ended))
            }
            Operation::GetMany(..)
            | Operation::Scan(..)
            | Operation::Delay(..)
            | Operation::Nest(..)
            | Operation::Merge(..)
            | Operation::Unnest(..)
            | Operation::Watch(_)
            | Operation::Invoke(..) => {
                Step::Done(Err(Failure::Space("registers are read and written one by one".into())))
            }
        }
    }

    muesli_core::coordinator_without_peeks!(Registers);
    muesli_core::coordinator_without_sessions!(Registers);

    fn oldest_snapshot(&self) -> Option<(NodeId, Option<Nanos>)> {
        None
    }

    fn outcome(&self, _: TxnId) -> Outcome {
        Outcome::NotKnown(Doubt::Forgotten)
    }

    fn open_transactions(&self) -> Vec<Txn> {
        self.running.keys().map(|&slot| Txn { slot, generation: 0 }).collect()
    }

    fn receive(
        &mut self,
        from: Address,
        message: Message,
        _: Here<'_, Registers>,
        cx: &mut Context<'_, Registers>,
    ) {
        match message {
            Message::Value { op, value } => {
                if self.reads.remove(&op).is_some() {
                    cx.complete(op, Ok(Answer::Value(value)));
                }
            }
            Message::Written { txn } => {
                let (Some(commit), muesli_core::Role::Repository(repository)) =
                    (self.commits.get_mut(&txn), from.role)
                else {
                    return;
                };
                commit.unanswered.remove(&repository);
                if commit.unanswered.is_empty() {
                    let at = Timestamp::ZERO;
                    cx.complete(commit.op, Ok(Answer::Committed(Committed { at })));
                    self.commits.remove(&txn);
                }
            }
            Message::Read { .. } | Message::Write { .. } => unreachable!("for a repository"),
        }
    }

    fn start(&mut self, here: Here<'_, Registers>, cx: &mut Context<'_, Registers>) {
        self.timer(ClientTimer::Resend, here, cx);
    }

    fn timer(&mut self, _: ClientTimer, _: Here<'_, Registers>, cx: &mut Context<'_, Registers>) {
        if self.switches.resend {
            self.send_all(cx);
        }
        cx.set_timer(ClientTimer::Resend, RESEND_EVERY);
    }

    fn record_running(&self, _: &mut Recorder) {}
}

type Unseeded = BuildHasherDefault<DefaultHasher>;

/// The participant.
#[derive(Clone, Debug)]
pub struct Bank {
    switches: Switches,
    /// Hashed without a random seed, and never walked.
    registers: HashMap<SmallBytes, Option<SmallBytes>, Unseeded>,
    applied: HashSet<TxnId, Unseeded>,
}

impl Bank {
    fn apply(&mut self, txn: TxnId, writes: Vec<Write>) {
        self.applied.insert(txn);
        self.registers.extend(writes);
    }

    /// What a register holds.
    pub fn value(&self, key: &SmallBytes) -> Option<&SmallBytes> {
        self.registers.get(key).and_then(Option::as_ref)
    }
}

impl StateMachine<Registers> for Bank {
    type Timer = NoTimer;

    muesli_core::role_without_judgement!(Registers);
    muesli_core::role_without_links!(Registers);

    fn unfinished(&self) -> usize {
        0
    }

    fn assert_invariants(&self) {
        let is_written = self.registers.is_empty() || !self.applied.is_empty();
        assert!(is_written, "registers that nobody has written");
    }
}

impl LoggedRole<Registers> for Bank {
    fn start(&mut self, _: &mut Context<'_, Registers>) {}

    muesli_core::role_without_checkpoints!(Registers);
    muesli_core::role_that_stays!(Registers);

    fn receive(&mut self, from: Address, message: Message, cx: &mut Context<'_, Registers>) {
        match message {
            Message::Read { op, key } => {
                cx.effects.work.reads += 1;
                let value = self.value(&key).cloned();
                cx.send(from, Message::Value { op, value });
            }
            Message::Write { txn, writes } => {
                if !self.applied.contains(&txn) {
                    cx.effects.work.installed += writes.len() as u64;
                    if self.switches.log {
                        cx.log(|| Record { txn, writes: writes.clone() });
                    }
                    self.apply(txn, writes);
                }
                cx.send(from, Message::Written { txn });
            }
            Message::Value { .. } | Message::Written { .. } => unreachable!("for a coordinator"),
        }
    }

    fn timer(&mut self, _: NoTimer, _: &mut Context<'_, Registers>) {}

    fn replay(&mut self, record: Record, _: &mut Context<'_, Registers>) {
        self.apply(record.txn, record.writes);
    }
}

impl Participant<Registers> for Bank {
    fn new(_: RepositoryId, _: &Settings, switches: &Switches) -> Self {
        Bank { switches: *switches, registers: HashMap::default(), applied: HashSet::default() }
    }

    muesli_core::participant_without_marks!(Registers);
    muesli_core::participant_kept_by_one_node!();
    muesli_core::participant_without_sizes!();

    fn answer_behind(&mut self, _: &Message, _: &mut Context<'_, Registers>) -> bool {
        false
    }

    fn end(&mut self, _: &Settings) {}

    fn judge_record(&self, _: &Record, _: &Catalog) -> Result<(), Rejection> {
        Ok(())
    }

    fn chains(&self, _: &Catalog) -> Vec<(SpaceId, SmallBytes, Vec<Timestamp>)> {
        Vec::new()
    }
}
