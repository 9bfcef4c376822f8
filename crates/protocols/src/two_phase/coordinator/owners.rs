//! Where keys are that move, as a coordinator takes them to be.
//!
//! It keeps [hints](muesli_core::parts::locator::Hints), as much as there is room for. Who is asked
//! in vain says where to ask; who knows nothing, that the key's directory does: the repository
//! where static placement puts it. What its own node holds it need not remember, and looks there
//! first.

use muesli_core::parts::locator::{Locator, Owners};
use muesli_core::{
    Catalog, Here, OpId, RepositoryId, SmallBytes, SpaceId, Timestamp, Txn, TxnOptions,
};
use smallvec::smallvec;

use super::Coordinator;
use super::asked::{Asked, AskedKey, AskedKeys, Groups, PendingRequest, SentOn};
use crate::two_phase::message::moves::{KnownCopy, WhereKeysMove};
use crate::two_phase::message::{ReadReply, ReadWants, Repositories};
use crate::two_phase::participant::Participant;
use crate::two_phase::participant::whereabouts::directory::directory_of;
use crate::two_phase::{Context, TwoPhase, Variant};

/// So many hints are kept.
pub(super) const HINTS_MAX: usize = 65_536;

/// ValueCopies of values that live elsewhere take so much.
pub(super) const COPIES_BYTES_MAX: usize = 16 << 20;

/// Keys are sent on at once so often; after that the wrong places that they were asked for at say
/// nothing new, and they wait as for an answer that was lost.
const REDIRECTS_AT_ONCE: u32 = 8;

/// The name under which hints know a key.
pub(super) type HintedKey = (SpaceId, SmallBytes);

impl<V: Variant> Coordinator<V> {
    /// The repository of this node that has a key which moves, or should, if one does.
    pub(in crate::two_phase) fn owner_here(
        &self,
        space: SpaceId,
        key: &SmallBytes,
        here: &Here<'_, TwoPhase<V>>,
        catalog: &Catalog,
    ) -> Option<RepositoryId> {
        let has = |participant: &&Participant<V>| participant.has_key(space, key, catalog);
        here.all().find(has).map(|participant| participant.id)
    }

    /// Who has a key which moves, as far as is known here.
    pub(in crate::two_phase) fn owner(
        &self,
        space: SpaceId,
        key: &SmallBytes,
        catalog: &Catalog,
    ) -> RepositoryId {
        let hint = self.hints.moved(&(space, key.clone()));
        let hinted = hint.and_then(|owners| owners.holders.first().copied());
        hinted.unwrap_or_else(|| directory_of(space, key, catalog))
    }

    /// Whom to ask for a key.
    pub(in crate::two_phase) fn whom_to_ask(
        &self,
        (space, key): (SpaceId, &SmallBytes),
        here: &Here<'_, TwoPhase<V>>,
        cx: &Context<'_, V>,
    ) -> RepositoryId {
        if !V::keys_move(cx.catalog) {
            return self.choose(cx.catalog.partition(space, key), here, cx);
        }
        let own = self.owner_here(space, key, here, cx.catalog);
        own.unwrap_or_else(|| self.owner(space, key, cx.catalog))
    }

    /// A repository that was asked for a key says who has it since then; zero: that it does not
    /// know, and the key's directory does.
    pub(in crate::two_phase) fn learn_owner(
        &mut self,
        key: HintedKey,
        (to, at): (RepositoryId, Timestamp),
    ) {
        let holders: Repositories = smallvec![to];
        assert_eq!(holders.len(), 1, "a key that moves has one owner");
        match at {
            Timestamp::ZERO => self.hints.correct(&key, holders),
            at => self.hints.learn(key, Owners { epoch: at.0, holders }),
        }
    }

    /// Of which keys that are asked for there are copies here.
    pub(in crate::two_phase) fn known_copies(
        &self,
        keys: &[AskedKey],
        wanted: ReadWants,
        catalog: &Catalog,
    ) -> WhereKeysMove<V, KnownCopy> {
        let mut known = WhereKeysMove::default();
        if !V::keys_move(catalog) || wanted == ReadWants::Versions {
            return known;
        }
        for (place, (_, space, key)) in keys.iter().enumerate() {
            if let Some(version) = self.copies.version(&(*space, key.clone())) {
                known.push(KnownCopy { place: place as u32, version });
            }
        }
        assert!(known.len() <= keys.len(), "copies of {} of {} keys", known.len(), keys.len());
        known
    }

