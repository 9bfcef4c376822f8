//! What members ask for, by names that stay the same from epoch to epoch.

mod batch;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use muesli_core::wire_struct;
use smallvec::{SmallVec, smallvec};

use super::list::MemberName;
use batch::REQUESTS_MOST;
pub(super) use batch::{OrderedRequest, OwnRequest, RequestBatch, RequestContent};

use crate::batched::{BatchFill, BatchLimits};
use crate::command::{Command, CommandId, MemberId};

/// What a member has asked to be ordered. It keeps this name where it is proposed anew.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    /// Whose it is.
    pub member: MemberName,
    /// Its number among those of that member, from 1; crashes may leave gaps.
    pub sequence: u64,
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.member, self.sequence)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Requests of this member that are, or are to be, one command of the broadcast.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct OwnBatch {
    /// Where it is decided; unknown after a crash, and of a request that leaves by itself.
    pub decided_at: Option<MemberId>,
    /// By their numbers; there is one at least.
    pub requests: SmallVec<[u64; 1]>,
}

/// The requests of this member that are open.
///
/// Invariants: each is new, or waits for a batch, or is proposed in this epoch as part of one
/// command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct OwnRequests {
    /// The number of the last one.
    pub last: u64,
    pub open: BTreeMap<u64, OwnRequest>,
    /// Those that are proposed in this epoch, by their commands there.
    proposed: BTreeMap<CommandId, OwnBatch>,
    /// How many of these are decided at a member, as far as that is known.
    under_way: BTreeMap<MemberId, usize>,
    /// Those that are to be proposed, and nobody has looked at.
    new: BTreeSet<u64>,
    /// Those that wait for a batch, by where they are decided.
    waiting: BTreeMap<MemberId, BTreeSet<u64>>,
    /// Those that no record names: they were never proposed.
    unwritten: BTreeSet<u64>,
    /// The largest number that a record names.
    written: u64,
}

impl OwnRequests {
    /// A new one; its number.
    pub fn add(&mut self, request: OwnRequest) -> u64 {
        self.last += 1;
        self.open.insert(self.last, request);
        self.new.insert(self.last);
        self.unwritten.insert(self.last);
        self.last
    }

    /// Those that no record names: a member that crashes has not asked for them.
    pub fn unwritten(&self) -> &BTreeSet<u64> {
        &self.unwritten
    }

    /// What records say of it: the largest number, and those that are open.
    pub fn written(&self) -> (u64, impl Iterator<Item = (u64, &OwnRequest)>) {
        let open = self.open.iter().filter(|(sequence, _)| !self.unwritten.contains(sequence));
        (self.written, open.map(|(sequence, request)| (*sequence, request)))
    }

    /// From a checkpoint: the largest number that was written down.
    pub fn restore(&mut self, last: u64) {
        (self.last, self.written) = (last, last);
    }

    /// For tests that break what members keep to.
    pub fn clear(&mut self) {
        *self = OwnRequests { last: self.last, written: self.written, ..OwnRequests::default() };
    }

    /// Those that are to be proposed next, as one command.
    pub fn next(
        &mut self,
        limits: Option<BatchLimits>,
        decided_at: impl Fn(&Command) -> Option<MemberId>,
    ) -> Option<OwnBatch> {
        loop {
            while let Some(sequence) = self.new.pop_first() {
                let command = &self.open[&sequence].command;
                let is_alone = limits.is_none_or(|limits| limits.leaves_alone(command));
                match (!is_alone).then(|| decided_at(command)).flatten() {
                    Some(at) => _ = self.waiting.entry(at).or_default().insert(sequence),
                    None => {
                        return Some(OwnBatch { decided_at: None, requests: smallvec![sequence] });
                    }
                }
            }
            let limits = limits?;
            let may_leave =
                |at: &MemberId| self.under_way.get(at).is_none_or(|it| *it < limits.open);
            let at = self.waiting.keys().copied().find(may_leave)?;
            let first = self.waiting[&at].first().expect("nobody waits there");
            if decided_at(&self.open[first].command) == Some(at) {
                return Some(self.take_waiting(at, limits, decided_at));
            }
            // Objects have moved: all are looked at once more.
            self.new.extend(self.waiting.remove(&at).into_iter().flatten());
        }
    }

