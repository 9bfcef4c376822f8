//! Whoever moves a partition, or asks where partitions are: coordinators (section 7.1).
//!
//! A move goes in rounds, each a request like others: where the partition is, from the name
//! service; then the destination is asked to load it, again and again until it has said that this
//! is all; then the [move](crate::granola::participant::migration) itself. What is refused on the
//! way is done again from an earlier round, for as long as something comes of it.
//!
//! A client that has to know that a timestamp was issued has a repository issue one: it is asked
//! for what it knows of partitions, which lies at a timestamp as everything does.
//!
//! A coordinator that is refused because a partition is elsewhere asks the name service too, at or
//! after the timestamp that it was told, and its transactions are tried again: nobody else notices.

use muesli_core::issuance::ISSUE;
use muesli_core::moving::{MOVE_PARTITION, MoveOrder, PARTITIONS, PlacedPartition};
use muesli_core::parts::locator::{Locator, OwnerDirectory};
use muesli_core::procedure::{Call, Invoked, Place};
use muesli_core::{
    Answer, Catalog, Failure, Nanos, OpId, RepositoryId, SmallBytes, Timestamp, TxnOptions, Wire,
};
use smallvec::smallvec;

use super::{Context, Coordinator, Purpose, RequestVerdict};
use crate::granola::locator::{after, holders, name_service};
use crate::granola::message::{
    Agreement, Fetched, Few, Move, Owners, Part, PartAnswer, Repositories, Request, Task,
};

/// A partition on its way, as its mover knows it.
#[derive(Clone, Debug)]
pub(super) struct Moving {
    op: OpId,
    order: MoveOrder,
    /// What the session has seen.
    lower_bound: Timestamp,
    round: Round,
    /// What is loaded.
    has: Fetched,
    /// Who holds the partition if the move that is under way is done.
    after: Option<Owners>,
    /// When something last came of it.
    progress: Nanos,
    /// How often the move itself was refused.
    refused: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    Look,
    Take(RepositoryId),
    Switch(RepositoryId),
}

/// What is asked of the protocol itself.
pub(super) enum Special {
    Move(MoveOrder),
    Partitions,
    /// A repository is to issue a timestamp.
    Issue(RepositoryId),
}

impl Special {
    /// What a call asks, if it is of such a kind.
    ///
    /// # Errors
    /// It is, and its arguments are none.
    pub fn of(call: &Call) -> Result<Option<Special>, Failure> {
        let [fragment] = &call.fragments[..] else { return Ok(None) };
        let name = fragment.procedure.name.as_slice();
        if name == PARTITIONS.as_bytes() {
            return Ok(Some(Special::Partitions));
        }
        if let (true, Place::Repository(repository)) = (name == ISSUE.as_bytes(), &fragment.place) {
            return Ok(Some(Special::Issue(*repository)));
        }
        if name != MOVE_PARTITION.as_bytes() {
            return Ok(None);
        }
        let order = MoveOrder::of(&fragment.arguments);
        order.map(|order| Some(Special::Move(order))).map_err(|error| broken(&error.to_string()))
    }
}

fn broken(text: &str) -> Failure {
    Failure::Procedure(format!("{MOVE_PARTITION}: {text}"))
}

impl Coordinator {
    /// Begins what is asked of the protocol itself.
    pub(super) fn begin_special(
        &mut self,
        special: Special,
        options: TxnOptions,
        cx: &mut Context<'_>,
    ) -> Result<OpId, Failure> {
        let op = self.next_op();
        match special {
            Special::Partitions => self.look_up(options.lower_bound, Purpose::Partitions(op), cx),
            Special::Issue(repository) => {
                let count = cx.catalog.repositories();
                if usize::from(repository.0) >= count {
                    let text = format!("there are {count} repositories, from 0 on");
                    return Err(Failure::Procedure(format!("{ISSUE}: {text}")));
                }
                // Any repository takes a request that is about no keys.
                let parts = smallvec![Part { partition: 0, owners: None, task: Task::Names }];
                let one = Repositories::from_iter([repository]);
                let request = self.special(options.lower_bound, one, parts);
                self.ask(request, Purpose::Issue(op), cx);
            }
            Special::Move(order) => {
                let there = |it: RepositoryId| usize::from(it.0) < cx.catalog.repositories();
                if usize::from(order.partition) >= cx.catalog.partitions() {
                    let (named, count) = (order.partition, cx.catalog.partitions());
                    return Err(broken(&format!("there is no partition {named} of {count}")));
                }
                if !there(order.to) || order.from.is_some_and(|it| !there(it)) {
                    let count = cx.catalog.repositories();
                    return Err(broken(&format!("there are {count} repositories, from 0 on")));
                }
                if options.read_only {
                    return Err(Failure::ReadOnly);
                }
                let (lower_bound, round, has) =
                    (options.lower_bound, Round::Look, Fetched::default());
                let (after, progress, refused) = (None, cx.now(), 0);
                let moving =
                    Moving { op, order, lower_bound, round, has, after, progress, refused };
                self.go_round(Box::new(moving), cx);
            }
        }
        Ok(op)
    }

