//! What a machine does so that its node survives its process, whatever its protocol: it takes back
//! what a log and a checkpoint hold, and makes checkpoints while it works.

use super::records::DecodedRecords;
use super::{Decoding, Machine, Records};
use crate::checkpoint::{Checkpoint, Readiness};
use crate::contract::Protocol;
use crate::positions::{LogPosition, Positions};
use crate::wire::WireError;

/// A [`Machine`] as whoever keeps its log and its checkpoints sees it.
pub trait RecoverableMachine {
    /// [`Node::restore`](crate::node::Node::restore).
    ///
    /// # Errors
    /// The piece is of no checkpoint.
    fn restore(&mut self, piece: &[u8]) -> Result<(), WireError>;
    /// Decodes records of this protocol, on whatever thread.
    fn decoding(&self) -> Box<dyn Decoding>;
    /// [`Node::replay`](crate::node::Node::replay), of records one after the other. What the node
    /// would have said was said in its earlier life.
    fn replay(&mut self, records: Records);
    /// All of the log was replayed: positions count from here.
    fn end_replay(&mut self);
    /// Up to which position the node has logged.
    fn logged(&self) -> LogPosition;

    /// [`Node::begin_checkpoint`](crate::node::Node::begin_checkpoint).
    fn begin_checkpoint(&self) -> Option<Checkpoint>;
    /// [`Node::checkpoint_piece`](crate::node::Node::checkpoint_piece).
    fn checkpoint_piece(
        &self,
        checkpoint: &mut Checkpoint,
        bytes: usize,
        out: &mut Vec<u8>,
    ) -> bool;
    /// [`Node::checkpoint_readiness`](crate::node::Node::checkpoint_readiness).
    fn checkpoint_readiness(&self, checkpoint: &mut Checkpoint) -> Readiness;
}

impl<P: Protocol, N> RecoverableMachine for Machine<P, N> {
    fn restore(&mut self, piece: &[u8]) -> Result<(), WireError> {
        self.node.restore(piece, &mut self.effects)?;
        self.effects.list.clear();
        Ok(())
    }

    fn decoding(&self) -> Box<dyn Decoding> {
        Box::new(DecodedRecords::<P>::new())
    }

    fn replay(&mut self, records: Records) {
        for (role, record) in records.of::<P>() {
            self.node.replay(role, record, &mut self.effects);
        }
        self.effects.list.clear();
    }

    fn end_replay(&mut self) {
        self.effects.positions = Positions::default();
    }

    fn logged(&self) -> LogPosition {
        self.effects.positions.logged()
    }

    fn begin_checkpoint(&self) -> Option<Checkpoint> {
        self.node.begin_checkpoint(&self.effects)
    }

    fn checkpoint_piece(
        &self,
        checkpoint: &mut Checkpoint,
        bytes: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        self.node.checkpoint_piece(checkpoint, bytes, out)
    }

    fn checkpoint_readiness(&self, checkpoint: &mut Checkpoint) -> Readiness {
        self.node.checkpoint_readiness(checkpoint, &self.effects)
    }
}
