//! A repository whose disk was lost finds out again who owns keys.
//!
//! # The problem
//! What a repository has on its disk of keys that moved is not with anybody else: as the directory
//! of a key, where it is; as an owner of the past, where it went, until the key's directory knows.
//! Without its disk a directory would say of a key that is elsewhere that there is none, and let
//! somebody insert it: then it has two owners. And other directories would say for ever that keys
//! are with it that it has not.
//!
//! # The idea
//! It asks all others, [part by part](OwnedPart) and page by page. First, of each key that is not
//! where static placement puts it, its owner says that it has it, and who had it where it went, if
//! the directory may not know. Until all have said all of that it says of no key that it is not
//! there: who reads one, or scans, waits, and who writes one is refused. What it hears of its own
//! keys are its pointers. Of the keys of others it keeps pointers as if the keys had been here and
//! gone, and so their directories are told as always. Then it asks all for the last part: which
//! keys do you take to be here? Those that are not are lost, and go back to their directories as if
//! they were deleted.
//!
//! # Why nothing is missed
//! Take a key that somebody owns as the first question is asked. It is inserted nowhere meanwhile,
//! for that passes the directory. If it stays, its owner says so. If it moves, then each of its
//! owners has said so, or has a pointer when it comes to the pointers, or has told the directory
//! and forgotten it: and that learns a pointer also where it has none. While a vote of the time
//! before may still bring a key from here to somebody, that one does not answer. Of two that are
//! said to own a key the one with the later version counts: nothing that is said is collected
//! before all have answered.
//!
//! A key that is lost goes back with a version that is next to the pointer's. If the directory has
//! a later pointer by then, that one counts.
//!
//! # What is lost
//! The keys that were here. And what a transaction that the lost disk knew of, and somebody
//! else did not, did there: it may end in part.

use std::collections::BTreeMap;

use muesli_core::parts::versions::Version;
use muesli_core::{
    Address, Catalog, Cursor, Nanos, RepositoryId, Role, SmallBytes, SpaceId, Timestamp,
};

use super::KEYS_AT_ONCE;
use super::directory::{directory_of, owner_of_pointer};
use crate::two_phase::message::moves::{
    MovedKey, OwnedPage, OwnedPart, OwnedPosition, OwnedQuestion,
};
use crate::two_phase::message::{Message, Record};
use crate::two_phase::participant::Participant;
use crate::two_phase::policy::FamilySwitch;
use crate::two_phase::time::Time;
use crate::two_phase::{Context, Variant};

/// A page counts so many bytes: each key counts [16](muesli_core::limits::ENTRY_BYTES) at least, so
/// that there are not more than are told of at once.
const PAGE_BYTES: usize = KEYS_AT_ONCE * 16;

/// While so many keys are still to be told of, nothing more is asked.
const UNTOLD_MAX: usize = 4 * KEYS_AT_ONCE;

/// What others are asked after a disk was lost.
///
/// Invariants: where others were asked, somebody has not answered; for the last part nobody is
/// asked before the others are known.
#[derive(Clone, Debug, Default)]
pub(in crate::two_phase) struct Rebuild {
    /// When others were asked first; it tells answers from those of an earlier start. Zero: nobody
    /// was, as with a member of a group that only follows, and knows by the log that it has begun.
    number: u64,
    /// Who has not said everything, and where the next page begins.
    missing: BTreeMap<RepositoryId, OwnedPosition>,
    /// Whether all have said what they own.
    pub knows_owners: bool,
    /// Keys that were given to this repository, and of which the directory may not know that.
    given: Vec<MovedKey>,
    /// When it was last asked.
    asked: Nanos,
}

impl Rebuild {
    /// Whether others are asked by this repository.
    pub fn asks(&self) -> bool {
        self.number > 0
    }

    /// Asks all but `me` for a part.
    fn ask_all(&mut self, me: RepositoryId, part: OwnedPart, catalog: &Catalog) {
        let all = (0..catalog.repositories() as u16).map(RepositoryId);
        let others = all.filter(|other| *other != me);
        assert!(self.missing.is_empty(), "{part:?} is asked for, and another part is not known");
        self.missing = others.map(|other| (other, OwnedPosition::start_of(part))).collect();
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        assert_eq!(
            !self.missing.is_empty(),
            self.asks(),
            "all have answered, and others are asked"
        );
        let is_last = |from: &OwnedPosition| from.part == OwnedPart::TakenToBeThere;
        let fits = self.missing.values().all(|from| is_last(from) == self.knows_owners);
        assert!(fits, "the last part is asked for, and the others are not known");
        assert!(!self.knows_owners || self.given.is_empty(), "what was given is looked at");
    }
}