    /// A coordinator was refused because something moved at `at`: it asks where it is, unless it
    /// has asked already.
    pub(super) fn learn_names(&mut self, at: Timestamp, cx: &mut Context<'_>) {
        if !self.learning {
            self.learning = true;
            self.look_up(at, Purpose::Names, cx);
        }
    }

    fn look_up(&mut self, lower_bound: Timestamp, purpose: Purpose, cx: &mut Context<'_>) {
        let parts = smallvec![Part { partition: 0, owners: None, task: Task::Names }];
        let all: Repositories = name_service(cx.catalog).collect();
        let one = all.iter().copied().find(|it| cx.catalog.home(*it) == self.id);
        let request =
            self.special(lower_bound, Repositories::from_iter([one.unwrap_or(all[0])]), parts);
        self.ask(request, purpose, cx);
    }

    /// A request about partitions and not their keys.
    fn special(
        &mut self,
        lower_bound: Timestamp,
        participants: Repositories,
        parts: Few<Part>,
    ) -> Request {
        let (settled_below, txn) = (self.settled_below(), self.next_txn_id());
        let (agreement, read_only) = match participants.len() {
            1 => (Agreement::Alone, true),
            _ => (Agreement::Independent, false),
        };
        Request {
            settled_below,
            lower_bound,
            agreement,
            read_only,
            ..Request::new(txn, participants, parts)
        }
    }

    /// The name service has answered whoever was refused.
    pub(super) fn on_names(&mut self, verdict: RequestVerdict) {
        self.learning = false;
        if let RequestVerdict::Done(_, answers) = verdict {
            self.learn(answers);
        }
    }

    fn learn(&mut self, answers: Few<(u16, PartAnswer)>) {
        for (_, answer) in answers {
            if let PartAnswer::Names(all) = answer {
                self.names.learn(all);
            }
        }
    }

    /// The name service has answered whoever asked where partitions are.
    pub(super) fn on_partitions(
        &mut self,
        op: OpId,
        verdict: RequestVerdict,
        cx: &mut Context<'_>,
    ) {
        let result = match verdict {
            RequestVerdict::Done(at, answers) => {
                self.learn(answers);
                Ok(Answer::Invoked(Invoked {
                    at,
                    results: vec![location_bytes(&self.names, cx.catalog)],
                }))
            }
            RequestVerdict::Refused(refusal) => Err(Failure::from(refusal)),
            RequestVerdict::Conflict | RequestVerdict::Moved(_) | RequestVerdict::Forgotten(_) => {
                Err(Failure::Aborted(muesli_core::Abort::Locked))
            }
        };
        cx.complete(op, result);
    }

    /// Asks for the next round of a move.
    pub(super) fn go_round(&mut self, mut moving: Box<Moving>, cx: &mut Context<'_>) {
        let (MoveOrder { partition, to, .. }, lower_bound) = (moving.order, moving.lower_bound);
        let owners = self.names.moved(&partition).cloned();
        match moving.round {
            Round::Look => self.look_up(lower_bound, Purpose::Move(moving), cx),
            Round::Take(from) => {
                let parts = smallvec![Part { partition, owners, task: Task::Take { from } }];
                let request = self.special(lower_bound, Repositories::from_iter([to]), parts);
                self.ask(request, Purpose::Move(moving), cx);
            }
            Round::Switch(from) => {
                let epoch = owners.as_ref().map_or(0, |owners| owners.epoch) + 1;
                let order = Move { partition, from, to, epoch, has: moving.has };
                let Some(after) = after(&self.names, &order, cx.catalog) else {
                    moving.round = Round::Look; // Another move was done meanwhile.
                    return self.go_round(moving, cx);
                };
                moving.after = Some(after);
                let task = Task::Move(Box::new(order));
                assert_ne!(from, to, "partition {partition} moves to where it is");
                let mut all: Repositories = name_service(cx.catalog).chain([from, to]).collect();
                all.sort_unstable();
                all.dedup();
                let request =
                    self.special(lower_bound, all, smallvec![Part { partition, owners, task }]);
                self.ask(request, Purpose::Move(moving), cx);
            }
        }
    }

