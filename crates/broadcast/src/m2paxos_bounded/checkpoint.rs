//! Checkpoints of a member: what it knows of objects, the order of requests, and the grants that
//! are open, which name commands of the first.

use muesli_core::checkpoint::{HEAD_PIECE_BYTES, pieces};
use muesli_core::wire::{Wire, WireError};
use muesli_core::{Nanos, wire_struct};

use super::message::FrozenReport;
use super::{M2PaxosBounded, OrdersOwnership};
use crate::broadcast::Broadcast as _;
use crate::command::{CommandId, MemberId};
use crate::member::checkpoint::{CheckpointError, holds, opened, sealed};

/// A grant that is open.
#[derive(Clone, Debug)]
struct OpenGrant {
    index: u32,
    owner: MemberId,
    id: CommandId,
}

/// What of a checkpoint has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct RestoredObjects {
    objects: bool,
    order: bool,
    grants: u64,
}

/// What comes last.
#[derive(Clone, Debug)]
struct GrantsEnd {
    /// The number of the last grant.
    last: u32,
    /// So many are open.
    open: u64,
    /// So many cuts were made.
    cuts: u64,
    /// The command that the last one was made for.
    everything: Option<CommandId>,
    /// Commands that wait for a cut, who has said all for the first one, and so many parts of that.
    uncut: Vec<CommandId>,
    complete: Vec<MemberId>,
    parts: u64,
}

/// The kinds of pieces, in the order in which they come.
const OBJECTS: u8 = 0;
const ORDER: u8 = 1;
const GRANTS: u8 = 2;
const FROZEN: u8 = 3;
const END: u8 = 4;

impl<B: OrdersOwnership> M2PaxosBounded<B> {
    pub(super) fn pieces(&self) -> impl Iterator<Item = Vec<u8>> {
        let with = |kind: u8| move |inner: Vec<u8>| [vec![kind], inner].concat();
        let objects = self.objects.checkpoint().map(with(OBJECTS));
        let order = self.order.checkpoint().map(with(ORDER));
        let open = self.objects.open_grants();
        let open = open.map(|(index, owner, id)| OpenGrant { index, owner, id });
        let grants = pieces(vec![GRANTS], open, HEAD_PIECE_BYTES);
        let open = self.objects.open_grants().count() as u64;
        let parts = pieces(vec![FROZEN], self.closing.parts().cloned(), HEAD_PIECE_BYTES);
        let (uncut, complete) = self.closing.head();
        let end = GrantsEnd {
            last: self.objects.granted(),
            open,
            cuts: self.cuts,
            everything: self.objects.last_cut(),
            uncut,
            complete,
            parts: self.closing.parts().count() as u64,
        };
        let end = std::iter::once(muesli_core::checkpoint::piece(END, &end));
        objects.chain(order).chain(grants).chain(parts).chain(end).map(sealed)
    }

    pub(super) fn take_piece(&mut self, piece: &[u8], now: Nanos) -> Result<bool, CheckpointError> {
        let bytes = opened(piece)?;
        let restoring = self.restoring.get_or_insert_default();
        match bytes.split_first() {
            Some((&OBJECTS, inner)) if !restoring.objects => {
                restoring.objects = self.objects.restore(inner, now)?;
            }
            Some((&ORDER, inner)) if !restoring.order => {
                restoring.order = self.order.restore(inner, now)?;
            }
            Some((&GRANTS, grants)) if restoring.objects => {
                for grant in Vec::<OpenGrant>::decode_all(grants)? {
                    self.take_grant(&grant)?;
                }
            }
            Some((&FROZEN, parts)) if restoring.objects => {
                for report in Vec::<FrozenReport>::decode_all(parts)? {
                    let is_sound = self.objects.is_report(&report.content, report.member);
                    holds(is_sound && report.part < report.parts, "a part that cannot be")?;
                    self.closing.take(report);
                }
            }
            Some((&END, end)) if restoring.objects && restoring.order => {
                return self.finish_restore(&GrantsEnd::decode_all(end)?);
            }
            other => {
                let found = other.map_or(0, |(kind, _)| *kind);
                return Err(WireError::no_variant("piece of a checkpoint", 0, found).into());
            }
        }
        Ok(false)
    }

    fn take_grant(&mut self, grant: &OpenGrant) -> Result<(), CheckpointError> {
        let OpenGrant { index, owner, id } = *grant;
        let before = self.objects.open_grants().last();
        holds(before.is_none_or(|(before, ..)| before < index), "grants in another order")?;
        self.objects.names().member(owner)?;
        self.objects.open_grant(index, owner, id);
        let is_open = self.objects.open_grants().last().is_some_and(|(it, ..)| it == index);
        holds(is_open, "a grant of a command that is over")?;
        self.restoring.iter_mut().for_each(|restoring| restoring.grants += 1);
        Ok(())
    }

    fn finish_restore(&mut self, end: &GrantsEnd) -> Result<bool, CheckpointError> {
        let found = self.restoring.take().map_or(0, |restoring| restoring.grants);
        if found != end.open {
            return Err(CheckpointError::Incomplete { expected: end.open, found });
        }
        let last = self.objects.open_grants().last().map_or(0, |(index, ..)| index);
        holds(last <= end.last, "a grant beyond the last one")?;
        let found = self.closing.parts().count() as u64;
        if found != end.parts {
            return Err(CheckpointError::Incomplete { expected: end.parts, found });
        }
        for id in &end.uncut {
            holds(self.objects.is_uncut(*id), "a command that waits for no cut")?;
        }
        holds(end.complete.len() < self.objects.majority(), "a cut that was not made")?;
        holds(self.closing.are_complete(&end.complete), "a part that is missing")?;
        self.closing.take_head(end.uncut.clone(), end.complete.clone());
        self.objects.freeze(!end.uncut.is_empty());
        self.objects.take_granted(end.last);
        self.cuts = end.cuts;
        self.objects.take_last_cut(end.everything)?;
        Ok(true)
    }
}

wire_struct!(OpenGrant { index: u32, owner: MemberId, id: CommandId });
wire_struct!(GrantsEnd {
    last: u32,
    open: u64,
    cuts: u64,
    everything: Option<CommandId>,
    uncut: Vec<CommandId>,
    complete: Vec<MemberId>,
    parts: u64,
});
