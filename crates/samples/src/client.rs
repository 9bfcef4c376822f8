//! A coordinator for protocols in which a transaction asks one repository for all that it needs,
//! and what that repository remembers of those who asked.
//!
//! The coordinator reads key by key, buffers writes, and sends its read versions and its writes in
//! one commit. It repeats what was not answered; the repository remembers how transactions ended
//! until their coordinator says, with a later commit, that it knows.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use muesli_core::contract::at_once;
use muesli_core::judgement::{ensure, in_range};
use muesli_core::parts::open::{OpenTransaction, OpenTransactions};
use muesli_core::recorder::{Recorder, Status};
use muesli_core::{
    Address, Answer, Catalog, Committed, Context, Coordinator, Decision, Failure, Here, NodeId,
    OpId, Operation, Protocol, Put, Rejection, RepositoryId, Role, SmallBytes, SpaceId,
    StateMachine, Step, Timestamp, Txn, TxnId, View, timers, wire_enum,
};

/// What a transaction read: each key with its version.
pub type Reads = Vec<(SpaceId, SmallBytes, Timestamp)>;
/// What a transaction writes; a value of `None` deletes.
pub type Writes = Vec<(SpaceId, SmallBytes, Option<SmallBytes>)>;

/// What a coordinator asks of its repository.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are what their names say")]
pub enum Question {
    /// What is there?
    Read { op: u64, space: SpaceId, key: SmallBytes },
    /// Commit this, and forget transactions of mine that are below.
    Commit { txn: TxnId, settled_below: u64, reads: Reads, writes: Writes },
}

/// What a coordinator is told.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are what their names say")]
pub enum Tell {
    /// This is there, in this version.
    Value { op: u64, version: Timestamp, value: Option<SmallBytes> },
    /// So the transaction ended.
    Ended { txn: TxnId, decision: Decision },
}

wire_enum!(Question, "question of a coordinator" {
    0 => Read { op: u64, space: SpaceId, key: SmallBytes },
    1 => Commit { txn: TxnId, settled_below: u64, reads: Reads, writes: Writes },
});

wire_enum!(Tell, "answer to a coordinator" {
    0 => Value { op: u64, version: Timestamp, value: Option<SmallBytes> },
    1 => Ended { txn: TxnId, decision: Decision },
});

impl Question {
    /// Whether it can be asked by whoever sent it.
    ///
    /// # Errors
    /// It is not about a transaction of the sender, or its numbers cannot be.
    pub fn judge(&self, view: View<'_>) -> Result<(), Rejection> {
        ensure(view.repository().is_some(), Rejection::Role)?;
        match self {
            Question::Read { .. } => view.coordinator(),
            Question::Commit { txn, settled_below, reads, .. } => {
                ensure(*settled_below <= txn.sequence, Rejection::Range)?;
                reads.iter().try_for_each(|(_, _, version)| in_range(*version))?;
                view.owner(*txn)
            }
        }
    }
}

impl Tell {
    /// Whether a repository of a member tells it to a coordinator.
    ///
    /// # Errors
    /// Somebody else does.
    pub fn judge(&self, view: View<'_>) -> Result<(), Rejection> {
        ensure(view.me.role == Role::Coordinator, Rejection::Role)?;
        view.member()?;
        ensure(matches!(view.from.role, Role::Repository(_)), Rejection::Sender)
    }
}

/// A protocol whose transactions ask one repository each.
pub trait AsksOne: Protocol<Coordinator = AskingClient<Self>> {
    /// The repository that transactions begun at `node` ask.
    fn base(node: NodeId, catalog: &Catalog) -> RepositoryId;
    /// The message that asks.
    fn ask(ask: Question) -> Self::Message;
    /// What a message tells a coordinator, if it does.
    fn told(message: Self::Message) -> Option<Tell>;
}

/// The coordinator.
#[derive(Clone, Debug)]
pub struct AskingClient<P> {
    node: NodeId,
    incarnation: u32,
    ops: u64,
    sequence: u64,
    open: OpenTransactions,
    /// Keys that were asked for, by the number of the question.
    reads: BTreeMap<u64, AskedRead>,
    /// Operations that wait for such.
    gets: BTreeMap<OpId, ReadOperation>,
    commits: BTreeMap<u64, (OpId, OpenTransaction)>,
    protocol: PhantomData<P>,
}

