//! The switches of the family.

/// Switches that break the protocol, one rule each, to see the checker notice. All are true in
/// the protocol as it should be, but for `waits_for_all`, which is right either way. Two rules back
/// each other up: without `ordered_queue` or `catch_up_when_idle` nothing breaks as long as reads
/// go by proposals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A prepare is refused if a version read is no longer the newest.
    pub validate: bool,
    /// A read waits for a lock whose holder may come to lie inside the snapshot.
    pub reads_wait: bool,
    /// It tells so by the holder's proposal. Off, it goes by the paper's rule, and waits while the
    /// repository's clock is below the snapshot; that too is right, but only with `ordered_queue`
    /// and `catch_up_when_idle`, neither of which the proposals need.
    pub waits_by_proposal: bool,
    /// A prepare locks what was read, and is refused where a read key is locked by a writer.
    pub lock_reads: bool,
    /// A prepare waits for whatever lock it meets, for `lock_wait` at most. Off, it is refused at
    /// once where a writer holds what it read, and where waits are ordered, if all holders are
    /// younger. (For protocols whose prepares wait.)
    pub waits_for_all: bool,
    /// The reads of a strict transaction that writes nothing are validated as an update's are.
    pub validates_strict: bool,
    /// Transactions leave the commit queue in timestamp order.
    pub ordered_queue: bool,
    /// A prepare checks scanned ranges, and locks them.
    pub validate_scans: bool,
    /// A read pushes the repository's clock to its snapshot.
    pub reads_raise: bool,
    /// Who will change a key by a delayed action holds it as against readers as a writer does.
    pub delayed_excludes: bool,
    /// With nothing queued and only then, the clock catches up with what was heard of.
    pub catch_up_when_idle: bool,
    /// A checkpoint has the transactions that are prepared.
    pub checkpoint_prepared: bool,
    /// The versions of one key go in several pieces of a checkpoint, where they are many.
    pub cuts_chains: bool,
    /// Who finishes a transaction by the votes shows it once the own vote is stable.
    pub finish_waits_for_log: bool,
    /// Whether a read is stale, and which versions it missed, is told by the reader's snapshot:
    /// only versions above that. Off, it is told by the version read, and a deletion that one
    /// replica has collected and another has not counts as missed.
    pub judged_by_snapshot: bool,
    /// An update does not miss a version that it has seen, where that was applied elsewhere and
    /// waits for its turn here. (For protocols that commit in the past.)
    pub seen_is_not_missed: bool,
    /// The watermark stays below what running transactions read at.
    pub readers_hold_low: bool,
    /// A read below the watermark is refused: its node was silent for longer than its lease.
    pub refuses_old_reads: bool,
    /// A decision is in the log before it is acknowledged.
    pub logs_decisions: bool,
    /// What a client committed that was silent for its lease is remembered until all others have
    /// said that they are in doubt of nothing of it.
    pub keeps_commits_of_silent: bool,
    /// What may have been forgotten with its client is not taken up anew.
    pub refuses_forgotten: bool,
    /// A client that asked more than once for a vote, or gave up, does not take it for a refusal
    /// that the transaction may have been forgotten.
    pub doubts_forgotten: bool,
    /// A client commits nothing by votes that come after it has given up: by then others may have
    /// aborted, and who refused may have forgotten that and vote once more.
    pub decides_in_time: bool,
    /// Where nodes remember, a session that comes from another coordinator brings what it has seen.
    pub sessions_bring_pasts: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            validate: true,
            reads_wait: true,
            waits_by_proposal: true,
            lock_reads: true,
            waits_for_all: false,
            validates_strict: true,
            ordered_queue: true,
            validate_scans: true,
            reads_raise: true,
            delayed_excludes: true,
            catch_up_when_idle: true,
            checkpoint_prepared: true,
            cuts_chains: true,
            finish_waits_for_log: true,
            judged_by_snapshot: true,
            seen_is_not_missed: true,
            readers_hold_low: true,
            refuses_old_reads: true,
            logs_decisions: true,
            keeps_commits_of_silent: true,
            refuses_forgotten: true,
            doubts_forgotten: true,
            decides_in_time: true,
            sessions_bring_pasts: true,
        }
    }
}

impl Rules {
    /// As it should be, but prepares wait for whatever lock they meet.
    pub fn waiting() -> Rules {
        Rules { waits_for_all: true, ..Rules::default() }
    }
}
