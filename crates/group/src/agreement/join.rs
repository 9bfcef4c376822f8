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
//! The answers are short ([`Summary`]). The entries, and the state of the participant, come from
//! the chosen member afterwards, piece by piece ([`transfer`](crate::agreement::transfer)). That
//! one goes on meanwhile; so what the member adopts in the end may be newer than the answer was:
//! the entries of a later ballot, or of a later configuration. It is as if the leader of that
//! ballot had sent them to the member itself, which has promised nobody else since it came back;
//! and the entries of a later ballot have all that may have been decided under earlier ones. The
//! promise that it adopts is the largest of the answers, or a larger one that the chosen member has
//! made since. As long as not all entries are there it has no memory, and a crash has it ask again.
//!
//! Whatever it had promised, it had promised to one of the others, who had promised the same to
//! itself, stably, before asking; so the largest promise of all is no smaller than its own was.
//! Whatever it had accepted under a ballot it had from that ballot's leader, who has it still, or
//! has joined a later ballot, whose leader took the entries of a majority over: with those of this
//! member if it was of that majority. What it says now, it says over links made since it came
//! back, and answers to its questions come over such links too: none is of an earlier life.
//!
//! All who vote must answer, so this takes a group of which no other member is lost for good; then
//! it is a case for a change of membership.
//!
//! # Which others
//! Those of the newest [configuration](crate::agreement::configuration) that any of them knows to
//! have begun; and those of them that have not got so far must first. What the member did in
//! earlier ones is no matter, for these have ended, and it never votes in them again.
//!
//! And in later ones? If the next one had begun, a majority would have the entry that ends this
//! one, and one of those who answered; where a majority forgot it is lost anyway. Then all others
//! who vote in the next one must say that they have not begun it: so nobody ever heard what the
//! member said there. Otherwise it waits: they go on to the next one, and then all who vote there
//! answer.
//!
//! If it does not vote in that configuration, it *learns*: a majority is enough, none of whom has
//! an entry that would end the configuration. For if the next one had begun, in which the member
//! may have voted before it forgot, a majority would have that entry, and one of those who
//! answered. So it never voted in any later one either, knows that from then on, and needs to ask
//! nobody when it comes to vote.
//!
//! # Too many without memory
//! Every majority that ever decided must have a member that remembers. So those without memory must
//! be fewer than a majority, the one that asks included; or else it is [lost](JoinStep::Lost), and
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
//! member that had met only, and remembers, knows that nobody had begun. Where all members forgot,
//! others may know: all nodes remember which groups they heard to have a leader (`Catalog`). A
//! member is to ask all of them before it meets anybody. Only where nobody in the cluster
//! remembers, such a group is a new one.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::NodeId;

use crate::agreement::configuration::Configuration;
use crate::agreement::summary::{Formed, Summary};

/// The answers so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Joining {
    /// The last answer of each member.
    answers: BTreeMap<u16, Summary>,
    /// The others forgot too much.
    is_lost: bool,
    /// Nodes that have said whether they know of the group's having begun.
    answered: BTreeSet<NodeId>,
    /// Somebody knows of it.
    had_begun: bool,
    /// The others are to be told how far this member has come.
    has_news: bool,
}

/// What a member that asks knows of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Situation<'a> {
    /// Its place.
    pub me: u16,
    pub mine: Formed,
    /// Who votes in a group that forms.
    pub first: &'a Configuration,
    /// The group had formed: the member came to its node later, or somebody else knows.
    pub had_formed: bool,
    /// Everybody has been asked who may know that.
    pub asked_all: bool,
    /// Somebody has decided to go on with what is left.
    pub accepts_loss: bool,
}

/// What follows from the answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JoinStep {
    /// Others must come further first.
    Wait,
    /// Nobody remembers; all others of the cluster are to be asked whether the group had begun.
    AskAll,
    /// The group has come so far, and this is to be remembered.
    Note(Formed),
    /// This is what the others know; the entries are to be had from this member.
    Adopt(u16, Summary),
    /// What the others know may be too little.
    Lost,
}

impl Joining {
    /// A member has answered.
    pub(crate) fn answer(&mut self, member: u16, summary: Summary) {
        self.answers.insert(member, summary);
    }

    /// A node has said whether it knows the group to have begun.
    pub(crate) fn note_begun(&mut self, node: NodeId, begun: bool) {
        self.had_begun |= begun;
        self.answered.insert(node);
    }

    /// Whether somebody knows the group to have begun.
    pub(crate) fn had_begun(&self) -> bool {
        self.had_begun
    }

    /// Whether a node has said whether it does.
    pub(crate) fn has_answered(&self, node: NodeId) -> bool {
        self.answered.contains(&node)
    }

