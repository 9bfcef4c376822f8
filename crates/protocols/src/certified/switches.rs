//! Which broadcast orders commits, who reads without it, and what tests can break.

use muesli_broadcast::multipaxos::PlacedLeader;
use muesli_broadcast::{BroadcastChoice, MemberId, epaxos, generalized, m2paxos, pob};
use muesli_core::sabotage::{Broken, Sabotage, breakable};

use super::message::objects::WholeObject;

breakable! {
    /// What certification keeps to. The paper prints other ones in some of these places.
    enum CertifiedSwitch {
        /// A commit whose reads are not the newest is refused.
        Validates = "certification_validates",
        /// A range that has changed is noticed.
        ValidatesRanges = "certification_validates_ranges",
        /// All that a transaction reads is of one moment of its site. Broken: the newest.
        ReadsAtSnapshot = "certification_reads_at_snapshot",
        /// Who only reads is certified as well, where commits have a partial order.
        BroadcastsReads = "certification_broadcasts_reads",
        /// Versions are kept for as long as somebody may read them.
        KeepsReaders = "certification_keeps_readers",
        /// An absence that was read is noticed to be another one, though the key be absent again.
        CountsDeletions = "certification_counts_deletions",
        /// Who waits for a change is told of one that came before the site knew of it.
        ComparesWatches = "certification_compares_watches",
        /// What becomes of several commands is found out together only where none conflicts with
        /// another.
        DecidesApart = "certification_decides_apart",
        /// A cut has what was committed when it was proposed. Broken: when it was delivered.
        CountsCutsFromProposal = "certification_counts_cuts_from_proposal",
        /// Who may be stale reads at a cut. Broken: at present.
        ReadsAtCuts = "certification_reads_at_cuts",
        /// A session reads at no cut that lies before what it has seen.
        CutsFollowSessions = "certification_cuts_follow_sessions",
        /// Commits that are delivered after a cut have larger counters than those before it.
        NumbersBehindCuts = "certification_numbers_behind_cuts",
        /// A site that is asked about a commit of another one, and does not know it, is silent.
        AnswersWhatItKnows = "certification_answers_what_it_knows",
        /// A commit that was asked of a member of a site is not proposed by the next one.
        NamesMembers = "certification_names_members",
        /// Who keeps losing holds what it has read, so that others do not overwrite it.
        LetsLosersThrough = "certification_lets_losers_through",
        /// A command with a claim has a place among all commands of each of its objects. Broken:
        /// among those alone that write what it reads.
        OrdersLosers = "certification_orders_losers",
    }
}

/// Which transactions that only read are answered by their site alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LocalReads {
    /// None: they are certified as others are, and so all have one order.
    #[default]
    None,
    /// All, as all sites apply commits in one order: what a site has applied is a beginning of it.
    InOneOrder,
    /// All, though two sites may have applied commits that do not conflict in different orders.
    InAnyOrder,
}

/// What its users choose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// What orders commits.
    pub broadcast: BroadcastChoice,
    /// Who reads without that.
    pub local_reads: LocalReads,
    broken: Broken<CertifiedSwitch>,
}

impl Switches {
    /// Ordered by this broadcast.
    pub fn ordered_by(broadcast: BroadcastChoice) -> Switches {
        Switches { broadcast, ..Switches::default() }
    }

    /// Alvin, with decisions at once.
    pub fn alvin_fast() -> Switches {
        Switches::ordered_by(BroadcastChoice::Pob(pob::Switches::fast()))
    }

    /// Alvin for extended update serializability.
    pub fn alvin_eus() -> Switches {
        Switches { local_reads: LocalReads::InAnyOrder, ..Switches::default() }
    }

    /// Ordered by EPaxos.
    pub fn epaxos() -> Switches {
        Switches::ordered_by(BroadcastChoice::Epaxos(epaxos::Switches::default()))
    }

    /// Ordered by Generalized Paxos, whose leader is placed at the first site.
    pub fn generalized() -> Switches {
        let leader = generalized::Switches::led_by(MemberId(0));
        Switches::ordered_by(BroadcastChoice::Generalized(leader))
    }

    /// Ordered by M²Paxos.
    pub fn m2paxos() -> Switches {
        Switches::ordered_by(BroadcastChoice::M2Paxos(m2paxos::Switches::default()))
    }

    /// Ordered by Multi-Paxos, whose leader is placed at the first site.
    pub fn multipaxos() -> Switches {
        let leader = PlacedLeader(MemberId(0));
        let ordered = Switches::ordered_by(BroadcastChoice::MultiPaxos(leader));
        Switches { local_reads: LocalReads::InOneOrder, ..ordered }
    }

    /// Whether commands may touch everything.
    pub(super) fn whole_object(&self) -> WholeObject {
        match self.broadcast {
            BroadcastChoice::M2Paxos(_)
            | BroadcastChoice::BoundedByMultiPaxos(_)
            | BroadcastChoice::BoundedByPob(_)
            | BroadcastChoice::BoundedByEpaxos(_)
            | BroadcastChoice::BoundedByGeneralized(_) => WholeObject::IsNone,
            BroadcastChoice::Pob(_)
            | BroadcastChoice::Epaxos(_)
            | BroadcastChoice::Generalized(_)
            | BroadcastChoice::MultiPaxos(_) => WholeObject::IsAnObject,
        }
    }

    /// Whether sites can propose cuts.
    pub(super) fn has_cuts(&self) -> bool {
        self.whole_object() == WholeObject::IsAnObject
    }

    pub(super) fn keeps(&self, switch: CertifiedSwitch) -> bool {
        self.broken.keeps(switch)
    }
}

impl Sabotage<CertifiedSwitch> for Switches {
    fn set(&mut self, switch: CertifiedSwitch, holds: bool) {
        self.broken.set(switch, holds);
    }
}
