//! The rules of the family.
//!
//! Two back each other up: without [`FamilySwitch::OrderedQueue`] or
//! [`FamilySwitch::CatchUpWhenIdle`] nothing breaks as long as reads go by proposals.

#[cfg(feature = "sabotage")]
use muesli_core::sabotage::Sabotage;
use muesli_core::sabotage::{Unbroken, breakable};

breakable! {
    /// What the family's machines keep to. Each protects a protocol of the family alone.
    enum FamilySwitch {
        /// A prepare is refused if a version read is no longer the newest.
        Validate = "validate",
        /// A read waits for a lock whose holder may come to lie inside the snapshot.
        ReadsWait = "reads_wait",
        /// It tells so by the holder's proposal. Broken, it goes by the paper's rule, and waits
        /// while the repository's clock is below the snapshot; that too is right, but only with
        /// `ordered_queue` and `catch_up_when_idle`, neither of which the proposals need.
        WaitsByProposal = "waits_by_proposal",
        /// A prepare locks what was read, and is refused where a read key is locked by a writer.
        LockReads = "lock_reads",
        /// The reads of a strict transaction that writes nothing are validated as an update's are.
        ValidatesStrict = "validates_strict",
        /// Transactions leave the commit queue in timestamp order.
        OrderedQueue = "ordered_queue",
        /// A prepare checks scanned ranges, and locks them.
        ValidateScans = "validate_scans",
        /// A read pushes the repository's clock to its snapshot.
        ReadsRaise = "reads_raise",
        /// Who will change a key by a delayed action holds it as against readers as a writer does.
        DelayedExcludes = "delayed_excludes",
        /// A proposal lies above all that the repository has served until it locks. Broken, it lies
        /// above the transaction's snapshot alone.
        ProposalsPassClock = "proposals_pass_clock",
        /// It is made in the step that locks. Broken, it lies above what the committer's node has
        /// heard of when the commit begins, and above nothing that is served from then on.
        ProposesUnderLocks = "proposes_under_locks",
        /// With nothing queued and only then, the clock catches up with what was heard of.
        CatchUpWhenIdle = "catch_up_when_idle",
        /// A checkpoint has the transactions that are prepared.
        CheckpointPrepared = "checkpoint_prepared",
        /// The versions of one key go in several pieces of a checkpoint, where they are many.
        CutsChains = "cuts_chains",
        /// Who finishes a transaction by the votes shows it once the own vote is stable.
        FinishWaitsForLog = "finish_waits_for_log",
        /// Whether a read is stale, and which versions it missed, is told by the reader's snapshot:
        /// only versions above that. Broken, it is told by the version read, and a deletion that
        /// one replica has collected and another has not counts as missed.
        JudgedBySnapshot = "judged_by_snapshot",
        /// An update does not miss a version that it has seen, where that was applied elsewhere and
        /// waits for its turn here. (For protocols that commit in the past.)
        SeenIsNotMissed = "seen_is_not_missed",
        /// The watermark stays below what running transactions read at.
        ReadersHoldLow = "readers_hold_low",
        /// A read below the watermark is refused: its node was silent for longer than its lease.
        RefusesOldReads = "refuses_old_reads",
        /// A decision is in the log before it is acknowledged.
        LogsDecisions = "logs_decisions",
        /// What a client committed that was silent for its lease is remembered until all others
        /// have said that they are in doubt of nothing of it.
        KeepsCommitsOfSilent = "keeps_commits_of_silent",
        /// What may have been forgotten with its client is not taken up anew.
        RefusesForgotten = "refuses_forgotten",
        /// A client that asked more than once for a vote, or gave up, does not take it for a
        /// refusal that the transaction may have been forgotten.
        DoubtsForgotten = "doubts_forgotten",
        /// A client commits nothing by votes that come after it has given up: by then others may
        /// have aborted, and who refused may have forgotten that and vote once more.
        DecidesInTime = "decides_in_time",
        /// A transaction's snapshot moves only where what it has read was looked at once more.
        MovesValidated = "moves_validated",
        /// All that it has read is, at all of its levels, not at the innermost one alone.
        MovesAllLevels = "moves_all_levels",
        /// The transaction's own level is among them. Broken, the walk from the innermost level
        /// outwards ends before it, as the dissertation prints `validate` for open nesting.
        MovesOwnLevel = "moves_own_level",
        /// The outermost level with a read that has changed is undone, not the innermost such.
        UndoesOutermost = "undoes_outermost",
        /// What a level has read is its parent's once it is merged.
        MergesReads = "merges_reads",
        /// Of a level that is undone or given up no write is left.
        UndoesWrites = "undoes_writes",
        /// A look at what was read waits for locks, as reads do.
        LooksWait = "looks_wait",
        /// It pushes the repository's clock to the new snapshot, as reads do.
        LooksRaise = "looks_raise",
        /// Where every transaction is validated, those that wrote nothing are, too.
        ValidatesReaders = "validates_readers",
        /// Where reads are forwarded, what was read is compared with the newest version exactly.
        /// Broken, any version up to the snapshot will do, as TFA prints it; that too is right, but
        /// only with `looks_raise` and `reads_raise`, neither of which exact versions need.
        ComparesExactly = "compares_exactly",
        /// What is written is locked at its owner, also where it was not read.
        WritesAtOwner = "writes_at_owner",
        /// A repository that gives a key away has it no more.
        LeavesNoCopy = "leaves_no_copy",
        /// A directory takes a pointer in the place of an earlier one alone: where it has a later
        /// one, or the key, what it is told is stale.
        IgnoresStaleNews = "ignores_stale_news",
        /// A directory has a pointer in its log before it says that it knows it.
        LogsPointers = "logs_pointers",
        /// A directory whose disk was lost asks all others who owns its keys, and says of none that
        /// it is not there before they have answered.
        RebuildsDirectory = "rebuilds_directory",
        /// A value is not sent only where the copy that who asks has is of the version found.
        ChecksCopies = "checks_copies",
        /// Where a key is kept for who has lost often, younger writers of it are refused.
        YieldsToOlder = "yields_to_older",
        /// A repository that is asked to watch what was read compares that with what is there.
        WatchesCompared = "watches_compared",
        /// Where nodes remember, a session that comes from another coordinator brings what it has
        /// seen.
        SessionsBringTokens = "sessions_bring_tokens",
    }
}