    /// The next batch of those that wait for one member.
    fn take_waiting(
        &mut self,
        at: MemberId,
        limits: BatchLimits,
        decided_at: impl Fn(&Command) -> Option<MemberId>,
    ) -> OwnBatch {
        let waiting = self.waiting.get_mut(&at).expect("some wait");
        let mut fill = BatchFill::default();
        let fits = |sequence: &&u64| {
            let command = &self.open[*sequence].command;
            // Objects may have moved since.
            fill.adds(command, &limits) && decided_at(command) == Some(at)
        };
        let most = limits.commands.min(REQUESTS_MOST);
        let count = waiting.iter().take(most).take_while(fits).count().max(1);
        let requests: SmallVec<[u64; 1]> = waiting.iter().copied().take(count).collect();
        let last = *requests.last().expect("one at least");
        *waiting = waiting.split_off(&(last + 1));
        if waiting.is_empty() {
            self.waiting.remove(&at);
        }
        OwnBatch { decided_at: Some(at), requests }
    }

    /// What the broadcast is to order.
    pub fn command(&self, batch: &OwnBatch) -> Command {
        let one = |sequence: &u64| (*sequence, &self.open[sequence]);
        RequestBatch::command(batch.requests.iter().map(one))
    }

    /// They are proposed as a command.
    pub fn propose(&mut self, id: CommandId, batch: OwnBatch) {
        for sequence in &batch.requests {
            self.unwritten.remove(sequence);
            self.written = self.written.max(*sequence);
        }
        if let Some(at) = batch.decided_at {
            *self.under_way.entry(at).or_default() += 1;
        }
        self.proposed.insert(id, batch);
    }

    /// A command of this member is not under way any more: what it asked for.
    pub fn end_command(&mut self, id: CommandId) -> SmallVec<[u64; 1]> {
        let Some(OwnBatch { decided_at, requests }) = self.proposed.remove(&id) else {
            return SmallVec::new();
        };
        if let Some(under_way) = decided_at.and_then(|at| self.under_way.get_mut(&at)) {
            *under_way -= 1;
        }
        requests
    }

    /// What is left of these is to be proposed anew.
    pub fn propose_anew(&mut self, requests: SmallVec<[u64; 1]>) {
        let open = &self.open;
        self.new.extend(requests.into_iter().filter(|it| open.contains_key(it)));
    }

    /// In a replay: these were proposed as a command, perhaps again; the last of them has a number.
    pub fn take(&mut self, id: CommandId, last: u64, batch: Option<RequestBatch>) {
        self.last = self.last.max(last);
        self.written = self.written.max(last);
        let Some(batch) = batch else { return };
        let requests = batch.requests.iter().map(|it| it.sequence).collect();
        let own = OwnBatch { decided_at: None, requests };
        for sequence in &own.requests {
            self.stop_waiting(*sequence);
        }
        self.propose(id, own);
        self.open.extend(batch.own());
    }

    /// A request of this member was delivered.
    pub fn end(&mut self, sequence: u64) {
        self.stop_waiting(sequence);
        self.unwritten.remove(&sequence);
        self.open.remove(&sequence);
    }

    fn stop_waiting(&mut self, sequence: u64) {
        self.new.remove(&sequence);
        self.waiting.retain(|_, waiting| {
            waiting.remove(&sequence);
            !waiting.is_empty()
        });
    }

    /// Those that are open and were delivered elsewhere, in an epoch that this member leaves; those
    /// of the user are named.
    pub fn end_all(&mut self, is_delivered: impl Fn(u64) -> bool) -> Vec<u64> {
        let over = self.open.extract_if(.., |sequence, _| is_delivered(*sequence));
        let over: Vec<(u64, OwnRequest)> = over.collect();
        for (sequence, _) in &over {
            self.unwritten.remove(sequence);
        }
        let of_user = over.into_iter().filter(|(_, request)| request.change.is_none());
        of_user.map(|(sequence, _)| sequence).collect()
    }

    /// An epoch begins, in which nothing is proposed yet.
    pub fn begin_epoch(&mut self) {
        self.proposed.clear();
        self.under_way.clear();
        self.waiting.clear();
        self.new = self.open.keys().copied().collect();
    }

    /// After a replay: these are proposed, and all others are to be.
    pub fn resume(&mut self, proposed: impl Iterator<Item = (CommandId, RequestBatch)>) {
        self.begin_epoch();
        for (id, batch) in proposed {
            let all = batch.requests.iter().map(|it| it.sequence);
            let requests: SmallVec<[u64; 1]> = all.filter(|it| self.new.remove(it)).collect();
            if !requests.is_empty() {
                self.propose(id, OwnBatch { decided_at: None, requests });
            }
        }
    }