    /// Puts copies in the place of values that were not sent, and keeps copies of those that were.
    /// The places of those of which there is no copy any more: they are to be asked for again.
    pub(in crate::two_phase) fn take_copies(
        &mut self,
        keys: &[AskedKey],
        reply: &mut ReadReply<V>,
        catalog: &Catalog,
    ) -> Vec<usize> {
        let mut lost = Vec::new();
        if !V::keys_move(catalog) {
            return lost;
        }
        let mut known = reply.known.iter().map(|place| *place as usize).peekable();
        for (place, ((_, space, key), found)) in keys.iter().zip(&mut reply.found).enumerate() {
            let name = (*space, key.clone());
            if known.next_if_eq(&place).is_some() {
                found.value = self.copies.value(&name, found.version);
                if found.value.is_none() {
                    lost.push(place);
                }
            } else if let Some(value) = &found.value {
                self.copies.keep(name, found.version, value);
            }
        }
        assert!(lost.len() <= reply.known.len(), "what was not sent is lost, and nothing else");
        lost
    }

    /// Asks for keys of an operation where they are said to be, and for the rest of those that a
    /// repository was asked for; nothing is left of the request that was answered so.
    pub(in crate::two_phase) fn ask_on(
        &mut self,
        (txn, op): (Txn, OpId),
        SentOn { keys, since, times }: SentOn,
        rest: Option<(RepositoryId, AskedKeys)>,
        cx: &mut Context<'_, V>,
    ) {
        assert!(!keys.is_empty(), "operation {} is sent on for no key", op.0);
        let mut groups = Groups::new();
        for key in keys {
            let to = self.owner(key.1, &key.2, cx.catalog);
            match groups.iter_mut().find(|(known, _)| *known == to) {
                Some((_, group)) => group.push(key),
                None => groups.push((to, smallvec![key])),
            }
        }
        let Some(operation) = self.operations.get_mut(op.0) else { return };
        let asked = groups.len() + usize::from(rest.is_some());
        operation.missing = (operation.missing + asked).saturating_sub(1);
        if let Some((to, keys)) = rest {
            self.ask_more((txn, op), (to, Asked::Keys(keys)), cx);
        }
        for (to, keys) in groups {
            let new = PendingRequest::new(op, to, Asked::Keys(keys), cx.now());
            let request = PendingRequest { since, redirects: times + 1, ..new };
            match request.redirects > REDIRECTS_AT_ONCE {
                true => self.ask_deferred(request, cx),
                false => self.ask_also(txn, request, cx),
            }
        }
    }

    /// Asks a repository when it is time to ask again those who have not answered.
    fn ask_deferred(&mut self, request: PendingRequest, cx: &mut Context<'_, V>) {
        self.next_request += 1;
        self.requests.insert(self.next_request, PendingRequest { held: false, ..request });
        self.set_sweep_timer(cx);
    }

    /// The repository to which keys move that a transaction of this node writes, if they do. A node
    /// without repositories, and a client's, owns nothing: keys move to the node that the catalog
    /// names as [nearest](Catalog::nearest) to it, or stay where they are.
    pub(in crate::two_phase) fn new_owner(
        &self,
        options: &TxnOptions,
        cx: &Context<'_, V>,
    ) -> Option<RepositoryId> {
        let moves = V::keys_move(cx.catalog) && V::moves(&self.switches) && !options.stays;
        if !moves {
            return None;
        }
        let node = cx.catalog.nearest(self.id).unwrap_or(self.id);
        let all = (0..cx.catalog.repositories() as u16).map(RepositoryId);
        let mut own = all.filter(|repository| cx.catalog.home(*repository) == node);
        let first = own.next();
        assert!(own.all(|other| Some(other) > first), "the first one of the node");
        first
    }
}

/// The keys of an answer that are elsewhere, and those that are not, with what was found.
pub(super) fn divide_answer<T>(
    keys: impl Iterator<Item = (AskedKey, T)>,
    is_elsewhere: impl Fn(usize) -> bool,
) -> (Vec<(AskedKey, T)>, AskedKeys) {
    let (mut found, mut moved) = (Vec::new(), AskedKeys::new());
    for (at, (key, it)) in keys.enumerate() {
        match is_elsewhere(at) {
            true => moved.push(key),
            false => found.push((key, it)),
        }
    }
    (found, moved)
}
