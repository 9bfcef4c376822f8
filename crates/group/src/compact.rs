//! Dropping decided entries: a member takes a checkpoint of its participant, piece by piece, and
//! lets it stand for the entries up to where it began.
//!
//! The checkpoint may hold effects of entries up to where its last piece was taken. So it counts
//! only once these are decided; and the note of that stands in the member's log before the
//! checkpoint does, so whoever restores it knows at least so many entries as decided, and replays
//! them before it does anything else.

use muesli_core::{Cursor, Participant, Protocol};

use crate::ledger::Entry;

/// Bytes of a piece.
const PIECE_BYTES: usize = 32 << 10;
/// Pieces taken at a time.
const PIECES_A_TICK: usize = 4;

/// A checkpoint under way.
#[derive(Clone, Debug)]
pub(crate) struct Compacting {
    covers: u64,
    cursor: Cursor,
    pieces: Vec<Entry>,
    /// Once all pieces were taken: what must be decided.
    needs: Option<u64>,
}

impl Compacting {
    /// Begins a checkpoint after `covers` entries; `None`: the protocol has none.
    pub(crate) fn begin<P: Protocol>(inner: &P::Participant, covers: u64) -> Option<Compacting> {
        let cursor = inner.begin_checkpoint()?;
        Some(Compacting { covers, cursor, pieces: Vec::new(), needs: None })
    }

    /// Takes some pieces of a participant that has seen `applied` entries.
    pub(crate) fn go_on<P: Protocol>(&mut self, inner: &P::Participant, applied: u64) {
        for _ in 0..PIECES_A_TICK {
            let mut piece = Vec::new();
            if self.needs.is_some() {
                return;
            }
            if inner.checkpoint_piece(&mut self.cursor, PIECE_BYTES, &mut piece) {
                self.pieces.push(Entry::from(piece));
            } else {
                self.needs = Some(applied);
            }
        }
    }

    /// What it covers and its pieces, if it is whole and `decided` entries are enough for it.
    pub(crate) fn done(&mut self, decided: u64) -> Option<(u64, Vec<Entry>)> {
        let ready = self.needs.is_some_and(|needs| needs <= decided);
        ready.then(|| (self.covers, std::mem::take(&mut self.pieces)))
    }
}