/// A key that was asked for.
#[derive(Clone, Debug)]
struct AskedRead {
    op: OpId,
    /// Which of the operation's keys it is.
    at: usize,
    txn: Txn,
    space: SpaceId,
    key: SmallBytes,
}

/// An operation that reads.
#[derive(Clone, Debug)]
struct ReadOperation {
    /// Whether it asked for one key by itself.
    single: bool,
    values: Vec<Option<SmallBytes>>,
    missing: usize,
}

impl ReadOperation {
    fn answer(self) -> Answer {
        let ReadOperation { single, mut values, .. } = self;
        if single { Answer::Value(values.swap_remove(0)) } else { Answer::Values(values) }
    }
}

timers! {
    /// The timers of a coordinator.
    pub enum ClientTimer {
        /// Repeats what was not answered.
        Repeat = 0,
    }
}

impl<P: AsksOne> AskingClient<P> {
    fn next_op(&mut self) -> OpId {
        self.ops += 1;
        OpId(self.ops)
    }

    fn id(&self, sequence: u64) -> TxnId {
        TxnId { node: self.node, incarnation: self.incarnation, sequence }
    }

    fn ask(&self, ask: Question, cx: &mut Context<'_, P>) {
        cx.send_to_repository(P::base(self.node, cx.catalog), P::ask(ask));
    }

    fn get(
        &mut self,
        txn: Txn,
        space: SpaceId,
        (keys, single): (Vec<SmallBytes>, bool),
        cx: &mut Context<'_, P>,
    ) -> Result<Step, Failure> {
        let op = self.next_op();
        let mut get = ReadOperation { single, values: vec![None; keys.len()], missing: 0 };
        for (at, key) in keys.into_iter().enumerate() {
            if let Some(own) = self.open.get(txn)?.read_own(space, &key) {
                get.values[at] = own;
                continue;
            }
            get.missing += 1;
            let OpId(number) = self.next_op();
            self.reads.insert(number, AskedRead { op, at, txn, space, key: key.clone() });
            self.ask(Question::Read { op: number, space, key }, cx);
        }
        if get.missing == 0 {
            self.open.get(txn)?;
            return Ok(Step::Done(Ok(get.answer())));
        }
        self.gets.insert(op, get);
        Ok(Step::Wait(op))
    }

    fn on_value(
        &mut self,
        number: u64,
        repository: RepositoryId,
        (version, value): (Timestamp, Option<SmallBytes>),
        cx: &mut Context<'_, P>,
    ) {
        let Some(AskedRead { op, at, txn, space, key }) = self.reads.remove(&number) else {
            return;
        };
        let Ok(open) = self.open.get(txn) else { return };
        open.has_read((space, key), repository, (version, value.as_ref()));
        let get = self.gets.get_mut(&op).expect("it waits for the key");
        get.values[at] = value;
        get.missing -= 1;
        if get.missing == 0 {
            let get = self.gets.remove(&op).expect("just seen");
            cx.complete(op, Ok(get.answer()));
        }
    }

    fn commit(&mut self, txn: Txn, cx: &mut Context<'_, P>) -> Result<Step, Failure> {
        let open = self.open.end(txn)?;
        self.sequence += 1;
        let op = self.next_op();
        self.commits.insert(self.sequence, (op, open));
        self.send_commit(self.sequence, cx);
        Ok(Step::Wait(op))
    }

    /// Sends a commit, perhaps once more.
    fn send_commit(&self, sequence: u64, cx: &mut Context<'_, P>) {
        let settled_below = *self.commits.keys().next().expect("one at least");
        let ((_, open), txn) = (&self.commits[&sequence], self.id(sequence));
        let (reads, writes) = (open.reads(), open.writes());
        self.ask(Question::Commit { txn, settled_below, reads, writes }, cx);
    }

