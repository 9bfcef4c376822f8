//! The rules of validation by a tree: of leaves, and of the validators above them.
//!
//! The thesis prints other ones in most of these places (Amaro 2018, appendices A and B); each is a
//! switch, and the protocols as printed are what all of them together make.

use muesli_core::sabotage::{Broken, Sabotage, breakable};

use super::Decider;
use super::switches::UserChoice;

breakable! {
    /// What leaves and validators keep to beside their family's rules.
    enum TreeSwitch {
        /// A first read fixes the snapshot by the clocks of client and repository. As printed it is
        /// the version of the object read: nothing wrong comes of it, but a transaction whose first
        /// object was written long ago is refused again and again.
        SnapshotsByClocks = "snapshots_by_clocks",
        /// A read raises the clock before it is answered. As printed it moves no clock.
        ReadsRaiseClocks = "reads_raise_clocks",
        /// What is proposed lies above all snapshots served. As printed a clock is the next value,
        /// is raised to a snapshot, and the next writer gets that.
        ProposalsPassSnapshots = "proposals_pass_snapshots",
        /// The clock passes the final timestamp of what ends here. As printed for locks it does
        /// not. Intervals need it, too: the bound of what was read is forgotten then.
        ClocksPassEnds = "clocks_pass_ends",
        /// After it has waited for a tentative version a read looks again. As printed it returns
        /// what it has waited for, whatever became of that.
        LooksUpAgain = "looks_up_again",
        /// A tentative version has the leaf's proposal. As printed it is the next value above the
        /// snapshot: readers wait longer, and nothing wrong comes of it.
        StampedByLeaf = "stamped_by_leaf",
        /// Whether a read is current is told by versions where they were installed. As printed for
        /// timestamps `LATEST` is what the leaf has proposed, and nobody raises it to the final
        /// timestamp.
        NewestAsInstalled = "newest_as_installed",
        /// The newest version is the one that lies last. Broken, `LATEST` is what ended last.
        NewestRises = "newest_rises",
        /// Reads leave no version. As printed for locks they raise `LATEST` of what was read:
        /// others are refused for nothing.
        ReadsLeaveNoVersion = "reads_leave_no_version",
        /// Who has not read a key may write it whatever its newest version is. As printed writes
        /// are compared with `LATEST` like reads: others are refused for nothing.
        BlindWritersPass = "blind_writers_pass",
        /// Who writes what an undecided update has read is put above the interval of that read. As
        /// printed nobody minds who has read.
        WritersAboveIntervals = "writers_above_intervals",
        /// A transaction that is refused releases its own locks. As printed it releases those of
        /// its keys, whose ever they are.
        LocksHaveOwners = "locks_have_owners",
        /// A validator decides once it has all votes. As printed for timestamps it waits until
        /// every child that has ever voted has voted later than the commit timestamp.
        DecidesAtOnce = "decides_at_once",
        /// A validator waits for the participants below it. As printed for timestamps it waits for
        /// a vote of each of its children.
        WaitsForParticipants = "waits_for_participants",
        /// A vote of no goes up, and all are told, at once. As printed for timestamps the client is
        /// told, and the others when all have voted.
        RefusalsPassAtOnce = "refusals_pass_at_once",
        /// A decision goes down the tree, once for all of a subtree in which several take part. As
        /// printed all are told directly: nothing wrong comes of it, but it goes to a subtree once
        /// for each of them.
        DecisionsGoDown = "decisions_go_down",
        /// A coordinator that has lost its link to a node with a validator gathers votes itself
        /// that would go there. Broken, each such commit waits until it is asked for again.
        BypassesUnreachable = "bypasses_unreachable",
        /// Votes alone climb. As printed what a transaction has read and writes climbs with them,
        /// with its values, and comes back with the decision: nothing wrong comes of it, but bytes.
        VotesAloneClimb = "votes_alone_climb",
        /// Validators keep no versions. As printed for timestamps they refuse what has not seen the
        /// last version that passed them: others are refused for nothing.
        ParentsKeepNoVersions = "parents_keep_no_versions",
        /// Leaves validate. (Section 4.2 measures without.)
        Validates = "validates",
    }
}

