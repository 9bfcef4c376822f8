//! Procedures that have nothing to do with each other, run at the same time: beyond the thesis,
//! which names it among what could come later (section 9.1).
//!
//! # The problem
//! A repository does its transactions one after the other, on one core. Where procedures take long,
//! all who stand behind wait for them, with nothing to do for the other cores.
//!
//! # The idea
//! Those whose turn it is now or would be next, and who by their declarations touch nothing that
//! another one of them writes, are a *batch*: all are run on the state as it is, their writes put
//! aside as in locking mode, by the workers that the driver gave
//! ([`Incompatible`](muesli_core::Parallel)); then, in this one's own thread, they are installed
//! and told of one after the other in the order of their places. Nobody comes between.
//!
//! # Why it is as if one had been done after the other
//! A run reads what its procedures declare and nothing else, whatever they try. None of it is
//! written by another one of the batch: so it reads what it would have read at its place, does
//! what it would have done there, and its writes, answers and faults are the same. All that orders
//! transactions happens in that order, as before: the timestamp of the last one done, the log, what
//! is told. A procedure that declares nothing may touch anything and is alone in its batch.
//!
//! # Who is in a batch
//! Without [`out_of_order`](super::out_of_order), those who are ready in the order of the queue, up
//! to the first that conflicts with one of them: nobody goes ahead of anybody. With it, all whose
//! places are known and who conflict with nobody before them, those of the batch included. Who has
//! to tell something first is told of in a step of its own
//! ([`sharing`](crate::granola::participant::votes::data)).
//!
//! Where a transaction of one repository would be done in the step in which it comes, it now waits
//! in the queue for the next step, so that those that come together are run together; if it is all
//! procedures that declare what they touch.

use std::sync::Arc;

use muesli_core::parts::footprint_locks::FootprintLocks;
use smallvec::SmallVec;

use super::{QueueKey, WaitQueue};
use crate::granola::message::{DataByPart, Request, Task};
use crate::granola::participant::execution::prepared::PreparedRun;
use crate::granola::participant::execution::read_set::count_reads;
use crate::granola::participant::{Context, Participant};
use crate::granola::switches::GranolaSwitch;
use crate::sight::Sight;

/// Those that are run together, in the order of their places; mostly one.
pub(in super::super) type Batch = SmallVec<[QueueKey; 1]>;

impl Participant {
    /// Whether a transaction of this repository alone is to wait for others to be run with.
    pub(in super::super) fn waits_for_company(&self, request: &Request, cx: &Context<'_>) -> bool {
        let declares = |task: &Task| match task {
            Task::Call { procedure, .. } => {
                cx.settings.procedures.get(procedure).is_some_and(|it| it.footprint.is_some())
            }
            Task::Read(_) | Task::Scan { .. } | Task::Install(_) => false,
            Task::Take { .. } | Task::Move(_) | Task::Names => false,
        };
        cx.settings.parallel.is_on()
            && self.batches()
            && request.parts.iter().all(|part| declares(&part.task))
    }

    /// Whether what is ready is done in the order of the queue, and by nothing else.
    fn batches(&self) -> bool {
        !self.locking
            && self.footprint_locks.is_empty()
            && self.switches.keeps(GranolaSwitch::InOrder)
    }

    /// Those that can be run together with one that is to be done now, and that one.
    pub(in super::super) fn batch(&mut self, first: QueueKey, cx: &mut Context<'_>) -> Batch {
        let mut batch = Batch::from_buf([first]);
        if cx.settings.parallel.is_on() && self.batches() && !self.moves_partition(first) {
            match self.queue.is_passed() {
                true => self.batch_of_who_pass(&mut batch, cx),
                false => self.batch_in_order(&mut batch, cx),
            }
            batch.sort_unstable();
        }
        let most = cx.settings.parallel.at_most().max(1);
        assert!(batch.len() <= most, "{} are run together, of {most}", batch.len());
        batch
    }

    /// Whether it is a move of a partition, which is done alone: it is about all keys of it.
    fn moves_partition(&self, stand: QueueKey) -> bool {
        self.active[&stand.1].request.moving().is_some()
    }

    /// Without passing: those who are ready, up to one that conflicts with another.
    fn batch_in_order(&mut self, batch: &mut Batch, cx: &mut Context<'_>) {
        let first = batch[0];
        let ready = self.queue.ready(|voter| self.vote_sequences.bound(voter));
        let most = cx.settings.parallel.at_most();
        let ready: Vec<_> = ready.skip_while(|it| *it != first).take(most).collect();
        assert_eq!(ready.first(), Some(&first), "who is run first of several");
        if ready.len() < 2 {
            return; // Nobody need know what it may touch.
        }
        let mut footprint_locks = FootprintLocks::default();
        for stand in ready {
            let request = self.active[&stand.1].request.clone();
            let claim = self.all_it_may_touch(&request, cx);
            let conflicts = self.switches.keeps(GranolaSwitch::ParallelApart)
                && footprint_locks.conflict(&claim);
            let is_untold = request.exchanges_data() && !self.is_complete(&request);
            if conflicts || is_untold || request.moving().is_some() {
                return;
            }
            footprint_locks.hold(stand, claim);
            batch.extend((stand != first).then_some(stand));
        }
    }

    /// With passing: whoever conflicts with nobody before it.
    fn batch_of_who_pass(&mut self, batch: &mut Batch, cx: &mut Context<'_>) {
        while batch.len() < cx.settings.parallel.at_most() {
            let Some(stand) = self.next_out_of_order(batch, cx) else { return };
            if self.moves_partition(stand) {
                return self.queue.check_again(stand);
            }
            if self.has_data(stand, cx) {
                batch.push(stand);
            }
        }
    }

    /// Does a batch.
    pub(in super::super) fn perform_parallel(&mut self, batch: &[QueueKey], cx: &mut Context<'_>) {
        let with_data = |stand: &QueueKey| {
            let request = self.active[&stand.1].request.clone();
            let shared = self.data_for(&request, cx);
            (request, shared)
        };
        let requests: Vec<_> = batch.iter().map(with_data).collect();
        let (sight, all) = (Sight::of(cx), &*self);
        let work = |run: (Arc<Request>, Option<DataByPart>)| all.run_aside(&run.0, run.1, sight);
        let ran = sight.settings.parallel.map(requests, work);
        assert_eq!(ran.len(), batch.len(), "how many were run together");
        cx.effects.modes.parallel += batch.len() as u64;
        for (stand, prepared) in batch.iter().zip(ran) {
            let (place, txn) = *stand;
            self.queue.remove(WaitQueue::Placed, stand);
            let active = self.active.remove(&txn).expect("what is queued is active");
            assert_eq!(active.place, Some(place), "where {txn} is done");
            self.rest_on_vote(&active, cx);
            if let Some(ran) = &prepared.ran {
                count_reads(ran, &prepared.sets, cx);
            }
            self.finish((&active.request, active.about), place, prepared, cx);
        }
    }

    /// Runs a transaction on the state as it is, and puts aside what came of it.
    fn run_aside(
        &self,
        request: &Request,
        shared: Option<DataByPart>,
        cx: Sight<'_>,
    ) -> Box<PreparedRun> {
        let mut prepared = Box::<PreparedRun>::default();
        let PreparedRun { sets, notes, ran } = &mut *prepared;
        *ran = Some(self.run_with_data(request, shared.as_ref(), sets, notes, cx));
        prepared
    }
}
