//! The coordinator: it asks its repository, and asks again where no answer came.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use super::{RepositoryReply, RepositoryRequest, SingleRepositoryProtocol};
use crate::bytes::SmallBytes;
use crate::contract::{
    Answer, Context, Coordinator, Here, Nesting, Operation, Put, StateMachine, Step, at_once,
};
use crate::ids::{NodeId, OpId, RepositoryId, SpaceId, Timestamp, Txn, TxnId};
use crate::outcome::{Committed, Decision, Failure};
use crate::parts::open::{OpenTransaction, OpenTransactions};
use crate::recorder::{Recorder, Status};
use crate::roles::{Address, Role};
use crate::timers;
/// The coordinator.
#[derive(Clone, Debug)]
pub struct SingleRepositoryCoordinator<P> {
    node: NodeId,
    incarnation: u32,
    ops: u64,
    sequence: u64,
    open: OpenTransactions,
    /// Keys that were asked for, by the number of the question.
    reads: BTreeMap<u64, RequestedRead>,
    /// Operations that wait for such.
    gets: BTreeMap<OpId, PendingRead>,
    commits: BTreeMap<u64, (OpId, OpenTransaction)>,
    protocol: PhantomData<P>,
}

/// A key that was asked for.
#[derive(Clone, Debug)]
struct RequestedRead {
    op: OpId,
    /// Which of the operation's keys it is.
    at: usize,
    txn: Txn,
    space: SpaceId,
    key: SmallBytes,
}

/// An operation that reads.
#[derive(Clone, Debug)]
struct PendingRead {
    /// Whether it asked for one key by itself.
    single: bool,
    values: Vec<Option<SmallBytes>>,
    missing: usize,
}

impl PendingRead {
    fn answer(self) -> Answer {
        let PendingRead { single, mut values, .. } = self;
        if single { Answer::Value(values.swap_remove(0)) } else { Answer::Values(values) }
    }
}

timers! {
    /// The timers of a coordinator.
    pub enum SingleRepositoryTimer {
        /// Repeats what was not answered.
        Repeat = 0,
    }
}

impl<P: SingleRepositoryProtocol> SingleRepositoryCoordinator<P> {
    fn next_op(&mut self) -> OpId {
        self.ops += 1;
        OpId(self.ops)
    }

    fn id(&self, sequence: u64) -> TxnId {
        TxnId { node: self.node, incarnation: self.incarnation, sequence }
    }

    fn ask(&self, ask: RepositoryRequest, cx: &mut Context<'_, P>) {
        cx.send_to_repository(P::base(self.node, cx.catalog), ask.into());
    }

    fn get(
        &mut self,
        txn: Txn,
        space: SpaceId,
        (keys, single): (Vec<SmallBytes>, bool),
        cx: &mut Context<'_, P>,
    ) -> Result<Step, Failure> {
        let op = self.next_op();
        let mut get = PendingRead { single, values: vec![None; keys.len()], missing: 0 };
        for (at, key) in keys.into_iter().enumerate() {
            if let Some(own) = self.open.get(txn)?.read_own(space, &key) {
                get.values[at] = own;
                continue;
            }
            get.missing += 1;
            let OpId(number) = self.next_op();
            self.reads.insert(number, RequestedRead { op, at, txn, space, key: key.clone() });
            self.ask(RepositoryRequest::Read { op: number, space, key }, cx);
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
        let Some(RequestedRead { op, at, txn, space, key }) = self.reads.remove(&number) else {
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
        self.ask(RepositoryRequest::Commit { txn, settled_below, reads, writes }, cx);
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

impl<P: SingleRepositoryProtocol> StateMachine<P> for SingleRepositoryCoordinator<P> {
    type Timer = SingleRepositoryTimer;

    crate::role_without_links!(P);
    crate::role_without_judgement!(P);

    fn unfinished(&self) -> usize {
        self.open.len() + self.commits.len()
    }

    fn assert_invariants(&self) {
        let last = self.commits.keys().next_back();
        assert!(last.is_none_or(|last| *last <= self.sequence), "a commit has a number given out");
        let asked = self.reads.keys().next_back();
        assert!(asked.is_none_or(|op| *op <= self.ops), "a question has a number given out");
        for RequestedRead { op, at, .. } in self.reads.values() {
            let get = self.gets.get(op).expect("somebody waits for a key that was asked for");
            assert!(*at < get.values.len() && get.missing > 0, "there is room for its value");
        }
    }
}

impl<P: SingleRepositoryProtocol> Coordinator<P> for SingleRepositoryCoordinator<P> {
    crate::coordinator_without_peeks!(P);
    crate::coordinator_without_sessions!(P);
    crate::coordinator_without_memory!();

    fn new(node: NodeId, incarnation: u32, _: &P::Switches) -> SingleRepositoryCoordinator<P> {
        let (open, reads, gets, commits) = Default::default();
        let protocol = PhantomData;
        SingleRepositoryCoordinator {
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
        cx.set_timer(SingleRepositoryTimer::Repeat, cx.settings.retry_after);
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
            Operation::Delay(_, delay, _) => at_once(&delay, cx.settings)
                .map(|deferral| Step::Done(Ok(Answer::Delayed(deferral)))),
            Operation::Nest(txn, _) => {
                let open = self.open.get(txn);
                open.map(|_| Step::Done(Ok(Answer::Nested(Nesting::Flat))))
            }
            Operation::Merge(..) | Operation::Unnest(..) => Ok(Step::Done(Ok(Answer::Ended))),
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
        let (Some(into_tell), Role::Repository(repository)) = (message.into(), from.role) else {
            return; // For a repository: whoever sent it here is mistaken.
        };
        match into_tell {
            RepositoryReply::Value { op, version, value } => {
                self.on_value(op, repository, (version, value), cx);
            }
            RepositoryReply::Ended { txn, decision } => {
                if txn == self.id(txn.sequence) {
                    self.on_ended(txn, decision, cx);
                }
            }
        }
    }

    fn timer(&mut self, _: SingleRepositoryTimer, _: Here<'_, P>, cx: &mut Context<'_, P>) {
        for (op, RequestedRead { space, key, .. }) in &self.reads {
            self.ask(RepositoryRequest::Read { op: *op, space: *space, key: key.clone() }, cx);
        }
        self.commits.keys().for_each(|sequence| self.send_commit(*sequence, cx));
        cx.set_timer(SingleRepositoryTimer::Repeat, cx.settings.retry_after);
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