/// What the thesis prints for locks (appendix A).
const PRINTED_FOR_LOCKS: [TreeSwitch; 11] = [
    TreeSwitch::SnapshotsByClocks,
    TreeSwitch::ReadsRaiseClocks,
    TreeSwitch::ClocksPassEnds,
    TreeSwitch::LooksUpAgain,
    TreeSwitch::StampedByLeaf,
    TreeSwitch::NewestRises,
    TreeSwitch::ReadsLeaveNoVersion,
    TreeSwitch::BlindWritersPass,
    TreeSwitch::LocksHaveOwners,
    TreeSwitch::DecisionsGoDown,
    TreeSwitch::VotesAloneClimb,
];

/// What the thesis prints for timestamps (appendix B).
const PRINTED_FOR_TIMESTAMPS: [TreeSwitch; 13] = [
    TreeSwitch::SnapshotsByClocks,
    TreeSwitch::ReadsRaiseClocks,
    TreeSwitch::LooksUpAgain,
    TreeSwitch::StampedByLeaf,
    TreeSwitch::NewestAsInstalled,
    TreeSwitch::BlindWritersPass,
    TreeSwitch::WritersAboveIntervals,
    TreeSwitch::DecidesAtOnce,
    TreeSwitch::WaitsForParticipants,
    TreeSwitch::RefusalsPassAtOnce,
    TreeSwitch::DecisionsGoDown,
    TreeSwitch::VotesAloneClimb,
    TreeSwitch::ParentsKeepNoVersions,
];

/// How a leaf keeps others from replacing what an undecided update has read there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exclusion {
    /// Its vote is an interval in which that stays the newest; who writes such a key comes to lie
    /// above it (the thesis's variant with timestamps, rule V).
    #[default]
    ByIntervals,
    /// It locks what is read, shared, and what is written, alone (the variant with locks, rule L).
    ByLocks,
}

/// What a user chooses of validation by a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeChoice {
    /// How leaves keep others out.
    pub exclusion: Exclusion,
    /// Who gathers votes and decides.
    pub decider: Decider,
    broken: Broken<TreeSwitch>,
}

impl TreeChoice {
    /// Whether votes tell intervals, and nothing is locked.
    #[inline]
    pub(crate) fn has_intervals(&self) -> bool {
        self.exclusion == Exclusion::ByIntervals
    }

    /// Whether a rule holds.
    #[inline]
    pub(crate) fn keeps(&self, switch: TreeSwitch) -> bool {
        self.broken.keeps(switch)
    }
}

impl UserChoice<TreeChoice> {
    /// With locks, and not with intervals.
    pub fn locking() -> Self {
        let exclusion = Exclusion::ByLocks;
        UserChoice { choice: TreeChoice { exclusion, ..TreeChoice::default() }, ..Self::default() }
    }

    /// The same leaves, and this decider.
    pub fn decided_by(self, decider: Decider) -> Self {
        UserChoice { choice: TreeChoice { decider, ..self.choice }, ..self }
    }

    /// With locks as the thesis prints it (appendix A). It is not serializable.
    pub fn printed_for_locks() -> Self {
        PRINTED_FOR_LOCKS.into_iter().fold(Self::locking(), Sabotage::without)
    }

    /// With timestamps as the thesis prints it (appendix B). It is not serializable, and updates
    /// wait for their coordinators' patience.
    pub fn printed_for_timestamps() -> Self {
        PRINTED_FOR_TIMESTAMPS.into_iter().fold(Self::default(), Sabotage::without)
    }

    /// Without validation, as section 4.2 of the thesis measures. It promises nothing. Nothing is
    /// locked either, so that it is the variant with locks.
    pub fn unchecked() -> Self {
        Self::default().without(TreeSwitch::Validates)
    }

    /// The same with values that climb and come back, as the thesis prints it.
    pub fn unchecked_with_values() -> Self {
        Self::unchecked().without(TreeSwitch::VotesAloneClimb)
    }

    /// The same, decided by `decider`: what section 4.2 compares with. It promises nothing either.
    pub fn unchecked_by(decider: Decider) -> Self {
        Self::default().decided_by(decider).without(TreeSwitch::Validates)
    }
}

impl Sabotage<TreeSwitch> for UserChoice<TreeChoice> {
    fn set(&mut self, switch: TreeSwitch, holds: bool) {
        self.choice.broken.set(switch, holds);
    }
}