impl<V: Variant> Participant<V> {
    /// Asks others what they know, if the disk was lost and nothing is kept here, or if that was
    /// begun and has not come to its end. (A member of a group starts each time that it leads, and
    /// has what the group has.)
    pub(in crate::two_phase::participant) fn begin_rebuild(
        &mut self,
        is_empty: bool,
        cx: &mut Context<'_, V>,
    ) {
        if is_empty
            && cx.settings.lost_disk.is_some()
            && V::keys_move(cx.catalog)
            && self.switches.keeps(FamilySwitch::RebuildsDirectory)
        {
            cx.log_lazily(|| Record::Rebuild { is_over: false });
            self.replay_rebuild(false);
        }
        let Some(rebuild) = &mut self.whereabouts.rebuild else { return };
        *rebuild = Rebuild { number: cx.now().0.max(1), ..Rebuild::default() };
        rebuild.ask_all(self.id, OwnedPart::Owned, cx.catalog);
        match rebuild.missing.is_empty() {
            true => self.end_rebuild(cx),
            false => self.ask_owned(cx),
        }
    }

    /// As the log says.
    pub(in crate::two_phase::participant) fn replay_rebuild(&mut self, is_over: bool) {
        self.whereabouts.rebuild = (!is_over).then(Rebuild::default);
    }

    /// Asks again those that have not answered for a while.
    pub(in crate::two_phase::participant) fn ask_owned_again(&mut self, cx: &mut Context<'_, V>) {
        let rebuild = self.whereabouts.rebuild.as_ref();
        if rebuild.is_some_and(|it| cx.now() >= it.asked + cx.settings.retry_after) {
            self.ask_owned(cx);
        }
    }

    fn ask_owned(&mut self, cx: &mut Context<'_, V>) {
        self.set_sweep_timer(cx);
        let untold = self.whereabouts.untold.len();
        let Some(rebuild) = &mut self.whereabouts.rebuild else { return };
        if untold > UNTOLD_MAX {
            return;
        }
        rebuild.asked = cx.now();
        for (to, from) in &rebuild.missing {
            let question = OwnedQuestion { number: rebuild.number, from: *from };
            cx.send_to_repository(*to, Message::AskOwned(question));
        }
    }

    /// Another repository has lost its disk.
    pub(in crate::two_phase::participant) fn on_ask_owned(
        &mut self,
        from: Address,
        question: OwnedQuestion,
        cx: &mut Context<'_, V>,
    ) {
        let Role::Repository(asker) = from.role else { return };
        let mut arriving = self.table.prepared().flat_map(|it| it.prepare.arriving.iter());
        if arriving.any(|it| it.from == asker) {
            return; // It may have voted for that. It asks again.
        }
        let (owned, next) = self.owned_page(asker, question.from, cx.catalog);
        assert!(owned.len() <= KEYS_AT_ONCE, "{} keys in a message", owned.len());
        let page = OwnedPage { question, owned, next, newest: self.time.newest() };
        cx.send_when_logged(from, Message::Owned(Box::new(page)));
    }

    fn owned_page(
        &self,
        asker: RepositoryId,
        from: OwnedPosition,
        catalog: &Catalog,
    ) -> (Vec<MovedKey>, Option<OwnedPosition>) {
        let part = from.part;
        let owns = part == OwnedPart::Owned;
        let is_last = part == OwnedPart::TakenToBeThere;
        let mut cursor = Cursor { step: from.space, place: from.slot, ..Cursor::default() };
        let wanted = |space, key: &SmallBytes| self.is_directory_of(space, key, catalog) == is_last;
        let store = if owns { &self.spaces } else { &self.whereabouts.pointers };
        let found = store.next_newest(&mut cursor, PAGE_BYTES, wanted);
        let next = match found {
            Some(_) => Some(OwnedPosition { part, space: cursor.step, slot: cursor.place }),
            None => owns.then(|| OwnedPosition::start_of(OwnedPart::Pointers)),
        };
        assert!(next.is_none_or(|next| next > from), "behind {from:?} comes {next:?}");
        let moved = |(space, key, at, value): (SpaceId, _, Timestamp, Option<SmallBytes>)| {
            let pointer = Version { at, value: value.as_ref(), newest: true };
            let (to, at) = match owns {
                true => (self.id, value.as_ref().map(|_| at)?),
                false => owner_of_pointer(pointer, catalog)?,
            };
            (!is_last || to == asker).then_some(MovedKey { space, key, to, at })
        };
        (found.into_iter().flatten().filter_map(moved).collect(), next)
    }