    /// What follows for a member that does not vote yet.
    pub(crate) fn step(&mut self, situation: Situation<'_>) -> JoinStep {
        let begun = self.answers.values().filter(|answer| answer.formed == Formed::Begun);
        let newest = begun.map(|answer| &answer.configuration).max_by_key(|it| it.number);
        let configuration = newest.unwrap_or(situation.first);
        if !configuration.has(situation.me) {
            return self
                .learn(configuration)
                .map_or(JoinStep::Wait, |(member, it)| JoinStep::Adopt(member, it));
        }
        let answer = |other| self.answers.get(&other).map(|answer| (other, answer));
        let others = configuration.others(situation.me).map(answer);
        let Some(others) = others.collect::<Option<Vec<_>>>() else { return JoinStep::Wait };
        let is_behind = |(_, answer): &(u16, &Summary)| match answer.formed {
            Formed::No => false,
            Formed::Begun => answer.configuration != *configuration,
            // Where somebody has begun, they have to begin with the first one.
            Formed::Met | Formed::Ready if newest.is_some() => false,
            Formed::Met | Formed::Ready => answer.configuration != *configuration,
        };
        if others.iter().any(is_behind) || self.may_have_ended(situation.me, configuration) {
            return JoinStep::Wait;
        }
        let step = judge(situation, &others);
        self.is_lost = step == JoinStep::Lost;
        step
    }

    /// Whether somebody has an entry that ends the configuration, and the next one may have begun:
    /// not all others who vote there say that they have not got so far.
    fn may_have_ended(&self, me: u16, configuration: &Configuration) -> bool {
        let has_begun_nothing = |other: u16| {
            let answer = self.answers.get(&other);
            answer
                .is_some_and(|it| it.formed == Formed::Begun && it.configuration == *configuration)
        };
        let ends = self.answers.values().filter(|it| it.configuration == *configuration);
        let mut nexts = ends.filter_map(|it| it.next.as_ref());
        nexts.any(|next| !next.others(me).all(has_begun_nothing))
    }

    /// What there is to know of a configuration in which the member does not vote, if enough say
    /// so.
    fn learn(&self, configuration: &Configuration) -> Option<(u16, Summary)> {
        let answers = self.answers.iter().filter(|(place, answer)| {
            let is_there = answer.formed == Formed::Begun && answer.configuration == *configuration;
            // Had the next one begun, a majority would know how, and the others be too few.
            is_there && configuration.has(**place) && answer.next.is_none()
        });
        let answers: Vec<_> = answers.map(|(place, answer)| (*place, answer)).collect();
        let enough = answers.len() >= configuration.majority();
        enough.then(|| merged(Formed::Begun, &answers)).flatten()
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

/// What follows for a member that votes, or is to vote, from what all others who do have answered.
fn judge(situation: Situation<'_>, others: &[(u16, &Summary)]) -> JoinStep {
    let Situation { mine, had_formed, asked_all, accepts_loss, .. } = situation;
    let all = || others.iter().map(|(_, answer)| answer.formed);
    let (least, most) = (all().min().unwrap_or_default(), all().max().unwrap_or_default());
    match mine {
        // Where somebody has begun, all had been ready.
        Formed::Ready | Formed::Begun if least >= Formed::Ready || most == Formed::Begun => {
            return JoinStep::Note(Formed::Begun);
        }
        Formed::Ready | Formed::Begun => return JoinStep::Wait,
        Formed::Met if most < Formed::Begun && least >= Formed::Met => {
            return JoinStep::Note(Formed::Ready);
        }
        Formed::Met if most < Formed::Begun => return JoinStep::Wait,
        // Where somebody has begun, this member had been ready, and has forgotten.
        Formed::Met | Formed::No => {}
    }
    let has_forgotten = |formed: &Formed| match most {
        Formed::Begun => *formed < Formed::Ready,
        _ => *formed == Formed::No,
    };
    let too_many = 1 + all().filter(has_forgotten).count() > others.len().div_ceil(2);
    if most >= Formed::Ready && (!too_many || accepts_loss) {
        return merged(most, others)
            .map_or(JoinStep::Wait, |(member, it)| JoinStep::Adopt(member, it));
    }
    if most >= Formed::Ready || (had_formed && !accepts_loss) {
        return JoinStep::Lost;
    }
    if !asked_all && !accepts_loss {
        return JoinStep::AskAll;
    }
    JoinStep::Note(Formed::Met)
}

/// The largest promise of all, and what whoever has the newest entries knows.
fn merged(formed: Formed, answers: &[(u16, &Summary)]) -> Option<(u16, Summary)> {
    let promise = answers.iter().map(|(_, it)| it.promise).max()?;
    let remember = answers.iter().filter(|(_, it)| it.formed == formed);
    let newness = |it: &Summary| (it.configuration.number, it.accepted, it.length);
    // Of several the first one, for they are asked in this order.
    let newer = |one: &(u16, &Summary), other: &(u16, &Summary)| newness(other.1) > newness(one.1);
    let (member, newest) =
        remember.copied().reduce(|one, other| if newer(&one, &other) { other } else { one })?;
    Some((member, Summary { formed, promise, ..Summary::clone(newest) }))
}

#[cfg(test)]
mod tests;