/// For which locks a prepare waits, where its protocol lets prepares wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockWaits {
    /// It is refused at once where a writer holds what it read, and where waits are ordered, if all
    /// holders are younger.
    #[default]
    Ordered,
    /// It waits for whatever lock it meets, for `lock_wait` at most.
    ForAll,
}

/// What a user chooses within the family. Both are right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// For which locks a prepare waits.
    pub lock_waits: LockWaits,
    broken: Unbroken<FamilySwitch>,
}

impl Switches {
    /// Prepares wait for whatever lock they meet.
    pub fn waiting() -> Switches {
        Switches { lock_waits: LockWaits::ForAll, ..Switches::default() }
    }

    /// Whether a rule holds: it does, unless a test broke it.
    #[inline]
    pub(crate) fn keeps(&self, switch: FamilySwitch) -> bool {
        self.broken.keeps(switch)
    }
}

impl AsRef<Switches> for Switches {
    #[inline]
    fn as_ref(&self) -> &Switches {
        self
    }
}

#[cfg(feature = "sabotage")]
impl Sabotage<FamilySwitch> for Switches {
    fn set(&mut self, switch: FamilySwitch, holds: bool) {
        self.broken.set(switch, holds);
    }
}

/// What a user chooses of a protocol: within the family, and one thing of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserChoice<C> {
    /// The family's choices.
    pub family: Switches,
    /// The protocol's own.
    pub choice: C,
}

impl<C> AsRef<Switches> for UserChoice<C> {
    #[inline]
    fn as_ref(&self) -> &Switches {
        &self.family
    }
}

#[cfg(feature = "sabotage")]
impl<C> Sabotage<FamilySwitch> for UserChoice<C> {
    fn set(&mut self, switch: FamilySwitch, holds: bool) {
        self.family.set(switch, holds);
    }
}