    fn on_ended(&mut self, txn: TxnId, decision: Decision, cx: &mut Context<'_, P>) {
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

impl<P: AsksOne> StateMachine<P> for AskingClient<P> {
    type Timer = ClientTimer;

    muesli_core::role_without_links!(P);
    muesli_core::role_without_judgement!(P);

    fn unfinished(&self) -> usize {
        self.open.len() + self.commits.len()
    }

    fn assert_invariants(&self) {
        let last = self.commits.keys().next_back();
        assert!(last.is_none_or(|last| *last <= self.sequence), "a commit has a number given out");
        let asked = self.reads.keys().next_back();
        assert!(asked.is_none_or(|op| *op <= self.ops), "a question has a number given out");
        for AskedRead { op, at, .. } in self.reads.values() {
            let get = self.gets.get(op).expect("somebody waits for a key that was asked for");
            assert!(*at < get.values.len() && get.missing > 0, "there is room for its value");
        }
    }
}

impl<P: AsksOne> Coordinator<P> for AskingClient<P> {
    muesli_core::coordinator_without_peeks!(P);
    muesli_core::coordinator_without_sessions!(P);
    muesli_core::coordinator_without_memory!();

    fn new(node: NodeId, incarnation: u32, _: &P::Rules) -> AskingClient<P> {
        let (open, reads, gets, commits) = Default::default();
        let protocol = PhantomData;
        AskingClient {
            node,
            incarnation,
            ops: 0,
            sequence: 0,
            open,
            reads,
            gets,
            commits,
            protocol,
        }
    }

    fn start(&mut self, _: Here<'_, P>, cx: &mut Context<'_, P>) {
        cx.set_timer(ClientTimer::Repeat, cx.settings.retry_after);
    }

    fn operate(&mut self, operation: Operation, _: Here<'_, P>, cx: &mut Context<'_, P>) -> Step {
        let step = match operation {
            Operation::Begin(options) => {
                Ok(Step::Done(Ok(Answer::Begun(self.open.begin(options, cx.now())))))
            }
            Operation::Get(txn, space, key) => self.get(txn, space, (vec![key], true), cx),
            Operation::GetMany(txn, space, keys) => self.get(txn, space, (keys, false), cx),
            Operation::Put(txn, Put { space, key, value, .. }) => {
                let open = self.open.get(txn);
                open.and_then(|open| open.write((space, key, value), &cx.settings.limits))
                    .map(|()| Step::Done(Ok(Answer::Written)))
            }
            Operation::Delay(_, delay, _) => {
                at_once(&delay, cx.settings).map(|later| Step::Done(Ok(Answer::Delayed(later))))
            }
            Operation::Commit(txn) => self.commit(txn, cx),
            Operation::Abort(txn, failure) => {
                let _ = self.open.end(txn); // It may have ended.
                for (_, read) in self.reads.extract_if(.., |_, read| read.txn == txn) {
                    if self.gets.remove(&read.op).is_some() {
                        cx.complete(read.op, Err(failure.clone()));
                    }
                }
                Ok(Step::Done(Ok(Answer::Ended)))
            }
            Operation::Scan(..) => {
                Err(Failure::Space(format!("ranges are not scanned under `{}`", P::NAME)))
            }
            Operation::Invoke(..) => {
                Err(Failure::Procedure(format!("`{}` has no procedures", P::NAME)))
            }
        };
        step.unwrap_or_else(|failure| Step::Done(Err(failure)))
    }

    fn receive(
        &mut self,
        from: Address,
        message: P::Message,
        _: Here<'_, P>,
        cx: &mut Context<'_, P>,
    ) {
        let (Some(told), Role::Repository(repository)) = (P::told(message), from.role) else {
            return; // For a repository: whoever sent it here is mistaken.
        };
        match told {
            Tell::Value { op, version, value } => {
                self.on_value(op, repository, (version, value), cx);
            }
            Tell::Ended { txn, decision } => {
                if txn == self.id(txn.sequence) {
                    self.on_ended(txn, decision, cx);
                }
            }
        }
    }

    fn timer(&mut self, _: ClientTimer, _: Here<'_, P>, cx: &mut Context<'_, P>) {
        for (op, AskedRead { space, key, .. }) in &self.reads {
            self.ask(Question::Read { op: *op, space: *space, key: key.clone() }, cx);
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
}

/// How transactions ended, as far as their coordinators may ask.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    /// By coordinator: its newest incarnation that was heard of, and the ends of that.
    lives: BTreeMap<NodeId, CoordinatorLife>,
}

/// A coordinator's incarnation.
#[derive(Clone, Debug, Default)]
struct CoordinatorLife {
    incarnation: u32,
    /// It knows how transactions below ended.
    settled_below: u64,
    ended: BTreeMap<u64, Decision>,
}

/// What is known of a transaction that asks to commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownEnd {
    /// Nothing: it is to be decided.
    New,
    /// It was decided.
    Decided(Decision),
    /// Nobody waits for an answer: its coordinator knows it, or has lived again.
    Gone,
}

impl Outcomes {
    /// A transaction asks to commit, and its coordinator knows of all that are below.
    pub fn ask(&mut self, txn: TxnId, settled_below: u64) -> KnownEnd {
        let life = self.lives.entry(txn.node).or_default();
        if life.incarnation < txn.incarnation {
            *life = CoordinatorLife { incarnation: txn.incarnation, ..CoordinatorLife::default() };
        }
        life.settled_below = life.settled_below.max(settled_below);
        if life.incarnation > txn.incarnation || txn.sequence < life.settled_below {
            return KnownEnd::Gone;
        }
        life.ended.retain(|sequence, _| *sequence >= settled_below);
        life.ended.get(&txn.sequence).map_or(KnownEnd::New, |decision| KnownEnd::Decided(*decision))
    }

    /// What is known of a transaction; nothing is learnt.
    pub fn known(&self, txn: TxnId) -> KnownEnd {
        let Some(life) = self.lives.get(&txn.node) else { return KnownEnd::New };
        if life.incarnation < txn.incarnation {
            return KnownEnd::New;
        }
        if life.incarnation > txn.incarnation || txn.sequence < life.settled_below {
            return KnownEnd::Gone;
        }
        life.ended.get(&txn.sequence).map_or(KnownEnd::New, |decision| KnownEnd::Decided(*decision))
    }

    /// A transaction was decided.
    ///
    /// # Panics
    /// If it was decided otherwise before.
    pub fn decide(&mut self, txn: TxnId, decision: Decision) {
        if self.ask(txn, 0) == KnownEnd::Gone {
            return;
        }
        let life = self.lives.get_mut(&txn.node).expect("just asked for");
        let before = life.ended.insert(txn.sequence, decision);
        assert!(before.is_none_or(|before| before == decision), "{txn} was decided otherwise");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muesli_core::Abort;

    fn txn(incarnation: u32, sequence: u64) -> TxnId {
        TxnId { node: NodeId(3), incarnation, sequence }
    }

    #[test]
    fn ends_are_remembered_until_their_coordinator_knows_or_lives_again() {
        let mut outcomes = Outcomes::default();
        let commit = Decision::Commit(Timestamp(5));
        assert_eq!(outcomes.ask(txn(1, 1), 1), KnownEnd::New);
        outcomes.decide(txn(1, 1), commit);
        assert_eq!(outcomes.ask(txn(1, 1), 1), KnownEnd::Decided(commit));
        assert_eq!(outcomes.ask(txn(1, 2), 2), KnownEnd::New);
        assert_eq!(outcomes.ask(txn(1, 1), 1), KnownEnd::Gone, "it was settled");
        assert_eq!(outcomes.ask(txn(2, 1), 1), KnownEnd::New);
        assert_eq!(outcomes.ask(txn(1, 3), 3), KnownEnd::Gone);
    }

    #[test]
    #[should_panic(expected = "was decided otherwise")]
    fn nothing_is_decided_twice() {
        let mut outcomes = Outcomes::default();
        outcomes.decide(txn(1, 1), Decision::Commit(Timestamp(5)));
        outcomes.decide(txn(1, 1), Decision::Abort(Abort::StaleRead));
    }
}
