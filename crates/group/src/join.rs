//! A member without memory: it is new, or its disk was lost.
//!
//! # The problem
//! A member that forgot what it promised and accepted must not vote: it could help a leader of the
//! past to decide, or a new one to overlook what it had accepted. And where a majority forgot, what
//! only they had decided is lost, and nobody who is left knows that there was anything.
//!
//! # Coming back
//! It asks all other members what they know, and takes no part before each has answered. Then it
//! adopts the largest promise of all, and the entries of whoever has the newest.
//!
//! Whatever it had promised, it had promised to one of the others, who had promised the same to
//! itself, stably, before asking; so the largest promise of all is no smaller than its own was.
//! Whatever it had accepted under a ballot it had from that ballot's leader, who has it still, or
//! has joined a later ballot, whose leader took the entries of a majority over: with those of this
//! member if it was of that majority. What it says now, it says over links made since it came
//! back, and answers to its questions come over such links too: none is of an earlier life.
//!
//! All members must answer, so this takes a group of which no other member is lost for good; then
//! it is a case for a change of membership.
//!
//! # Too many without memory
//! Every majority that ever decided must have a member that remembers. So those without memory must
//! be fewer than a majority, the one that asks included; or else it is [lost](Step::Lost), and
//! waits. A group that is new has no memory at all, and must be told from one that forgot: it
//! forms in steps, each of which its members keep on disk before they speak of it.
//!
//! | a member | when all others |
//! | --- | --- |
//! | has [met](Formed::Met) them | have no memory, or have met |
//! | is [ready](Formed::Ready) | have met, or more |
//! | has [begun](Formed::Begun), and votes | are ready, or more |
//!
//! Where anything was decided, some had begun; so all had been ready. A member that remembers says
//! so from then on, and no member without memory that hears it takes the group for a new one. A
//! member that had met only, and remembers, knows that nobody had begun. If all members forget,
//! there is nobody to know: such a group is a new one.

use std::collections::BTreeMap;

use crate::ledger::Standing;

/// How far a group had come when it formed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Formed {
    /// No memory.
    #[default]
    No,
    /// All others had no memory, or had met.
    Met,
    /// All others had met.
    Ready,
    /// All others were ready: the group may have decided something since.
    Begun,
}

/// The answers so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Joining {
    /// The last answer of each member.
    answers: BTreeMap<u16, Standing>,
    /// The others forgot too much.
    is_lost: bool,
    /// The others are to be told how far this member has come.
    has_news: bool,
}

/// What a member that asks knows of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Situation {
    pub mine: Formed,
    /// How many other members there are.
    pub others: usize,
    /// It came to its node after the group had formed elsewhere.
    pub has_moved: bool,
    /// Somebody has decided to go on with what is left.
    pub accepts_loss: bool,
}

/// What follows from the answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Others must come further first.
    Wait,
    /// The group has come so far, and this is to be remembered.
    Note(Formed),
    /// This is what the others know.
    Adopt(Standing),
    /// What the others know may be too little.
    Lost,
}

impl Joining {
    /// A member has answered.
    pub(crate) fn answer(&mut self, member: u16, standing: Standing) {
        self.answers.insert(member, standing);
    }

    /// What follows for a member that does not vote yet.
    pub(crate) fn step(&mut self, situation: Situation) -> Step {
        if self.answers.len() < situation.others {
            return Step::Wait;
        }
        let step = self.judge(situation);
        self.is_lost = step == Step::Lost;
        step
    }

    fn judge(&self, situation: Situation) -> Step {
        let Situation { mine, others, has_moved, accepts_loss } = situation;
        let all = || self.answers.values().map(|answer| answer.formed);
        let (least, most) = (all().min().unwrap_or_default(), all().max().unwrap_or_default());
        match mine {
            Formed::Ready | Formed::Begun if least >= Formed::Ready => {
                return Step::Note(Formed::Begun);
            }
            Formed::Ready | Formed::Begun => return Step::Wait,
            Formed::Met if most < Formed::Begun && least >= Formed::Met => {
                return Step::Note(Formed::Ready);
            }
            Formed::Met if most < Formed::Begun => return Step::Wait,
            // Where somebody has begun, this member had been ready, and has forgotten.
            Formed::Met | Formed::No => {}
        }
        let has_forgotten = |formed: &Formed| match most {
            Formed::Begun => *formed < Formed::Ready,
            _ => *formed == Formed::No,
        };
        let too_many = 1 + all().filter(has_forgotten).count() > others.div_ceil(2);
        if most >= Formed::Ready && (!too_many || accepts_loss) {
            return self.merged(most).map_or(Step::Wait, Step::Adopt);
        }
        if most >= Formed::Ready || (has_moved && !accepts_loss) {
            return Step::Lost;
        }
        Step::Note(Formed::Met)
    }

    /// The largest promise of all, and what whoever has the newest entries knows.
    fn merged(&self, formed: Formed) -> Option<Standing> {
        let promise = self.answers.values().map(|it| it.promise).max()?;
        let newest = self.answers.values().max_by_key(|it| (it.accepted, it.length()))?;
        Some(Standing { formed, promise, ..newest.clone() })
    }

    /// Whether so many have forgotten that it waits for somebody's decision.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// The others are to be told how far this member has come.
    pub(crate) fn has_news(&mut self) {
        self.has_news = true;
    }

    /// Whether they are; once.
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }
}

#[cfg(test)]
mod tests;
