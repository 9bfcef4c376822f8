//! What members have delivered: what all have is forgotten, and what one has missed it asks for.
//!
//! A member that has never heard of a command has nothing to say of it, so that a command goes only
//! once every member has said that it has delivered just this one.

use muesli_core::Nanos;

use crate::command::{CommandId, MemberId};
use crate::id_set::IdSet;
use crate::member::checkpoint::{CheckpointError, DeliveredRange, holds};

/// So many commands are sent at once to who has missed them.
const MISSED_AT_ONCE: usize = 256;

/// So many delivered commands are said to others at once.
const MANY: u64 = 512;

/// No command comes before it.
const FIRST: CommandId = CommandId { leader: MemberId(0), sequence: 1 };

/// What members have delivered, as far as one of them knows.
///
/// Invariants: nothing is collected that this member has not delivered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DeliveryProgress {
    me: MemberId,
    /// What was delivered here, or is nothing, from the beginning on.
    delivered: IdSet,
    /// Those of it that are nothing, and not forgotten.
    nothing: IdSet,
    /// Commands whose end is known here: those that are delivered, or wait for others alone.
    ended: IdSet,
    /// What was delivered at each member, as it has said.
    reported: Vec<IdSet>,
    /// Up to where all is forgotten, by leader.
    collected: Vec<u64>,
    /// What was said last, and when.
    sent: (IdSet, Nanos),
    /// When somebody was asked last for what is missing, and how much had ended here when all of
    /// its answer has come.
    asked: Option<(Nanos, u64)>,
}

impl DeliveryProgress {
    pub fn new(me: MemberId, members: usize) -> DeliveryProgress {
        let none = vec![0; members];
        DeliveryProgress {
            me,
            delivered: IdSet::new(),
            nothing: IdSet::new(),
            ended: IdSet::new(),
            reported: vec![IdSet::new(); members],
            collected: none,
            sent: (IdSet::new(), Nanos(0)),
            asked: None,
        }
    }

    /// Whose it is.
    pub fn member(&self) -> MemberId {
        self.me
    }

    pub fn delivered(&self) -> &IdSet {
        &self.delivered
    }

    /// Whether some member has said that it has delivered what is not delivered here.
    pub fn is_behind(&self) -> bool {
        self.reported.iter().any(|there| there.iter_beyond(&self.delivered).next().is_some())
    }

    pub fn is_delivered(&self, id: CommandId) -> bool {
        self.delivered.contains(id)
    }

    /// The end of a command is known; false: it was before.
    pub fn end(&mut self, id: CommandId) -> bool {
        self.ended.insert(id)
    }

    /// Commands whose end is known.
    pub fn ended(&self) -> &IdSet {
        &self.ended
    }

    /// A command is delivered; false: it was before.
    pub fn deliver(&mut self, id: CommandId) -> bool {
        self.ended.insert(id);
        self.delivered.insert(id)
    }

    /// A command is nothing: that is its end, and nobody is given it.
    pub fn end_as_nothing(&mut self, id: CommandId) {
        self.nothing.insert(id);
        self.deliver(id);
    }

    pub fn is_collected(&self, id: CommandId) -> bool {
        self.collected.get(id.leader.place()).is_some_and(|collected| id.sequence <= *collected)
    }

    /// Adds all that is forgotten.
    pub fn insert_collected(&self, ids: &mut IdSet) {
        ids.insert_up_to(&self.collected);
    }

    /// Of these what was delivered here, is something, and is not forgotten. What is forgotten goes
    /// first: it is everything that ever was.
    pub fn recent(&self, mut ids: IdSet) -> IdSet {
        self.remove_collected(&mut ids);
        ids.intersect(&self.delivered);
        match self.nothing.is_empty() {
            true => ids,
            false => ids.without(&self.nothing),
        }
    }

    pub fn remove_collected(&self, ids: &mut IdSet) {
        ids.remove_up_to(&self.collected);
    }

    /// What was delivered here, by leader, up to where without gaps.
    pub fn upto(&self) -> Vec<u64> {
        let leaders = (0..self.collected.len() as u16).map(MemberId);
        leaders.map(|leader| self.delivered.contiguous(leader)).collect()
    }

    /// What is to be said to the others, if it is time: without news that is not as often, and with
    /// many at once, as what is not forgotten makes each command dearer.
    pub fn due_report(&mut self, Nanos(every): Nanos, now: Nanos) -> Option<IdSet> {
        let (sent, at) = &self.sent;
        let every = if *sent == self.delivered { every.saturating_mul(10) } else { every };
        let many = self.delivered.len() >= sent.len() + MANY;
        if *at + Nanos(every) > now && !many {
            return None;
        }
        self.sent = (self.delivered.clone(), now);
        Some(self.delivered.clone())
    }

