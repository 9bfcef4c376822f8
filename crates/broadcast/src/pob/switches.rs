//! What a user of the broadcast chooses, and the rules that tests break.

use muesli_core::sabotage::{Broken, Sabotage, breakable};

use crate::quorums::Quorums;

breakable! {
    /// What Partial Order Broadcast keeps to. The paper prints other rules in some of these places,
    /// the same ones in others, and says nothing in the rest: the table in
    /// `docs/inside/broadcast.md` tells which.
    enum PobSwitch {
        /// A member stores, and says, in which epoch it accepted a position. As printed it says
        /// the epoch that it is asked in.
        AcceptedEpochs = "accepted_epochs",
        /// A message changes nothing that has come further in its epoch, or is stable.
        StatusAdvances = "status_advances",
        /// Who accepts a position adds all that it knows to conflict. Broken, it adds nothing.
        AcceptsComplete = "accepts_complete",
        /// It adds what has a higher position, too.
        AcceptsUnfiltered = "accepts_unfiltered",
        /// Commands with one position go by their names.
        TieBreak = "tie_break",
        /// Who takes a command over answers itself, too.
        OwnPromise = "own_promise",
        /// A command is taken over that is known by its name alone.
        RecoversUnknown = "recovers_unknown",
        /// A final position is taken in any epoch.
        StableInAnyEpoch = "stable_in_any_epoch",
        /// Quorums for decisions at once are large enough. As printed: 2, 3, 5 of 3, 5, 7.
        FastQuorums = "fast_quorums",
        /// Who takes a command over keeps the position with which it may have been decided at once.
        FastRecovery = "fast_recovery",
        /// A command is said to come after all that conflict with it and were delivered before it
        /// here. Broken: after those of them that its leader named.
        NamesDelivered = "names_delivered",
        /// Commands are forgotten that each member has said it has delivered. Broken, those that
        /// this member has.
        CollectsDelivered = "collects_delivered",
        /// A member that knows nothing as high answers with the position that was proposed. As
        /// printed: with one above it, so that nobody ever agrees with a leader.
        KeepsProposed = "keeps_proposed",
        /// A member answers with a position that no command in conflict has. Broken: one that
        /// another command has may stay.
        RaisesEqual = "raises_equal",
        /// A member's answer names all that it knows to conflict. Broken: what the leader named.
        AnswersComplete = "answers_complete",
        /// A leader takes the highest position that was answered. Broken: the one it proposed.
        TakesHighest = "takes_highest",
        /// A leader proposes a position above all that it has seen. Broken: the first one.
        ProposesAbove = "proposes_above",
        /// Who accepts a position names what it knew at the proposal, too. As the text has it:
        /// what it has come to know since.
        AcceptsEarlier = "accepts_earlier",
        /// A final position is announced with all that those have named who accepted it. Broken:
        /// with what its leader knows.
        AnnouncesAnswers = "announces_answers",
        /// Leaders wait for answers of a majority. Broken: of one member fewer.
        Majorities = "majorities",
        /// Answers are counted by member. As printed: those that are the same count as one.
        CountsMembers = "counts_members",
        /// Answers count in the epoch in which they were given. Broken: in any.
        CountsOneEpoch = "counts_one_epoch",
        /// Messages of an epoch that is over are refused.
        RefusesEarlier = "refuses_earlier",
        /// An epoch is of one member. As printed: two members may lead a command in the same one.
        SeparateEpochs = "separate_epochs",
        /// Who takes a command over again waits longer each time.
        BacksOff = "backs_off",
        /// Who has not answered is asked again.
        AsksAgain = "asks_again",
        /// Who asks about a command that is stable is sent its end.
        ShowsEnds = "shows_ends",
        /// Who has missed the end of what others have delivered is sent it.
        ShowsMissed = "shows_missed",
        /// Members take over commands of others. Broken: those alone that they proposed.
        SuspectsOthers = "suspects_others",
        /// A stable command waits for dependencies whose end is not known.
        AwaitsDependencies = "awaits_dependencies",
        /// A stable command waits for those that are stable with lower positions.
        AwaitsLower = "awaits_lower",
        /// Commands are decided at once in their first epoch alone.
        FastInFirst = "fast_in_first",
        /// A command is decided at once if all that have answered agree. Broken: if enough have
        /// answered.
        FastUnanimous = "fast_unanimous",
        /// A position that a fast quorum has is kept where so many of those asked have it as must
        /// be in both. As a majority rule has it: more than half of those asked.
        FewAgree = "few_agree",
        /// No fewer are enough. As in EPaxos: (f + 1) / 2.
        EnoughAgree = "enough_agree",
        /// Of those asked, who has kept the leader's position agrees. Broken: who has any.
        AgreesWithLeader = "agrees_with_leader",
        /// If a command's first leader is among those asked, it was not decided at once. Broken:
        /// its answer counts like others.
        LeaderAmongAsked = "leader_among_asked",
        /// Commands that were delivered and are not forgotten conflict like others. Broken: they do
        /// no more.
        KeepsConflicts = "keeps_conflicts",
        /// Who is asked again answers again.
        AnswersAgain = "answers_again",
        /// Members take over commands of their own, too, after a crash.
        SuspectsOwn = "suspects_own",
        /// Members take a command over one after the other, as they come after its leader. Broken:
        /// all at the same time.
        RanksMembers = "ranks_members",
        /// A command that is nothing counts as delivered.
        PassesNothing = "passes_nothing",
        /// A member writes down for which epoch it refuses earlier ones.
        WritesEpochs = "writes_epochs",
        /// A member writes down what it answers to a proposal.
        WritesProposals = "writes_proposals",
        /// A member writes down which position it has accepted.
        WritesAccepted = "writes_accepted",
        /// A member writes down a final position before it delivers.
        WritesStable = "writes_stable",
    }
}

/// What its user chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Switches {
    /// Whether commands are decided at once where enough members agree with their leader.
    pub fast: bool,
    /// With that, whether a majority is enough for it. Commands can then be taken over only while
    /// all members but one live (but two, of an even number from six on).
    pub fast_majority: bool,
    broken: Broken<PobSwitch>,
}

impl Switches {
    /// With decisions at once.
    pub fn fast() -> Switches {
        Switches { fast: true, ..Switches::default() }
    }

    /// With decisions at once by a majority, where no more than one member is dead at a time.
    pub fn fast_majority() -> Switches {
        Switches { fast_majority: true, ..Switches::fast() }
    }

    /// How many members must answer.
    pub(super) fn quorums(&self, members: usize) -> Quorums {
        let quorums = match (self.keeps(PobSwitch::FastQuorums), self.fast && self.fast_majority) {
            (true, false) => Quorums::of(members),
            (true, true) => Quorums::of_fast_majorities(members),
            (false, _) => Quorums::printed(members),
        };
        let fewer = usize::from(!self.keeps(PobSwitch::Majorities));
        Quorums { majority: quorums.majority - fewer, ..quorums }
    }

    pub(super) fn keeps(&self, switch: PobSwitch) -> bool {
        self.broken.keeps(switch)
    }
}

impl Sabotage<PobSwitch> for Switches {
    fn set(&mut self, switch: PobSwitch, holds: bool) {
        self.broken.set(switch, holds);
    }
}
