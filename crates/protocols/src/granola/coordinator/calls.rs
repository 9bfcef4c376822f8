//! One-round transactions as clients ask for them: who takes part, how they agree, what came of it.

use muesli_core::parts::locator::Locator;
use muesli_core::procedure::{Call, Class, Fragment, Invoked, Place, Refuses};
use muesli_core::recorder::{RecordedOperations, Status, TxnRecord};
use muesli_core::{
    Abort, Answer, Catalog, Failure, Here, Nanos, NodeId, OpId, RepositoryId, Settings, SmallBytes,
    Step, Timestamp, TxnOptions,
};

use super::migration::Special;
use super::{Context, Coordinator, Purpose, RequestVerdict};
use crate::granola::Granola;
use crate::granola::message::limits::check_parts_size;
use crate::granola::message::{Agreement, Few, Part, PartAnswer, Repositories, Request, Task};
use crate::granola::switches::{GranolaSwitch, SharedData};

/// A one-round transaction, as its client waits for it.
#[derive(Clone, Debug)]
pub(super) struct Invocation {
    pub op: OpId,
    /// As it was asked for.
    pub class: Class,
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
        let (id, session, begin, staleness) = (request.txn, self.session, self.begun, None);
        let read_only = request.read_only;
        TxnRecord { id, session, begin, end, status, read_only, at, staleness }
    }
}

/// What is declared of the procedures of a call. A procedure that is not known here may do
/// anything: those who run it may know it.
struct Declared {
    read_only: bool,
    refuses: Refuses,
    /// Participants are told of keys of others.
    shares: bool,
}