    /// Another repository says what it knows.
    pub(in crate::two_phase::participant) fn on_owned(
        &mut self,
        from: Address,
        page: OwnedPage<V>,
        cx: &mut Context<'_, V>,
    ) {
        let (Role::Repository(sender), Some(rebuild)) = (from.role, &self.whereabouts.rebuild)
        else {
            return;
        };
        let OwnedQuestion { number, from } = page.question;
        if number != rebuild.number || rebuild.missing.get(&sender) != Some(&from) {
            return; // Of an earlier start, or repeated.
        }
        self.observe(&page.newest, cx);
        let is_of_others = |it: &MovedKey| !self.is_directory_of(it.space, &it.key, cx.catalog);
        let (here, known) =
            page.owned.into_iter().partition(|it| it.to == self.id && is_of_others(it));
        self.learn_found(known, cx);
        if from.part == OwnedPart::TakenToBeThere {
            self.give_back_lost(here, cx);
        } else if let Some(rebuild) = &mut self.whereabouts.rebuild {
            rebuild.given.extend(here);
        }
        let Some(rebuild) = &mut self.whereabouts.rebuild else { return };
        match page.next {
            Some(next) => drop(rebuild.missing.insert(sender, next)),
            None => drop(rebuild.missing.remove(&sender)),
        }
        if rebuild.missing.is_empty() {
            self.end_part(cx);
        } else if page.next.is_some() {
            self.ask_owned_of(sender, cx);
        }
    }

    fn ask_owned_of(&mut self, to: RepositoryId, cx: &mut Context<'_, V>) {
        let untold = self.whereabouts.untold.len();
        let Some(rebuild) = &self.whereabouts.rebuild else { return };
        if let Some(from) = rebuild.missing.get(&to).filter(|_| untold <= UNTOLD_MAX) {
            let question = OwnedQuestion { number: rebuild.number, from: *from };
            cx.send_to_repository(to, Message::AskOwned(question));
        }
    }

    /// All have said everything of a part.
    fn end_part(&mut self, cx: &mut Context<'_, V>) {
        let Some(rebuild) = &mut self.whereabouts.rebuild else { return };
        if rebuild.knows_owners {
            self.end_rebuild(cx);
            return;
        }
        assert!(rebuild.missing.is_empty(), "a part ends of which not all is known");
        rebuild.knows_owners = true;
        rebuild.ask_all(self.id, OwnedPart::TakenToBeThere, cx.catalog);
        let given = std::mem::take(&mut rebuild.given);
        self.give_back_lost(given, cx);
        self.ask_owned(cx);
        self.after_release(cx);
    }

    fn end_rebuild(&mut self, cx: &mut Context<'_, V>) {
        cx.log_lazily(|| Record::Rebuild { is_over: true });
        self.whereabouts.rebuild = None;
        self.after_release(cx);
    }

    /// Others own these keys, unless something later is known of them. One that had come back to
    /// its directory, which is here, is lost.
    fn learn_found(&mut self, found: Vec<MovedKey>, cx: &mut Context<'_, V>) {
        let is_news = |it: &MovedKey| {
            let pointer = self.whereabouts.pointer(it.space, &it.key, cx.catalog);
            let arrives = it.to == self.id && self.is_arriving(it);
            !arrives && self.is_newer_than_here(it) && pointer.is_none_or(|(_, at)| at < it.at)
        };
        let news = found.into_iter().filter(is_news).collect();
        self.point_from_here(news, cx);
    }