    pub fn assert_invariants(&self) {
        let proposed = self.proposed.values().flat_map(|batch| &batch.requests);
        let waiting = self.waiting.values().flatten();
        let mut all: Vec<u64> = self.new.iter().chain(proposed).chain(waiting).copied().collect();
        all.sort_unstable();
        assert!(all.iter().eq(self.open.keys()), "requests that nobody proposes, or two: {self:?}");
        assert!(self.open.keys().all(|it| (1..=self.last).contains(it)), "numbers: {self:?}");
        assert!(self.waiting.values().all(|it| !it.is_empty()), "nobody waits there: {self:?}");
        assert!(self.written <= self.last, "{} is written down, of {}", self.written, self.last);
        let is_waiting = |it: &u64| {
            self.new.contains(it) || self.waiting.values().any(|waiting| waiting.contains(it))
        };
        assert!(self.unwritten.iter().all(is_waiting), "proposed, and not written: {self:?}");
        let under_way: usize = self.under_way.values().sum();
        let known = self.proposed.values().filter(|it| it.decided_at.is_some()).count();
        assert_eq!(under_way, known, "commands under way: {self:?}");
    }
}

wire_struct!(RequestId { member: MemberName, sequence: u64 });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::ObjectSet;

    fn request(object: u64) -> OwnRequest {
        let objects = ObjectSet::writes([object]).into();
        OwnRequest { command: Command { objects, payload: [7_u8].as_slice().into() }, change: None }
    }

    /// Where a command is decided: objects below a bound at one member, others nowhere yet.
    fn decided_below(bound: u64, at: u16) -> impl Fn(&Command) -> Option<MemberId> {
        move |command| {
            let object = command.objects.iter().next().expect("it touches one").number;
            (object < bound).then_some(MemberId(at))
        }
    }

    fn id(sequence: u64) -> CommandId {
        CommandId { leader: MemberId(0), sequence }
    }

    /// All that may leave now, each as the next command.
    fn leave(
        own: &mut OwnRequests,
        limits: BatchLimits,
        decided_at: impl Fn(&Command) -> Option<MemberId>,
        from: u64,
    ) -> Vec<Vec<u64>> {
        let mut all = Vec::new();
        while let Some(batch) = own.next(Some(limits), &decided_at) {
            all.push(batch.requests.to_vec());
            own.propose(id(from + all.len() as u64), batch);
            own.assert_invariants();
        }
        all
    }

    #[test]
    fn requests_wait_where_enough_are_under_way_and_leave_together() {
        let limits = BatchLimits { commands: 3, open: 1, alone: Some(9), ..Default::default() };
        let mut own = OwnRequests::default();
        [1, 2, 3, 4, 5, 9].iter().for_each(|object| _ = own.add(request(*object)));
        let decided = decided_below(10, 1);
        // What writes the object 9 is alone, and waits for nobody.
        assert_eq!(leave(&mut own, limits, &decided, 0), [vec![6], vec![1, 2, 3]]);
        assert_eq!(own.unwritten().iter().copied().collect::<Vec<_>>(), [4, 5]);
        assert_eq!(own.written().0, 6);
        assert_eq!(own.written().1.count(), 4);
        // It is given up: all of it is proposed once more, by the same names.
        let again = own.end_command(id(2));
        own.propose_anew(again);
        assert_eq!(leave(&mut own, limits, &decided, 2), [vec![1, 2, 3]]);
        let delivered = own.end_command(id(3));
        delivered.iter().for_each(|it| own.end(*it));
        own.propose_anew(delivered);
        assert_eq!(leave(&mut own, limits, &decided, 3), [vec![4, 5]]);
        assert!(own.unwritten().is_empty());
    }

    #[test]
    fn those_whose_objects_have_moved_are_looked_at_once_more() {
        let limits = BatchLimits { commands: 8, open: 1, ..Default::default() };
        let mut own = OwnRequests::default();
        [1, 2, 3].iter().for_each(|object| _ = own.add(request(*object)));
        assert_eq!(leave(&mut own, limits, decided_below(10, 1), 0), [[1, 2, 3]]);
        [1, 2, 20].iter().for_each(|object| _ = own.add(request(*object)));
        // What nobody decides yet leaves by itself; the others wait for member 1, then 2.
        assert_eq!(leave(&mut own, limits, decided_below(10, 1), 1), [[6]]);
        own.add(request(3));
        let over = own.end_command(id(1));
        over.iter().for_each(|it| own.end(*it));
        assert_eq!(leave(&mut own, limits, decided_below(10, 2), 2), [[4, 5, 7]]);
    }
}
