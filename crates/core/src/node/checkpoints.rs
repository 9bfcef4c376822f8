//! Records and checkpoints of a node's roles: what it was in its earlier life.

use super::Node;
use super::roles_here::{context, find, find_mut, logged_role};
use crate::checkpoint::{Checkpoint, Cursor, Readiness};
use crate::contract::{Context, Effects, LoggedRole, Protocol};
use crate::roles::{Address, Role};
use crate::wire::{Reader, Wire, WireError};

impl<P: Protocol> Node<P> {
    /// Applies a record of an earlier life; call in log order, before [`start`](Self::start). The
    /// record of a role that does not live here is passed over.
    pub fn replay(&mut self, role: impl Into<Role>, record: P::Record, effects: &mut Effects<P>) {
        let role = role.into();
        let mut cx = context!(self, role, effects);
        logged_role!(&mut self, role, |it| it.replay(record, &mut cx));
    }

    /// Begins a checkpoint of what this node's roles are after everything logged so far. `None`:
    /// the protocol has no checkpoints.
    pub fn begin_checkpoint(&self, effects: &Effects<P>) -> Option<Checkpoint> {
        let participants = self
            .participants
            .iter()
            .map(|(id, it)| it.begin_checkpoint().map(|cursor| (Role::Repository(*id), cursor)));
        let services = self
            .services
            .iter()
            .map(|(id, it)| it.begin_checkpoint().map(|cursor| (Role::Service(*id), cursor)));
        let roles = participants.chain(services).collect::<Option<Vec<_>>>()?;
        let covers = effects.positions.logged();
        Some(Checkpoint { covers, needs: None, roles, complete: Vec::new() })
    }

    /// Appends the next piece of a checkpoint to `out`, of about `bytes` bytes. False, and nothing
    /// is appended: there was no more, and [`checkpoint_readiness`](Self::checkpoint_readiness) is
    /// to be asked for.
    pub fn checkpoint_piece(
        &self,
        checkpoint: &mut Checkpoint,
        bytes: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let start = out.len();
        while let Some((role, cursor)) = checkpoint.roles.first_mut() {
            role.encode(out);
            let more = logged_role!(&self, *role, |it| it.checkpoint_piece(cursor, bytes, out));
            if more == Some(true) {
                return true;
            }
            out.truncate(start);
            checkpoint.complete.push(checkpoint.roles.remove(0));
        }
        false
    }

    /// Whether a checkpoint all of whose pieces were taken may be published. Once it is ready,
    /// [`Checkpoint::needs`] says how far the log must be stable.
    pub fn checkpoint_readiness(
        &self,
        checkpoint: &mut Checkpoint,
        effects: &Effects<P>,
    ) -> Readiness {
        assert!(checkpoint.roles.is_empty(), "a checkpoint with pieces left");
        if checkpoint.needs.is_some() {
            return Readiness::Ready;
        }
        let readiness = |(role, cursor): &(Role, Cursor)| {
            logged_role!(&self, *role, |it| it.checkpoint_readiness(cursor))
                .unwrap_or(Readiness::Void)
        };
        let each: Vec<_> = checkpoint.complete.iter().map(readiness).collect();
        if each.contains(&Readiness::Void) {
            return Readiness::Void;
        }
        if each.contains(&Readiness::Waits) {
            return Readiness::Waits;
        }
        checkpoint.needs = Some(effects.positions.logged());
        Readiness::Ready
    }

    /// Takes a piece of a checkpoint; call in their order, before [`replay`](Self::replay). A piece
    /// of a role that does not live here is passed over.
    ///
    /// # Errors
    /// The piece is of no checkpoint. Any bytes may be given.
    pub fn restore(&mut self, piece: &[u8], effects: &mut Effects<P>) -> Result<(), WireError> {
        let mut input = Reader::new(piece);
        let role = Role::decode(&mut input)?;
        let mut cx = context!(self, role, effects);
        let piece = input.take(input.left())?;
        logged_role!(&mut self, role, |it| it.restore(piece, &mut cx)).unwrap_or(Ok(()))
    }
}
