//! One-round transactions as clients ask for them: who takes part, how they agree, what came of it.

use muesli_core::procedure::{Call, Class, Fragment, Invoked, Place, Refuses};
use muesli_core::recorder::{Operations, Status, TxnRecord};
use muesli_core::{
    Abort, Catalog, Failure, Here, Nanos, NodeId, OpId, OpResult, RepositoryId, Settings,
    SmallBytes, Step, Timestamp, TxnOptions,
};

use super::Granola;
use super::coordinator::{Context, Coordinator};
use super::message::{Agreement, Answer, Few, Part, Refusal, Repositories, Request, Task};
use super::pending::{Purpose, Verdict};

/// A one-round transaction, as its client waits for it.
#[derive(Clone, Debug)]
pub(super) struct Invocation {
    pub op: OpId,
    session: u64,
    begun: Nanos,
}

impl Invocation {
    /// As histories have it; what it did, its participants know.
    pub fn record(
        &self,
        request: &Request,
        end: Option<Nanos>,
        status: Status,
        at: Option<Timestamp>,
    ) -> TxnRecord {
        let (session, begin) = (self.session, self.begun);
        TxnRecord { id: request.txn, session, begin, end, status, read_only: request.read_only, at }
    }
}

/// What is declared of the procedures of a call. A procedure that is not known here may do
/// anything: those who run it may know it.
struct Declared {
    read_only: bool,
    refuses: Refuses,
    /// Participants are told of keys of others.
    tells: bool,
}

fn declared(call: &Call, settings: &Settings) -> Declared {
    let mut all = Declared { read_only: true, refuses: Refuses::Never, tells: false };
    for fragment in &call.fragments {
        let procedure = settings.procedures.get(&fragment.procedure);
        all.read_only &= procedure.is_some_and(|it| it.read_only);
        all.tells |= procedure.is_some_and(|it| it.tells.is_some());
        all.refuses = match (all.refuses, procedure.map_or(Refuses::Alone, |it| it.refuses)) {
            (Refuses::Alone, _) | (_, Refuses::Alone) => Refuses::Alone,
            (Refuses::Alike, _) | (_, Refuses::Alike) => Refuses::Alike,
            (Refuses::Never, Refuses::Never) => Refuses::Never,
        };
    }
    all
}

impl Coordinator {
    pub(super) fn on_invoke(
        &mut self,
        options: TxnOptions,
        call: Call,
        mut here: Here<'_, Granola>,
        cx: &mut Context<'_>,
    ) -> Step<Invoked> {
        let request = match self.divide_call(options, call, cx) {
            Ok(request) => request,
            Err(failure) => return Step::Done(Err(failure)),
        };
        if let Some(done) = self.invoke_here(&request, options, &mut here, cx) {
            return done;
        }
        let op = self.next_op();
        let invocation = Invocation { op, session: options.session, begun: cx.now() };
        self.ask(request, Purpose::Invoke(invocation), cx);
        Step::Wait(op)
    }

    /// The request that a call comes to.
    fn divide_call(
        &mut self,
        options: TxnOptions,
        call: Call,
        cx: &Context<'_>,
    ) -> Result<Request, Failure> {
        let (class, declared) = (call.class, declared(&call, cx.settings));
        let mut parts: Few<Part> = Few::new();
        for Fragment { procedure, place, arguments } in call.fragments {
            let partition = partition_of(&place, cx.catalog)?;
            let tells = cx.settings.procedures.get(&procedure).is_some_and(|it| it.tells.is_some());
            parts.push(Part { partition, task: Task::Call { procedure, arguments, tells } });
        }
        if parts.is_empty() {
            return Err(Failure::Procedure("a call has at least one fragment".to_owned()));
        }
        if options.read_only && !declared.read_only {
            return Err(Failure::ReadOnly);
        }
        let read_only = declared.read_only;
        let participants =
            participants_of(&parts, Holders::of(read_only, self.reader()), cx.catalog);
        let one_partition = parts.iter().all(|part| part.partition == parts[0].partition);
        let alike = declared.refuses != Refuses::Alone || one_partition || read_only;
        let agreement = match (class, participants.len()) {
            (_, 1) => Agreement::Alone,
            (Class::Single, _) if !one_partition => {
                let text = "class `Single` is for one repository, and fragments name several";
                return Err(Failure::Procedure(text.to_owned()));
            }
            (Class::Auto | Class::Single | Class::Independent, _)
                if self.rules.master || declared.tells && !self.rules.tells =>
            {
                Agreement::Coordinated
            }
            (Class::Auto | Class::Single, _) if alike => Agreement::Independent,
            (Class::Auto | Class::Single | Class::Coordinated, _) => Agreement::Coordinated,
            (Class::Independent, _) => Agreement::Independent,
        };
        if agreement == Agreement::Coordinated {
            parts.iter_mut().for_each(Part::tell_nothing);
        }
        let settled_below = self.settled_below();
        let txn = self.next_txn_id();
        let floor = options.floor;
        let nearby = options.nearby && read_only && agreement == Agreement::Alone;
        Ok(Request { txn, settled_below, floor, agreement, read_only, nearby, participants, parts })
    }