    /// A round of a move has ended.
    pub(super) fn on_round_end(
        &mut self,
        mut moving: Box<Moving>,
        request: &Request,
        verdict: RequestVerdict,
        cx: &mut Context<'_>,
    ) {
        let (at, answers) = match verdict {
            RequestVerdict::Done(at, answers) => (at, answers),
            RequestVerdict::Refused(refusal) => {
                return cx.complete(moving.op, Err(Failure::from(refusal)));
            }
            RequestVerdict::Conflict | RequestVerdict::Moved(_) | RequestVerdict::Forgotten(_) => {
                return self.again(moving, request, cx);
            }
        };
        match moving.round {
            Round::Look => {
                self.learn(answers);
                self.choose_source(moving, at, cx);
            }
            Round::Take(from) => {
                let Some((_, PartAnswer::Taken { has, whole })) = answers.into_iter().next() else {
                    return self.again(moving, request, cx);
                };
                if has != moving.has {
                    (moving.has, moving.progress) = (has, cx.now());
                }
                moving.round = if whole { Round::Switch(from) } else { Round::Take(from) };
                self.go_round(moving, cx);
            }
            Round::Switch(_) => {
                let partition = moving.order.partition;
                self.names.learn(moving.after.take().map(|after| (partition, after)));
                self.complete_move(&moving, at, cx);
            }
        }
    }

    /// It is known where the partition is: who is to give it.
    fn choose_source(&mut self, mut moving: Box<Moving>, at: Timestamp, cx: &mut Context<'_>) {
        let MoveOrder { partition, from, to } = moving.order;
        let all = holders(partition, self.names.moved(&partition).cloned().as_ref(), cx.catalog);
        if all.contains(&to) {
            return self.complete_move(&moving, at, cx);
        }
        match from.or(all.last().copied()).filter(|it| all.contains(it)) {
            Some(from) => {
                moving.round = Round::Take(from);
                self.go_round(moving, cx);
            }
            None => {
                let all: Vec<_> = all.iter().map(|it| it.0.to_string()).collect();
                let text = format!("partition {partition} is at repository {}", all.join(", "));
                cx.complete(moving.op, Err(broken(&text)));
            }
        }
    }

    fn complete_move(&mut self, moving: &Moving, at: Timestamp, cx: &mut Context<'_>) {
        let epoch =
            self.names.moved(&moving.order.partition).cloned().map_or(0, |owners| owners.epoch);
        let results = vec![epoch.to_string().as_str().into()];
        cx.complete(moving.op, Ok(Answer::Invoked(Invoked { at, results })));
    }

    /// A round was refused: what comes next loads the rest; and if that did not help, or after it
    /// was not known, begins with where the partition is, after a while.
    fn again(&mut self, mut moving: Box<Moving>, request: &Request, cx: &mut Context<'_>) {
        if moving.progress + cx.settings.give_up_after <= cx.now() {
            return self.give_up_move(&moving, request, cx);
        }
        if let Round::Switch(from) = moving.round {
            moving.refused += 1;
            if !moving.refused.is_multiple_of(TAKES) {
                moving.round = Round::Take(from);
                return self.go_round(moving, cx);
            }
        }
        moving.round = Round::Look;
        let (since, attempt) = (moving.progress, moving.refused);
        self.try_again(request, Purpose::Move(moving), since, attempt, cx);
    }

    /// Nothing came of it for too long.
    pub(super) fn give_up_move(
        &mut self,
        moving: &Moving,
        request: &Request,
        cx: &mut Context<'_>,
    ) {
        let (after_ms, txn) = (cx.settings.give_up_after.as_millis(), request.txn);
        let failure = match request.is_update() {
            true => Failure::Unknown { after_ms, txn },
            false => Failure::Timeout { after_ms },
        };
        cx.complete(moving.op, Err(failure));
    }
}

/// What is told of a request that is to have a repository issue a timestamp.
pub(super) fn issued(verdict: RequestVerdict) -> Result<Answer, Failure> {
    match verdict {
        RequestVerdict::Done(at, _) => Ok(Answer::Invoked(Invoked { at, results: Vec::new() })),
        RequestVerdict::Refused(refusal) => Err(Failure::from(refusal)),
        RequestVerdict::Conflict | RequestVerdict::Moved(_) | RequestVerdict::Forgotten(_) => {
            Err(Failure::Aborted(muesli_core::Abort::Locked))
        }
    }
}

/// So many attempts go from loading the rest on before the name service is asked again.
const TAKES: u32 = 4;

/// Where partitions are, as whoever asked is told.
fn location_bytes(names: &OwnerDirectory<u16>, catalog: &Catalog) -> SmallBytes {
    let placed = |partition: u16| {
        let owners = names.moved(&partition).cloned();
        let holders = holders(partition, owners.as_ref(), catalog).to_vec();
        PlacedPartition { partition, epoch: owners.map_or(0, |it| it.epoch), holders }
    };
    let all: Vec<PlacedPartition> = (0..catalog.partitions() as u16).map(placed).collect();
    let mut bytes = Vec::new();
    all.encode(&mut bytes);
    bytes.into()
}
