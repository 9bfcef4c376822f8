//! The state that a site takes from another one, beside its own until all has come.

use muesli_core::parts::spaces::Spaces;
use muesli_core::wire::Reader;
use muesli_core::{Catalog, Nanos, Rejection, Settings, SmallBytes, Wire as _, WireError};

use crate::certified::Context;
use crate::certified::participant::CertifiedSite;
use crate::certified::participant::checkpoint::{kind, restore_ends};
use crate::certified::participant::ends::SiteEnds;
use crate::certified::participant::recent::RecentCommits;
use crate::certified::state::claimed::{ClaimTable, ClaimedObject};
use crate::certified::state::cuts::CutOrder;
use crate::certified::state::objects::{CertifiedObjects, ObjectMemory};
use crate::certified::state::readers::SiteReaders;
use crate::client_quota::ClientQuota;

/// What has come so far.
#[derive(Clone, Debug)]
pub(in crate::certified::participant) struct TakenState {
    pub(super) spaces: Spaces,
    objects: CertifiedObjects,
    claimed: ClaimTable,
    pub(super) clock: u64,
    pub(super) counter: u64,
    cuts: CutOrder,
    ends: SiteEnds,
}

impl TakenState {
    /// Nothing has come yet.
    pub(super) fn begun(settings: &Settings) -> TakenState {
        let spaces = Spaces::new(settings.hash_seed).recording_collected(settings.record_collected);
        let (objects, claimed, clock, counter) = Default::default();
        let (cuts, ends) = (CutOrder::default(), SiteEnds::default());
        TakenState { spaces, objects, claimed, clock, counter, cuts, ends }
    }

    /// Takes a piece.
    ///
    /// # Errors
    /// It is none, or of a space that this node does not know yet.
    pub(super) fn take(
        &mut self,
        piece: &SmallBytes,
        (catalog, now): (&Catalog, Nanos),
    ) -> Result<(), WireError> {
        let mut input = Reader::new(piece.as_slice());
        if piece.is_empty() {
            return Ok(()); // The last one may have nothing.
        }
        match u8::decode(&mut input)? {
            kind::COUNTERS => {
                let ((clock, counter), _) = <((u64, u64), u64)>::decode(&mut input)?;
                (self.clock, self.counter) = (clock, self.counter.max(counter));
            }
            kind::OBJECTS => {
                for (object, memory) in Vec::<(u64, ObjectMemory)>::decode(&mut input)? {
                    self.objects.restore(object, memory);
                    self.counter = self.counter.max(memory.last);
                }
            }
            kind::CLAIMED => {
                for (object, one) in Vec::<(u64, ClaimedObject)>::decode(&mut input)? {
                    if !one.is_possible() {
                        let what = "claim on an object";
                        return Err(WireError::Variant { what, at: 0, found: object });
                    }
                    self.claimed.restore(object, one);
                }
            }
            kind::CUTS => {
                self.cuts = CutOrder::decode(&mut input)?;
                if !self.cuts.is_possible() {
                    let (what, found) = ("order of cuts", self.cuts.last());
                    return Err(WireError::Variant { what, at: 0, found });
                }
            }
            kind::COORDINATORS | kind::ENDED | kind::FORGOTTEN => {
                restore_ends(&mut self.ends, piece.as_slice()[0], &mut input, now)?;
            }
            kind::CHAINS => self.spaces.restore_chains(&mut input, catalog)?,
            other => {
                let what = "piece of a state";
                return Err(WireError::Variant { what, at: 0, found: other.into() });
            }
        }
        input.finish()
    }
}

/// Whether a message's piece can be taken.
///
/// # Errors
/// It is none, or of a space that this node does not know yet.
pub(super) fn judge_piece(piece: &SmallBytes, catalog: &Catalog) -> Result<(), Rejection> {
    let mut taken = TakenState::begun(&Settings::default());
    taken.take(piece, (catalog, Nanos(0))).map_err(|_| Rejection::Range)
}

impl CertifiedSite {
    /// Another site begins to give its state.
    pub(super) fn begin_taking(&mut self, cx: &Context<'_>) {
        self.taken = Some(TakenState::begun(cx.settings));
    }

    pub(super) fn take_piece(&mut self, piece: &SmallBytes, cx: &Context<'_>) {
        let taken = self.taken.as_mut().expect("it has begun").take(piece, (cx.catalog, cx.now()));
        taken.unwrap_or_else(|error| panic!("a piece was judged, and is none: {error}"));
    }

    /// All has come: it takes the place of what was there.
    pub(super) fn install(&mut self, cx: &Context<'_>) {
        let incarnation = self.incarnation.max(self.renamed.map_or(0, |name| name.0));
        let taken = self.taken.take().expect("it has begun");
        let TakenState { spaces, objects, claimed, clock, counter, cuts, ends } = taken;
        assert!(self.undecided.is_empty(), "commands of before are not decided");
        (self.spaces, self.objects, self.claimed) = (spaces, objects, claimed);
        (self.clock, self.counter) = (clock, counter);
        let before = std::mem::replace(&mut self.ends, ends);
        self.ends.replace(before, ClientQuota::of(cx.settings), cx.now());
        self.recent = RecentCommits::default();
        self.readers = SiteReaders::default();
        self.cuts.restore(cuts);
        self.given.clear();
        // Snapshots of before have clocks that mean nothing here.
        (self.incarnation, self.is_incarnation_known) = (incarnation, false);
        self.forgotten = self.clock;
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::NodeId;

    use super::*;

    #[test]
    fn an_order_of_cuts_that_no_site_comes_to_is_refused() {
        let catalog = Catalog::new(&[NodeId(0)], 1, &[NodeId(0)]).unwrap();
        let judged = |decided: u64, last: u64| {
            let mut piece = vec![kind::CUTS];
            (decided, last).encode(&mut piece);
            judge_piece(&SmallBytes::from(piece), &catalog)
        };
        assert_eq!([judged(7, 7), judged(7, 3)], [Ok(()), Ok(())]);
        assert_eq!(judged(7, 8), Err(Rejection::Range), "a cut behind more than all commits");
        assert_eq!(judged(u64::MAX, 3), Err(Rejection::Range), "no counter is left");
    }
}
