//! The checkpoint of a host: begun when the world says so, taken a piece a turn, published once the
//! log is stable as far as its pieces know it.

use muesli_core::{Checkpoint, Readiness};

use super::Host;
use crate::hardware::disk::StoredCheckpoint;
use crate::random::Random;

/// A checkpoint that is not on the disk yet.
#[derive(Debug)]
pub(in crate::world) struct HostCheckpoint {
    checkpoint: Checkpoint,
    pieces: Vec<Vec<u8>>,
    piece_bytes: usize,
    /// All pieces were taken.
    complete: bool,
}

/// Pieces are drawn to have at most so many bytes, few enough that many turns come between them.
const PIECE_BYTES_MOST: u64 = 600;

impl Host {
    /// Begins one, if the node is up and none is under way. Returns up to where it covers the log.
    pub(in crate::world) fn begin_checkpoint(&mut self, random: &mut Random) -> Option<u64> {
        let machine = self.machine.as_ref()?;
        if self.checkpoint.is_some() {
            return None;
        }
        let checkpoint = machine.begin_checkpoint()?;
        let covers = checkpoint.covers().0;
        let piece_bytes = random.between(1, PIECE_BYTES_MOST) as usize;
        self.checkpoint =
            Some(HostCheckpoint { checkpoint, pieces: Vec::new(), piece_bytes, complete: false });
        Some(covers)
    }

    /// Takes the next piece. Returns whether there is more to take.
    pub(in crate::world) fn go_on_with_checkpoint(&mut self) -> bool {
        let Some(mut under_way) = self.checkpoint.take() else { return false };
        let more = self.take_piece(&mut under_way);
        self.checkpoint = Some(under_way);
        if !more {
            self.publish_checkpoint();
        }
        more
    }

    fn take_piece(&mut self, under_way: &mut HostCheckpoint) -> bool {
        let Some(machine) = &self.machine else { return false };
        let HostCheckpoint { checkpoint, pieces, piece_bytes, complete } = under_way;
        let mut piece = Vec::new();
        if !*complete && machine.checkpoint_piece(checkpoint, *piece_bytes, &mut piece) {
            self.outside.load.bytes += piece.len() as u64;
            self.outside.longest.note_piece(piece.len() as u64);
            pieces.push(piece);
            return true;
        }
        *complete = true;
        false
    }

    /// Publishes the checkpoint if it has all pieces, its participants are ready and the log is
    /// stable far enough; gives it up if it is void.
    pub(in crate::world) fn publish_checkpoint(&mut self) {
        let stable = self.stable();
        let Some(mut under_way) = self.checkpoint.take_if(|it| it.complete) else { return };
        let Some(machine) = &self.machine else { return };
        match machine.checkpoint_readiness(&mut under_way.checkpoint) {
            Readiness::Void => return,
            Readiness::Waits => return self.checkpoint = Some(under_way),
            Readiness::Ready => self.checkpoint = Some(under_way),
        }
        let ready =
            |it: &HostCheckpoint| it.checkpoint.needs().is_some_and(|needs| needs <= stable);
        let Some(done) = self.checkpoint.take_if(|it| ready(it)) else { return };
        let covers = self.log_base + done.checkpoint.covers().0 as usize;
        let covers = (covers + usize::from(self.cuts_too_much)).min(self.disk.stable());
        let cut = self.disk.publish(StoredCheckpoint { covers, pieces: done.pieces });
        self.note_published(cut);
    }
}
