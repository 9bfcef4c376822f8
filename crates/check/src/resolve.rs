//! From recorded operations to places in version chains.
//!
//! Both kinds of histories end here in the same shape: per key a chain of committed writers
//! (place 0 is the initial version), per transaction the places it read, and the findings about
//! reads that fit no place. Everything after this module knows neither version ids nor lists.

mod append;
mod fate;
mod history_walk;
mod lists;
mod marks;
mod reads;
mod replicas;
mod scans;
mod versions;

use crate::finding::Findings;
use crate::history::{History, KeyId, Kind, TxnIndex, VersionId};

/// A place in the chain of a key: 0 the initial version, `p` the `p`-th committed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChainPosition {
    pub(crate) key: KeyId,
    pub(crate) position: u32,
}

/// What a link of a chain is called in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    Version(VersionId),
    Element(u32),
}

/// One committed version in the chain of its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) writer: TxnIndex,
    pub(crate) label: Label,
}

/// The chains of all keys, one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chains {
    /// Where the chain of each key starts in `links`; one entry more than there are keys.
    starts: Vec<u32>,
    links: Vec<Link>,
}

impl Chains {
    pub(crate) fn keys(&self) -> impl Iterator<Item = KeyId> + use<> {
        (0..self.starts.len().saturating_sub(1) as u32).map(KeyId)
    }

    pub(crate) fn of(&self, key: KeyId) -> &[Link] {
        let key = key.index();
        &self.links[self.starts[key] as usize..self.starts[key + 1] as usize]
    }

    /// The link at a place; `None` for place 0 and beyond the end.
    pub(crate) fn link(&self, place: ChainPosition) -> Option<&Link> {
        self.of(place.key).get((place.position as usize).checked_sub(1)?)
    }

    /// The link after a place.
    pub(crate) fn next(&self, place: ChainPosition) -> Option<&Link> {
        self.of(place.key).get(place.position as usize)
    }
}

/// The places each transaction read, one transaction after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlacedReads {
    starts: Vec<u32>,
    places: Vec<ChainPosition>,
}

impl PlacedReads {
    pub(crate) fn of(&self, txn: TxnIndex) -> &[ChainPosition] {
        let txn = txn.index();
        let end = self.starts.get(txn + 1).map_or(self.places.len(), |start| *start as usize);
        &self.places[self.starts[txn] as usize..end]
    }
}

/// The initial version of a whole range of keys, read by a scan: `range_keys[low..high]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RangeRead {
    pub(crate) reader: TxnIndex,
    pub(crate) low: u32,
    pub(crate) high: u32,
}

/// Committed appends to a key that no read observed: they come after the chain, in any order.
#[derive(Clone, Debug)]
pub(crate) struct ChainTail {
    pub(crate) key: KeyId,
    pub(crate) writers: Vec<TxnIndex>,
}

/// A history with every read and write in its place.
#[derive(Debug)]
pub(crate) struct Resolved<'h> {
    pub(crate) history: &'h History,
    /// Whether each transaction counts as committed.
    pub(crate) committed: Vec<bool>,
    /// Whether each transaction counts as committed and has a write.
    pub(crate) update: Vec<bool>,
    pub(crate) chains: Chains,
    pub(crate) reads: PlacedReads,
    /// The keys with at least one committed version, in key order; filled if there are scans.
    pub(crate) range_keys: Vec<KeyId>,
    pub(crate) range_reads: Vec<RangeRead>,
    pub(crate) tails: Vec<ChainTail>,
    pub(crate) findings: Findings,
}

impl<'h> Resolved<'h> {
    /// What both kinds of histories have; nothing of scans, and no tails.
    fn of(
        history: &'h History,
        committed: Vec<bool>,
        chains: Chains,
        (reads, findings): (PlacedReads, Findings),
    ) -> Self {
        let update = fate::updates(history, &committed);
        let (range_keys, range_reads, tails) = (Vec::new(), Vec::new(), Vec::new());
        Resolved {
            history,
            committed,
            update,
            chains,
            reads,
            range_keys,
            range_reads,
            tails,
            findings,
        }
    }

    pub(crate) fn new(history: &'h History) -> Self {
        match history.kind() {
            Kind::Version => reads::resolve(history),
            Kind::Append => append::resolve(history),
        }
    }

    pub(crate) fn show(&self, label: Label) -> String {
        match label {
            Label::Version(version) => self.history.show_version(version),
            Label::Element(element) => {
                self.history.show_atom(self.history.elements[element as usize])
            }
        }
    }

    /// The name of the version at a place: 0 for the initial one.
    pub(crate) fn show_place(&self, place: ChainPosition) -> String {
        self.chains.link(place).map_or_else(|| "0".to_owned(), |link| self.show(link.label))
    }
}