    /// Another member says what it has delivered. It may have to be asked for what is missing here,
    /// as what it had by its last report should have come here as well by now: this is what it need
    /// not send. It is asked for the next part once the last one has come, or is lost.
    pub fn report(
        &mut self,
        from: MemberId,
        delivered: IdSet,
        retry_after: Nanos,
        now: Nanos,
    ) -> Option<IdSet> {
        let reported = &mut self.reported[from.place()];
        let known = reported.clone();
        reported.extend(&delivered);
        let missing = known.count_beyond(&self.ended, MISSED_AT_ONCE) as u64;
        let ended = self.ended.len();
        let is_over = |(at, then): (Nanos, u64)| ended >= then || at + retry_after <= now;
        let is_behind = missing > 0 || known.first_beyond(FIRST, &self.delivered).is_some();
        if !is_behind || !self.asked.is_none_or(is_over) {
            return None;
        }
        self.asked = Some((now, ended + missing.max(1)));
        // Where all ends are known something before them may not be.
        Some(if missing > 0 { self.ended.clone() } else { self.delivered.clone() })
    }

    /// What was delivered here, and what is said not to have ended there, the first of it.
    pub fn missed(&self, there: &IdSet) -> Vec<CommandId> {
        self.delivered.iter_beyond(there).take(MISSED_AT_ONCE).collect()
    }

    /// Up to where all members have said that they have delivered everything, if that is more than
    /// is forgotten.
    pub fn collectable(&self) -> Option<Vec<u64>> {
        let others = self.reported.iter().enumerate().filter(|(at, _)| *at != self.me.place());
        let mut upto = self.upto();
        for (_, delivered) in others {
            for (place, upto) in upto.iter_mut().enumerate() {
                *upto = delivered.contiguous(MemberId(place as u16)).min(*upto);
            }
        }
        let is_more = upto.iter().zip(&self.collected).any(|(new, old)| new > old);
        is_more.then_some(upto)
    }

    /// The first and the last command of each leader that are not forgotten yet, and go with all
    /// up to here.
    pub fn going(&self, upto: &[u64]) -> Vec<(CommandId, CommandId)> {
        let all = upto.iter().zip(&self.collected).enumerate();
        let more = all.filter(|(_, (upto, collected))| upto > collected);
        let of = |place: usize, sequence| CommandId { leader: MemberId(place as u16), sequence };
        more.map(|(place, (upto, collected))| (of(place, collected + 1), of(place, *upto)))
            .collect()
    }

    /// All up to here is forgotten.
    pub fn collect(&mut self, upto: &[u64]) {
        for (collected, upto) in self.collected.iter_mut().zip(upto) {
            *collected = (*upto).max(*collected);
        }
        self.nothing.remove_up_to(&self.collected);
    }

    /// What was delivered here, as it goes into a checkpoint.
    pub fn ranges(&self) -> impl Iterator<Item = DeliveredRange> + '_ {
        self.delivered.as_ranges().map(|(first, last)| DeliveredRange { first, last })
    }

    /// Up to where all is forgotten, by leader, as it goes into a checkpoint.
    pub fn collected(&self) -> &[u64] {
        &self.collected
    }

    /// Takes back what was delivered, from a checkpoint.
    pub fn take_range(&mut self, range: DeliveredRange) {
        self.ended.insert_range(range.first, range.last);
        self.delivered.insert_range(range.first, range.last);
    }

    /// Takes back what is forgotten, when all that was delivered is there.
    pub fn take_collected(&mut self, collected: Vec<u64>) -> Result<(), CheckpointError> {
        holds(collected.len() == self.collected.len(), "as many leaders as members")?;
        let upto = self.upto();
        let delivered = collected.iter().zip(upto).all(|(collected, upto)| *collected <= upto);
        holds(delivered, "what is forgotten was delivered")?;
        self.collected = collected;
        Ok(())
    }

    pub fn assert_invariants(&self) {
        self.delivered.assert_invariants();
        let waits = self.delivered.first_beyond(FIRST, &self.ended);
        assert_eq!(waits, None, "it was delivered before its end");
        let open = self.nothing.first_beyond(FIRST, &self.delivered);
        assert_eq!(open, None, "it is nothing, and not ended");
        assert!(!self.nothing.iter().any(|id| self.is_collected(id)), "nothing is kept");
        for (collected, upto) in self.collected.iter().zip(self.upto()) {
            assert!(*collected <= upto, "{collected} are forgotten, and {upto} delivered");
        }
    }
}