fn declared(parts: &[Part], settings: &Settings) -> Declared {
    let mut all = Declared { read_only: true, refuses: Refuses::Never, shares: false };
    for part in parts {
        let Task::Call { procedure, .. } = &part.task else { continue };
        let procedure = settings.procedures.get(procedure);
        all.read_only &= procedure.is_some_and(|it| it.read_only);
        all.shares |= procedure.is_some_and(|it| it.shares.is_some());
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
        let class = call.class;
        let divided = match Special::of(&call) {
            Ok(None) => self.divide_call(options, call, cx),
            Ok(Some(special)) => match self.begin_special(special, options, cx) {
                Ok(op) => return Step::Wait(op),
                Err(failure) => Err(failure),
            },
            Err(failure) => Err(failure),
        };
        let request = match divided {
            Ok(request) => request,
            Err(failure) => return Step::Done(Err(failure)),
        };
        if let Some(done) = self.invoke_here(&request, options, &mut here, cx) {
            return done;
        }
        let op = self.next_op();
        let invocation = Invocation { op, class, session: options.session, begun: cx.now() };
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
        let mut parts: Few<Part> = Few::new();
        let spaces = cx.catalog.spaces().len() as u16;
        for Fragment { procedure, place, arguments } in call.fragments {
            let partition = partition_of(&place, cx.catalog)?;
            let task = Task::Call { procedure, arguments, shares: false, spaces };
            parts.push(Part { partition, owners: self.names.moved(&partition).cloned(), task });
        }
        check_parts_size(&parts, &cx.settings.limits)?;
        let declared = declared(&parts, cx.settings);
        if parts.is_empty() {
            return Err(Failure::Procedure("a call has at least one fragment".to_owned()));
        }
        if options.read_only && !declared.read_only {
            return Err(Failure::ReadOnly);
        }
        let read_only = declared.read_only;
        let participants =
            participants_of(&parts, Holders::of(read_only, self.reader()), cx.catalog);
        let agreement = self.agree(call.class, &mut parts, participants.len(), cx.settings)?;
        let settled_below = self.settled_below();
        let txn = self.next_txn_id();
        assert!(settled_below <= txn.sequence, "{txn} is settled before it is sent");
        let lower_bound = options.lower_bound;
        let follower_read = options.follower_reads && read_only && agreement == Agreement::Alone;
        Ok(Request {
            settled_below,
            lower_bound,
            agreement,
            read_only,
            follower_read,
            ..Request::new(txn, participants, parts)
        })
    }

    /// How the participants of a call agree; and which of its parts tell something.
    pub(super) fn agree(
        &self,
        class: Class,
        parts: &mut [Part],
        participants: usize,
        settings: &Settings,
    ) -> Result<Agreement, Failure> {
        for part in &mut *parts {
            if let Task::Call { procedure, shares, .. } = &mut part.task {
                *shares = settings.procedures.get(procedure).is_some_and(|it| it.shares.is_some());
            }
        }
        let declared = declared(parts, settings);
        let one_partition = parts.iter().all(|part| part.partition == parts[0].partition);
        let alike = declared.refuses != Refuses::Alone || one_partition || declared.read_only;
        let agreement = match (class, participants) {
            (_, 1) => Agreement::Alone,
            (Class::Single, _) if !one_partition => {
                let text = "class `Single` is for one repository, and fragments name several";
                return Err(Failure::Procedure(text.to_owned()));
            }
            (Class::Auto | Class::Single | Class::Independent, _)
                if self.switches.has_master()
                    || declared.shares && self.switches.shared_data == SharedData::Coordinated =>
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
        Ok(agreement)
    }

    /// Sends a request where its partitions are now, as far as that is known here.
    pub(super) fn route(
        &self,
        request: &mut Request,
        purpose: &Purpose,
        cx: &Context<'_>,
    ) -> Result<(), Failure> {
        if !request.parts.iter().all(Part::is_about_keys) {
            return Ok(());
        }
        for part in &mut request.parts {
            part.owners = self.names.moved(&part.partition).cloned();
        }
        let holders = Holders::of(request.read_only, self.reader());
        // Readers of one repository may have been sent to another one on purpose.
        let kept =
            |it: &RepositoryId| request.parts.iter().all(|part| part.is_held_by(*it, cx.catalog));
        let alone = request.read_only && request.participants.len() == 1;
        if !(alone && request.participants.iter().all(kept)) {
            request.participants = participants_of(&request.parts, holders, cx.catalog);
        }
        let count = request.participants.len();
        request.agreement = match purpose {
            Purpose::Invoke(it) => self.agree(it.class, &mut request.parts, count, cx.settings)?,
            _ => self.agree_on_end(&request.parts, count, request.read_only),
        };
        request.follower_read &= request.agreement == Agreement::Alone;
        Ok(())
    }

    /// The client of a one-round transaction is told.
    pub(super) fn on_invoke_end(
        &mut self,
        invocation: Invocation,
        request: &Request,
        verdict: RequestVerdict,
        cx: &mut Context<'_>,
    ) {
        let (status, at, result) = match verdict {
            // Who did it had no request of this client for a lease, and forgot what the parts gave.
            RequestVerdict::Done(at, answers)
                if answers.len() < request.parts.len()
                    && self.switches.keeps(GranolaSwitch::AnswersForgotten) =>
            {
                (Status::Committed, Some(at), Err(Failure::AnswerLost))
            }
            RequestVerdict::Done(at, answers) => {
                let results = answers.into_iter().map(|(_, answer)| given(answer)).collect();
                (Status::Committed, Some(at), Ok(Answer::Invoked(Invoked { at, results })))
            }
            RequestVerdict::Conflict | RequestVerdict::Moved(_) | RequestVerdict::Forgotten(_) => {
                (Status::Aborted, None, Err(Failure::Aborted(Abort::Locked)))
            }
            RequestVerdict::Refused(refusal) => {
                (Status::Aborted, None, Err(Failure::from(refusal)))
            }
        };
        let now = cx.now();
        if let Some(recorder) = &mut cx.effects.recorder {
            let record = invocation.record(request, Some(now), status, at);
            recorder.transaction(&record, &RecordedOperations::default());
        }
        cx.complete(invocation.op, result);
    }
}

/// What a procedure gave.
pub(super) fn given(answer: PartAnswer) -> SmallBytes {
    match answer {
        PartAnswer::Given(result) => result,
        // Nobody who runs procedures answers a call with such.
        _ => SmallBytes::EMPTY,
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
    One { near: NodeId, rotation: u64 },
}

impl Holders {
    /// Those that write take all, those that read one.
    pub fn of(read_only: bool, reader: Holders) -> Holders {
        if read_only { reader } else { Holders::All }
    }

    fn choose(self, part: &Part, catalog: &Catalog) -> Repositories {
        let all = part.holders(catalog);
        assert!(!all.is_empty(), "partition {} is nowhere", part.partition);
        let Holders::One { near, rotation } = self else { return all };
        Repositories::from_iter([one_of(&all, (near, rotation), catalog)])
    }
}

/// One of the repositories that hold a partition: one of a node, else one after the other.
pub(super) fn one_of(
    all: &[RepositoryId],
    (near, rotation): (NodeId, u64),
    catalog: &Catalog,
) -> RepositoryId {
    let here = all.iter().copied().find(|it| catalog.home(*it) == near);
    here.unwrap_or_else(|| all[(rotation % all.len() as u64) as usize])
}

/// Those who take part: of each partition all who hold it, or one; whoever takes part already will
/// do.
pub(super) fn participants_of(parts: &[Part], holders: Holders, catalog: &Catalog) -> Repositories {
    let mut all = Repositories::new();
    for part in parts {
        let known = all.iter().any(|it| part.is_held_by(*it, catalog));
        if !known || matches!(holders, Holders::All) {
            all.extend(holders.choose(part, catalog));
        }
    }
    all.sort_unstable();
    all.dedup();
    assert!(!all.is_empty() || parts.is_empty(), "partitions that are nowhere");
    all
}

/// Another repository that can answer a reader of one, the next one in the order of replicas.
pub(super) fn other_reader(request: &Request, catalog: &Catalog) -> Option<Repositories> {
    let (now, first) = (request.participants.first()?, request.parts.first()?);
    let holds_all =
        |it: &RepositoryId| request.parts.iter().all(|part| part.is_held_by(*it, catalog));
    let mut all = first.holders(catalog);
    all.retain(|it| holds_all(it));
    let place = all.iter().position(|it| it == now)?;
    let next = all[(place + 1) % all.len()];
    (next != *now).then(|| Repositories::from_iter([next]))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::granola::message::Owners;

    #[test]
    #[should_panic(expected = "partition 0 is nowhere")]
    fn a_partition_that_nobody_holds_is_noticed() {
        let nodes = [NodeId(0)];
        let catalog = Catalog::new(&nodes, 1, &nodes).expect("it can be");
        let part = |owners| Part { partition: 0, owners, task: Task::Names };
        let of = |part| participants_of(&[part], Holders::All, &catalog);
        assert_eq!(of(part(None))[..], [RepositoryId(0)]);
        of(part(Some(Arc::new(Owners { epoch: 1, holders: Repositories::new() }))));
    }
}
