//! Bumper (Diegues and Romano: transactional replication that is sheltered from contention):
//! distributed time-warping over SCORe, and delayed actions.
//!
//! This page is about time-warping; [delayed actions](crate::two_phase::delayed) are a room of the
//! family, which this protocol turns on.
//!
//! # The problem
//! SCORe, like most, aborts an update when a version that it read is no longer the newest at its
//! commit. Mostly that is too strict: an update that missed a write can be put *before* the writer
//! in the serial order, as readers are all the time, if nobody has seen that it was not there.
//!
//! # The idea
//! An update that missed versions commits in the past: its writes are tagged with the earliest of
//! them, and it lies just before whoever wrote that one. So that this is noticed where it must not
//! be, reads leave *read timestamps*: a key's read timestamp is the latest place of anybody who
//! read its newest version. A repository that votes says which version was missed there and up to
//! where the keys to be written have been written or read (the *lower bound*); from all votes
//! together, the place is the earliest miss, and it is free if it lies above the lower bound.
//!
//! # Why it is safe
//! Give everybody a place: an update its version, a reader its snapshot, after the updates there.
//! * Whoever reads a version lies after its writer: an update's place is above its snapshot.
//! * Versions of a key are in the order of their tags: the lower bound is at least the version
//!   replaced, and at least the watermark, below which a deletion and read timestamps may be
//!   forgotten.
//! * What an update missed lies above its snapshot. A replica may hold a deletion at or below that
//!   snapshot which the replica that was read has collected, or the other way round: neither was
//!   missed, so a voter goes by the snapshot and never by the version read. Counted as missed, such
//!   a deletion would put the update below its own snapshot, before updates that it saw.
//! * A *reader* of a version at `s` lies before whoever replaces it, and may not find the key
//!   locked by somebody who could end at or below `s`: then it waits ([`Scalar::blocks`]). Else it
//!   has left its read timestamp `s` when the replacing update prepares, which then ends above.
//! * An *update* that missed a version lies at or before it. Where the places are one and the
//!   same, it goes before: among updates at one place each misses only such as were decided
//!   before it, so there is no circle. A version that comes after it prepared is written by an
//!   update that waited for its lock and found its read timestamp, left at its place as it was
//!   applied.
//!
//! # Deviations
//! The paper's algorithm is not serializable; see `docs/inside/protocols/bumper.md` for histories.
//! Three corrections are needed, each a [`BumperSwitch`]:
//! * *Distinct readers.* A key has one pair (read timestamp, reader) in the paper, and the pair of
//!   a transaction that reads a key overwrites who read it before.
//! * *Snapshots.* A read timestamp is the repository's last commit in the paper, taken before the
//!   reader's snapshot is known, which may be far above it.
//! * *Updates.* Updates that read a key lie at their commit, far above the read timestamp of their
//!   read.
//!
//! And three changes for more:
//! * Places are compared, not flags: the paper refuses an update that must lie in the past
//!   whenever a read timestamp is above its *snapshot*, and aborts whoever missed a version that
//!   was itself put into the past. Neither is needed once places are compared
//!   ([`Switches::printed`] brings them back).
//! * Blind writes are allowed: the lower bound has the version that they replace.
//! * A read waits for a locked key only while its holder may come to lie inside the snapshot, not
//!   for every lock.

use muesli_core::parts::votes::Votes;
use muesli_core::{Decision, Isolation, NoService, RepositoryId, Timestamp};

use crate::two_phase::policy::{InstallPolicy, Policies, WaitPolicy};
use crate::two_phase::{
    DelayedTimeWarp, Reader, Scalar, ScalarTime, TwoPhase, ValidationResult, Variant,
};

mod place;
mod state;
mod switches;

pub use place::{BumperPlace, TimeWarpVote};
pub use state::ProtocolState;
use switches::Delaying;
pub use switches::{BumperSwitch, Switches};

/// The protocol.
pub type Bumper = TwoPhase<TimeWarp>;

/// Its way: updates that missed something may lie in the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeWarp {}

impl Variant for TimeWarp {
    const NAME: &'static str = "bumper";
    const POLICIES: Policies = Policies {
        waiting: WaitPolicy::ForOlder,
        installing: InstallPolicy::AtSerializationTimestamp,
        ..Policies::SCORE
    };
    const ISOLATION: Isolation = Isolation::Serializable;
    type Service = NoService;
    type Switches = Switches;
    type ProtocolState = ProtocolState;
    type Reader = Reader;
    type Snapshot = Timestamp;
    type Yes = TimeWarpVote;
    type Place = BumperPlace;
    type Time = ScalarTime;

    fn tolerates_stale_reads(switches: &Switches) -> bool {
        switches.time_warps()
    }

    fn orders_waits(switches: &Switches) -> bool {
        switches.time_warps() && !switches.by_flags()
    }

    fn delays_actions(switches: &Switches) -> bool {
        switches.delaying != Delaying::Off
    }

    fn delayed_time_warp(switches: &Switches) -> DelayedTimeWarp {
        match (
            switches.delaying == Delaying::TimeWarped,
            switches.keeps(BumperSwitch::AloneTimeWarped),
            switches.keeps(BumperSwitch::BelowProposals),
        ) {
            (false, ..) => DelayedTimeWarp::Never,
            (true, true, true) => DelayedTimeWarp::Safely,
            (true, false, _) => DelayedTimeWarp::BesideOthers,
            (true, true, false) => DelayedTimeWarp::AboveProposals,
        }
    }
}

impl Scalar for TimeWarp {
    fn blocks(
        protocol_state: &ProtocolState,
        held: Timestamp,
        yes: TimeWarpVote,
        snapshot: Timestamp,
    ) -> bool {
        protocol_state.blocks(held, yes, snapshot)
    }

    fn yes(apply_order: Timestamp, validation: &ValidationResult) -> TimeWarpVote {
        let missed = validation.missed.unwrap_or(Timestamp::MAX);
        let upper_bound = if validation.below_proposal { apply_order } else { Timestamp::MAX };
        TimeWarpVote { apply_order, missed, lower_bound: validation.lower_bound, upper_bound }
    }

    fn decide(votes: &Votes<RepositoryId, TimeWarpVote>) -> Decision<BumperPlace> {
        assert!(votes.is_complete(), "votes decide once all are there");
        let all = votes.so_far().copied().reduce(TimeWarpVote::and);
        all.expect("there is a vote at least").decision()
    }

    fn decide_alone(claim: TimeWarpVote) -> Decision<BumperPlace> {
        claim.decision()
    }

    fn version(place: BumperPlace) -> Timestamp {
        place.version
    }

    /// Who missed something here lies before it, and above whatever keeps it from the past; and
    /// who lies in the past has missed something somewhere.
    fn may_decide(
        TimeWarpVote { missed, lower_bound, upper_bound, .. }: TimeWarpVote,
        place: BumperPlace,
    ) -> bool {
        let BumperPlace { apply_order, version } = place;
        let now = version == apply_order && missed == Timestamp::MAX;
        now || version <= missed && version > lower_bound && version < upper_bound
    }
}