    /// Others take these keys to be here: those that are not go back to their directories.
    fn give_back_lost(&mut self, answered: Vec<MovedKey>, cx: &mut Context<'_, V>) {
        let is_lost = |it: &MovedKey| {
            let went = self.whereabouts.pointer(it.space, &it.key, cx.catalog).is_some();
            !self.is_arriving(it) && !went && !self.has_key(it.space, &it.key, cx.catalog)
        };
        let back = |it: MovedKey| {
            let to = directory_of(it.space, &it.key, cx.catalog);
            (to != self.id).then_some(MovedKey { to, at: Timestamp(it.at.0 + 1), ..it })
        };
        let news = answered.into_iter().filter(is_lost).filter_map(back).collect();
        self.point_from_here(news, cx);
    }

    /// These keys are elsewhere, as if they had gone there from here.
    fn point_from_here(&mut self, news: Vec<MovedKey>, cx: &mut Context<'_, V>) {
        if news.is_empty() {
            return;
        }
        self.learn_owners(&news, cx);
        for moved in &news {
            let went = self.whereabouts.pointer(moved.space, &moved.key, cx.catalog);
            let fits = (moved.to == self.id) == went.is_none();
            assert!(fits, "{:?} is with {:?}, and {went:?} is known", moved.key, moved.to);
            if !self.is_directory_of(moved.space, &moved.key, cx.catalog) {
                self.whereabouts.untold.insert((moved.space, moved.key.clone()));
            }
        }
        self.set_sweep_timer(cx);
        cx.log_lazily(|| Record::NewOwners { moved: news });
    }

    /// Whether a key may be about to come.
    fn is_arriving(&self, moved: &MovedKey) -> bool {
        let versions = self.versions(moved.space);
        let lock = versions.and_then(|it| Some(it.lock(it.find(&moved.key)?)));
        lock.is_some_and(|lock| lock.is_for_writing())
    }

    /// Whether a key was not here at or after the time of a pointer, as far as versions tell.
    pub(super) fn is_newer_than_here(&self, moved: &MovedKey) -> bool {
        let versions = self.versions(moved.space);
        let newest = versions.and_then(|it| Some(it.newest(it.find(&moved.key)?)));
        newest.is_none_or(|newest| newest.value.is_none() && newest.at < moved.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(part: OwnedPart, knows_owners: bool) -> Rebuild {
        let missing = [(RepositoryId(1), OwnedPosition::start_of(part))].into();
        Rebuild { number: 1, missing, knows_owners, ..Rebuild::default() }
    }

    #[test]
    fn owners_are_asked_for_first() {
        asked(OwnedPart::Owned, false).assert_invariants();
        asked(OwnedPart::Pointers, false).assert_invariants();
        asked(OwnedPart::TakenToBeThere, true).assert_invariants();
    }

    #[test]
    #[should_panic(expected = "TakenToBeThere is asked for, and another part is not known")]
    fn a_part_is_known_before_the_next_one_is_asked_for() {
        let nodes = [muesli_core::NodeId(0), muesli_core::NodeId(1)];
        let catalog = Catalog::new(&nodes, 1, &nodes).unwrap();
        let mut pointers = asked(OwnedPart::Pointers, false);
        pointers.ask_all(RepositoryId(0), OwnedPart::TakenToBeThere, &catalog);
    }

    #[test]
    #[should_panic(expected = "all have answered, and others are asked")]
    fn it_is_over_when_all_have_answered() {
        Rebuild { number: 1, ..Rebuild::default() }.assert_invariants();
    }

    #[test]
    fn who_follows_knows_that_it_has_begun_and_asks_nobody() {
        Rebuild::default().assert_invariants();
    }

    #[test]
    #[should_panic(expected = "the last part is asked for, and the others are not known")]
    fn the_last_part_waits_for_the_others() {
        asked(OwnedPart::TakenToBeThere, false).assert_invariants();
    }

    #[test]
    #[should_panic(expected = "what was given is looked at")]
    fn what_was_given_is_looked_at_before_the_last_part() {
        let (space, key, to, at) = (SpaceId(0), "k".into(), RepositoryId(0), Timestamp(1));
        let given = vec![MovedKey { space, key, to, at }];
        Rebuild { given, ..asked(OwnedPart::TakenToBeThere, true) }.assert_invariants();
    }
}
