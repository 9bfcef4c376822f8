//! A client that runs one transaction, an operation at a time.

use std::fmt;

use muesli_core::procedure::Class;
use muesli_core::{
    Action, Answer, Deferral, Delay, Effects, Failure, Gave, Nanos, Nesting, Node, OpId, Operation,
    Scan, SmallBytes, Step, Timestamp, Txn, TxnOptions,
};

use super::Program;
use crate::harness::delayable;
pub(super) use crate::harness::delayable::SPACE;
use crate::harness::subject::{Subject, procedures};

/// An operation of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Do {
    /// First of all: no writes follow.
    ReadOnly,
    /// First of all: strictly serializable, though nothing is written.
    Strict,
    /// First of all: it has lost to others so often that it is to be let through.
    KeepsLosing,
    Get(&'static str),
    /// Writes the transaction's name.
    Put(&'static str),
    Delete(&'static str),
    /// Appends the transaction's name, by a delayed action.
    #[allow(dead_code, reason = "only one protocol's scopes have delayed actions")]
    Delay(&'static str),
    /// The same, and asks what it left.
    Ask(&'static str),
    /// Appends it to several keys by a steady procedure, and asks what it left.
    Mark(&'static str),
    /// The same, by one that is not steady.
    Alter(&'static str),
    Scan(&'static str, &'static str),
    /// Begins a child. One that is undone runs again from here.
    Nest,
    /// Ends the innermost child.
    Merge,
    /// Gives it up, by the transaction's own decision.
    GiveUp,
    /// A one-round transaction: a procedure and its keys. Each further one of a program is another
    /// transaction of the same session.
    Call(&'static str, &'static [&'static str]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Committed,
    Aborted,
    /// Its node crashed.
    Lost,
}

#[derive(Clone, Debug)]
pub(super) struct Client {
    name: String,
    pub node: u32,
    program: &'static [Do],
    next: usize,
    txn: Option<Txn>,
    waiting: Option<OpId>,
    seen: Vec<String>,
    /// Where the open children began: in the program, and in what was seen.
    children: Vec<(usize, usize)>,
    /// How often a child was undone.
    undone: usize,
    /// Of one-round transactions: their session.
    session: u64,
    /// The highest timestamp that its session has seen.
    pub lower_bound: Timestamp,
    /// What it was told of what it delayed.
    pub answers_to_client: Vec<String>,
    outcome: Option<Outcome>,
}

impl Client {
    pub fn new(name: &str, session: u64, (node, program): Program) -> Client {
        let (name, lower_bound) = (name.to_owned(), Timestamp::ZERO);
        let (next, txn, waiting, outcome) = (0, None, None, None);
        let (seen, answers_to_client) = (Vec::new(), Vec::new());
        let (children, undone) = (Vec::new(), 0);
        Client {
            name,
            node,
            program,
            next,
            txn,
            waiting,
            seen,
            children,
            undone,
            session,
            lower_bound,
            answers_to_client,
            outcome,
        }
    }

    pub fn is_ready(&self) -> bool {
        self.outcome.is_none() && self.waiting.is_none()
    }

    pub fn is_done(&self) -> bool {
        self.outcome.is_some()
    }

    pub fn has_committed(&self) -> bool {
        self.outcome == Some(Outcome::Committed)
    }

    /// How often a child of it was undone, because what that had read had changed.
    pub fn partial_aborts(&self) -> usize {
        self.undone
    }

    /// Its node crashed before it knew its end.
    pub fn is_lost(&self) -> bool {
        self.outcome == Some(Outcome::Lost)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn program(&self) -> &'static [Do] {
        self.program
    }

    pub fn waits_for(&self, op: OpId) -> bool {
        self.waiting == Some(op)
    }

    /// Does one operation that others may notice; writes are buffered, so they go along with it.
    pub fn step<P: Subject>(&mut self, node: &mut Node<P>, effects: &mut Effects<P>) {
        if let Some(&Do::Call(name, keys)) = self.program.get(self.next) {
            self.next += 1;
            return self.call(name, keys, node, effects);
        }
        let txn = match self.txn {
            Some(txn) => txn,
            None => self.begin(node, effects),
        };
        loop {
            let Some(&operation) = self.program.get(self.next) else {
                return self.take(node.operate(Operation::Commit(txn), effects));
            };
            self.next += 1;
            match operation {
                Do::ReadOnly | Do::Strict | Do::KeepsLosing => {}
                Do::Put(key) | Do::Delete(key) => {
                    let puts = operation == Do::Put(key);
                    let value = puts.then(|| self.name.as_str().into());
                    let done = node.put(txn, SPACE, key.into(), value, effects);
                    assert_eq!(done, Ok(()), "a small write in an open transaction");
                }
                Do::Delay(key) => {
                    let action = Action::append(self.name.as_str());
                    let delay = Delay::Action(SPACE, key.into(), action);
                    let done = node.delay(txn, delay, false, effects);
                    assert!(matches!(done, Ok(Deferral::Deferred(_))), "not delayed: {done:?}");
                }
                Do::Ask(key) => {
                    let action = Action::append(self.name.as_str());
                    self.ask(Delay::Action(SPACE, key.into(), action), node, effects);
                }
                Do::Mark(keys) | Do::Alter(keys) => {
                    let named = if operation == Do::Mark(keys) { "mark" } else { "alter" };
                    let words = format!("{keys} {}", self.name);
                    self.ask(delayable::call(named, &words), node, effects);
                }
                Do::Nest => {
                    self.children.push((self.next - 1, self.seen.len()));
                    let level = self.children.len() as u32;
                    let begun = node.operate(Operation::Nest(txn, level), effects);
                    match begun {
                        Step::Done(Ok(Answer::Nested(Nesting::Closed))) => {}
                        other => panic!("{}: {other:?} as a child begins", self.name),
                    }
                }
                Do::Merge | Do::GiveUp => {
                    let level = self.children.len() as u32;
                    let ends = match operation {
                        Do::Merge => Operation::Merge(txn, level),
                        _ => Operation::Unnest(txn, level),
                    };
                    let ended = node.operate(ends, effects);
                    assert_eq!(ended, Step::Done(Ok(Answer::Ended)), "a child that ends");
                    self.children.pop();
                }
                Do::Call(..) => unreachable!("a program has calls alone, or none"),
                Do::Get(key) => {
                    let get = Operation::Get(txn, SPACE, key.into());
                    return self.take(node.operate(get, effects));
                }
                Do::Scan(lo, hi) => {
                    let hi = Some(hi.into());
                    let (reverse, limit) = (false, usize::MAX);
                    let scan = Scan { space: SPACE, lo: lo.into(), hi, reverse, limit };
                    return self.take(node.operate(Operation::Scan(txn, scan), effects));
                }
            }
        }
    }

    fn ask<P: Subject>(&mut self, delay: Delay, node: &mut Node<P>, effects: &mut Effects<P>) {
        let txn = self.txn.expect("it has begun");
        let done = node.delay(txn, delay, true, effects);
        assert!(matches!(done, Ok(Deferral::Deferred(_))), "not delayed: {done:?}");
    }

    fn call<P: Subject>(
        &mut self,
        name: &str,
        keys: &[&str],
        node: &mut Node<P>,
        effects: &mut Effects<P>,
    ) {
        let (lower_bound, session) = (self.lower_bound, self.session);
        let options = TxnOptions { lower_bound, session, ..TxnOptions::default() };
        let call = procedures::call(name, keys, Class::Auto, node.catalog());
        self.take(node.operate(Operation::Invoke(options, call), effects));
    }

    fn begin<P: Subject>(&mut self, node: &mut Node<P>, effects: &mut Effects<P>) -> Txn {
        let keeps_losing = self.program.first() == Some(&Do::KeepsLosing);
        let options = TxnOptions {
            tried_since: Nanos(u64::from(keeps_losing)),
            read_only: self.program.first() == Some(&Do::ReadOnly),
            strict: self.program.first() == Some(&Do::Strict),
            lower_bound: self.lower_bound,
            ..TxnOptions::default()
        };
        let txn = node.begin(options, effects).expect("begin never fails");
        self.txn = Some(txn);
        txn
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Done(answer) => self.receive(&answer),
            Step::Wait(op) => self.waiting = Some(op),
        }
    }

    /// Its node crashed, and it with it.
    pub fn lose(&mut self) {
        self.waiting = None;
        self.outcome.get_or_insert(Outcome::Lost);
    }

    pub fn receive(&mut self, result: &Result<Answer, Failure>) {
        self.waiting = None;
        let text = |value: &SmallBytes| String::from_utf8_lossy(value.as_slice()).into_owned();
        match result {
            Ok(Answer::Value(value)) => {
                self.seen.push(value.as_ref().map_or_else(|| "-".to_owned(), text));
            }
            Ok(Answer::Rows(rows)) => {
                let rows: Vec<_> = rows.iter().map(|(key, _)| text(key)).collect();
                self.seen.push(format!("[{}]", rows.join(" ")));
            }
            Ok(Answer::Answered(_, answers)) => {
                let given = |gave: &Gave| match gave {
                    Gave::Value(Some(value)) => text(value),
                    other => panic!("{}: was told {other:?}", self.name),
                };
                self.answers_to_client = answers.iter().map(given).collect();
                self.outcome = Some(Outcome::Committed);
            }
            Ok(Answer::Committed(committed)) => {
                self.lower_bound = self.lower_bound.max(committed.at);
                self.outcome = Some(Outcome::Committed);
            }
            Ok(Answer::Invoked(invoked)) => {
                self.lower_bound = self.lower_bound.max(invoked.at);
                self.seen.extend(invoked.results.iter().map(text));
                self.end_if_last();
            }
            Err(Failure::Refused(reason)) => {
                self.seen.push(text(reason));
                self.end_if_last();
            }
            Err(Failure::Aborted(_)) => self.outcome = Some(Outcome::Aborted),
            Err(Failure::PartialAbort { level }) => {
                let (next, seen) = self.children[*level as usize - 1];
                self.children.truncate(*level as usize - 1);
                self.seen.truncate(seen);
                self.next = next;
                self.undone += 1;
            }
            other => panic!("{}: {other:?} was not to be expected", self.name),
        }
    }
}

impl Client {
    fn end_if_last(&mut self) {
        if self.next == self.program.len() {
            self.outcome = Some(Outcome::Committed);
        }
    }
}

/// How it ended, and what it saw if it committed.
impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outcome {
            Some(Outcome::Committed) if !self.answers_to_client.is_empty() => {
                write!(f, "{} left {}", self.name, self.answers_to_client.join(" "))
            }
            Some(Outcome::Committed) if self.seen.is_empty() => write!(f, "{} wrote", self.name),
            Some(Outcome::Committed) if self.undone > 0 => {
                write!(f, "{} saw {} after partial aborts", self.name, self.seen.join(" "))
            }
            Some(Outcome::Committed) => write!(f, "{} saw {}", self.name, self.seen.join(" ")),
            Some(Outcome::Aborted) => write!(f, "{} aborted", self.name),
            Some(Outcome::Lost) => write!(f, "{} was lost", self.name),
            None => write!(f, "{} runs", self.name),
        }
    }
}