    /// The client of a one-round transaction is told.
    pub(super) fn on_invoke_end(
        &mut self,
        invocation: Invocation,
        request: &Request,
        verdict: Verdict,
        cx: &mut Context<'_>,
    ) {
        let (status, at, result) = match verdict {
            Verdict::Done(at, answers) => {
                let results = answers.into_iter().map(|(_, answer)| given(answer)).collect();
                (Status::Committed, Some(at), OpResult::Invoked(Invoked { at, results }))
            }
            Verdict::Conflict => {
                (Status::Aborted, None, OpResult::Failed(Failure::Aborted(Abort::Locked)))
            }
            Verdict::Refused(refusal) => {
                (Status::Aborted, None, OpResult::Failed(failure_of(refusal)))
            }
        };
        let now = cx.now();
        if let Some(recorder) = &mut cx.effects.recorder {
            let record = invocation.record(request, Some(now), status, at);
            recorder.transaction(&record, &Operations::default());
        }
        cx.complete(invocation.op, result);
    }
}

/// What a procedure gave.
pub(super) fn given(answer: Answer) -> SmallBytes {
    match answer {
        Answer::Given(result) => result,
        // Nobody who runs procedures answers a call with such.
        Answer::Found(_) | Answer::Rows(..) | Answer::Installed => SmallBytes::EMPTY,
    }
}

/// What a client is told of a refusal.
pub(super) fn failure_of(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::Refused(reason) => Failure::Refused(reason),
        Refusal::Faulty(text) => Failure::Procedure(text),
        Refusal::Aborted(reason) => Failure::Aborted(reason),
    }
}

fn partition_of(place: &Place, catalog: &Catalog) -> Result<u16, Failure> {
    match place {
        Place::Key(space, key) if catalog.space(*space).is_some() => {
            Ok(catalog.partition(*space, key))
        }
        Place::Key(space, _) => Err(Failure::Space(format!("there is no space {}", space.0))),
        Place::Repository(repository) => {
            let count = catalog.repositories();
            let there = usize::from(repository.0) < count;
            there.then_some(repository.0).ok_or_else(|| {
                let named = repository.0;
                Failure::Procedure(format!("there is no repository {named} among the {count}"))
            })
        }
    }
}

/// Which of the repositories that hold a partition take part.
#[derive(Clone, Copy, Debug)]
pub(super) enum Holders {
    /// All of them.
    All,
    /// One of them, since nothing is written: one of this node, else one after the other.
    One { near: NodeId, turn: u64 },
}

impl Holders {
    /// Those that write take all, those that read one.
    pub fn of(read_only: bool, reader: Holders) -> Holders {
        if read_only { reader } else { Holders::All }
    }

    fn choose(self, partition: u16, catalog: &Catalog) -> Repositories {
        let all: Repositories = catalog.replicas_of(partition).collect();
        let Holders::One { near, turn } = self else { return all };
        let here = all.iter().copied().find(|it| catalog.home(*it) == near);
        let one = here.unwrap_or_else(|| all[(turn % all.len() as u64) as usize]);
        Repositories::from_iter([one])
    }
}

/// Those who take part: of each partition all who hold it, or one; whoever takes part already will
/// do.
pub(super) fn participants_of(parts: &[Part], holders: Holders, catalog: &Catalog) -> Repositories {
    let mut all = Repositories::new();
    for part in parts {
        let known = all.iter().any(|it| catalog.holds(*it, part.partition));
        if !known || matches!(holders, Holders::All) {
            all.extend(holders.choose(part.partition, catalog));
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Another repository that can answer a reader of one, the next one in the order of replicas.
pub(super) fn other_reader(request: &Request, catalog: &Catalog) -> Option<Repositories> {
    let (now, first) = (request.participants.first()?, request.parts.first()?);
    let holds_all =
        |it: &RepositoryId| request.parts.iter().all(|part| catalog.holds(*it, part.partition));
    let all: Repositories = catalog.replicas_of(first.partition).filter(holds_all).collect();
    let place = all.iter().position(|it| it == now)?;
    let next = all[(place + 1) % all.len()];
    (next != *now).then(|| Repositories::from_iter([next]))
}
