//! What is asked of messages of keys that move.

use muesli_core::judgement::{distinct, ensure, in_range};
use muesli_core::parts::locator::Static;
use muesli_core::{Rejection, RepositoryId, Role, SmallBytes, SpaceId, Timestamp, View};

use crate::two_phase::Variant;
use crate::two_phase::message::Prepare;
use crate::two_phase::message::moves::{
    ArrivingWrite, LeavingWrite, MovedKey, OwnedPage, OwnedPart, OwnedPosition,
};
use crate::two_phase::participant::whereabouts::KEYS_AT_ONCE;
use crate::two_phase::time::Snapshot;

/// Static placement puts a key here.
pub(super) fn judge_placed(
    space: SpaceId,
    key: &SmallBytes,
    view: View<'_>,
) -> Result<(), Rejection> {
    let partition = || view.catalog.partition(space, key);
    view.key(space, |repository| Static.holds(repository, partition(), view.catalog))
}

/// Keys that moved, told by a repository: of those that static placement puts here, or that were
/// here, or that a coordinator was to write there.
pub(super) fn judge_moved(
    moved: &[MovedKey],
    are_placed: bool,
    view: View<'_>,
) -> Result<(), Rejection> {
    judge_other_repository(view)?;
    ensure(!moved.is_empty() && moved.len() <= KEYS_AT_ONCE, Rejection::Range)?;
    // A coordinator is told where static placement puts a key of which nothing is known.
    let may_be_unknown = view.me.role == Role::Coordinator;
    moved.iter().try_for_each(|it| {
        in_range(it.at)?;
        ensure(may_be_unknown || it.at > Timestamp::ZERO, Rejection::Range)?;
        ensure(it.key.len() <= view.settings.limits.key_bytes, Rejection::Range)?;
        if are_placed { judge_placed(it.space, &it.key, view) } else { Ok(()) }
    })
}

fn judge_other_repository(view: View<'_>) -> Result<(), Rejection> {
    view.member()?;
    ensure(matches!(view.from.role, Role::Repository(_)), Rejection::Sender)
}

/// A repository that has lost its disk asks others.
pub(super) fn judge_question(view: View<'_>) -> Result<(), Rejection> {
    judge_other_repository(view)
}

/// A page has each key once, and goes on behind where it begins, in a part that is asked for by
/// then.
pub(super) fn judge_owned<V: Variant>(
    page: &OwnedPage<V>,
    view: View<'_>,
) -> Result<(), Rejection> {
    judge_other_repository(view)?;
    page.newest.judge(view.catalog.repositories())?;
    let OwnedPage { question, owned, next, .. } = page;
    let is_last = |it: OwnedPosition| it.part == OwnedPart::TakenToBeThere;
    let goes_on = |it: OwnedPosition| it > question.from && is_last(it) == is_last(question.from);
    ensure(next.is_none_or(goes_on), Rejection::Range)?;
    distinct(owned.iter().map(|it| (it.space, &it.key)))?;
    // One that is given back has the version behind this one.
    ensure(owned.iter().all(|it| it.at < Timestamp::FARTHEST), Rejection::Range)?;
    if page.owned.is_empty() { Ok(()) } else { judge_moved(&page.owned, false, view) }
}

/// Keys move, each once; what leaves has no value here, and goes to another one who takes part, and
/// what arrives comes from one. Where a client says so, the votes show that it has said it to both.
pub(super) fn judge_moves<V: Variant>(
    prepare: &Prepare<V>,
    view: View<'_>,
) -> Result<(), Rejection> {
    if prepare.leaving.is_empty() && prepare.arriving.is_empty() {
        return Ok(());
    }
    ensure(view.sender.is_member() || view.settings.issuer.is_some(), Rejection::Unproven)?;
    let mut places: Vec<u32> = prepare.leaving.iter().map(|it| it.place).collect();
    places.extend(prepare.arriving.iter().map(|it| it.place));
    let is_write = |place: &u32| (*place as usize) < prepare.writes.len();
    ensure(places.iter().all(is_write), Rejection::Range)?;
    let ascend = prepare.leaving.windows(2).all(|pair| pair[0].place < pair[1].place)
        && prepare.arriving.windows(2).all(|pair| pair[0].place < pair[1].place);
    places.sort_unstable();
    ensure(ascend && places.windows(2).all(|pair| pair[0] < pair[1]), Rejection::Range)?;
    let takes_part = |other: RepositoryId| {
        view.repository() != Some(other) && prepare.participants.contains(&other)
    };
    let can_leave =
        |it: &LeavingWrite| prepare.writes[it.place as usize].2.is_none() && takes_part(it.to);
    let can_arrive =
        |it: &ArrivingWrite| prepare.writes[it.place as usize].2.is_some() && takes_part(it.from);
    ensure(prepare.leaving.iter().all(can_leave), Rejection::Range)?;
    ensure(prepare.arriving.iter().all(can_arrive), Rejection::Range)
}

#[cfg(test)]
mod tests {
    use muesli_core::judgement::Sender;
    use muesli_core::{Address, Catalog, NodeId, Settings};

    use super::*;
    use crate::tfa::OwnedObjects;
    use crate::two_phase::message::moves::OwnedQuestion;

    type Page = OwnedPage<OwnedObjects>;

    fn key(name: &str, at: Timestamp) -> MovedKey {
        MovedKey { space: SpaceId(0), key: name.into(), to: RepositoryId(1), at }
    }

    fn position(part: OwnedPart, slot: u64) -> OwnedPosition {
        OwnedPosition { part, space: 0, slot }
    }

    fn page(owned: Vec<MovedKey>, next: Option<OwnedPosition>) -> Page {
        let from = position(OwnedPart::Owned, 5);
        let question = OwnedQuestion { number: 1, from };
        OwnedPage { question, owned, next, newest: Timestamp::ZERO }
    }

    /// What another repository answers to one that has lost its disk.
    fn judged(page: &Page) -> Result<(), Rejection> {
        let nodes = [NodeId(0), NodeId(1)];
        let catalog = Catalog::new(&nodes, 1, &nodes).unwrap();
        let settings = Settings::default();
        let of = |number: u16| Address::repository(NodeId(number.into()), RepositoryId(number));
        let (me, from, sender) = (of(0), of(1), Sender::Member);
        judge_owned(page, View { me, from, sender, catalog: &catalog, settings: &settings })
    }

    #[test]
    fn a_page_of_owned_keys_names_each_once_at_a_version_and_goes_on() {
        let (version, none) = (Timestamp(7), Timestamp::ZERO);
        let keys = || vec![key("a", version), key("b", version)];
        let nexts = [
            (None, Ok(())),
            (Some(position(OwnedPart::Owned, 6)), Ok(())),
            (Some(position(OwnedPart::Pointers, 0)), Ok(())),
            (Some(position(OwnedPart::Owned, 5)), Err(Rejection::Range)),
            (Some(position(OwnedPart::TakenToBeThere, 0)), Err(Rejection::Range)),
        ];
        for (next, due) in nexts {
            assert_eq!(judged(&page(keys(), next)), due, "{next:?}");
        }
        assert_eq!(judged(&page(Vec::new(), None)), Ok(()));
        let wrong = [
            vec![key("a", version), key("b", version), key("a", version)],
            vec![key("a", none)],
            vec![key("a", Timestamp::FARTHEST)],
        ];
        for owned in wrong {
            assert_eq!(judged(&page(owned.clone(), None)), Err(Rejection::Range), "{owned:?}");
        }
    }
}
