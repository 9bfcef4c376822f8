//! Groups form, and members that forgot come back or wait.

use proptest::prelude::*;

use super::*;
use crate::ledger::Entry;
use crate::protocol::Ballot;
use muesli_core::SmallBytes;

use Formed::{Begun, Met, No, Ready};

fn standing(promise: u32, accepted: u32, entries: usize) -> Standing {
    let ballot = |number| Ballot { number, member: 1 };
    Standing {
        formed: Begun,
        promise: ballot(promise),
        accepted: ballot(accepted),
        entries: vec![Entry(SmallBytes::new(b"x")); entries],
        ..Standing::default()
    }
}

fn situation(mine: Formed, others: usize) -> Situation {
    Situation { mine, others, has_moved: false, accepts_loss: false }
}

/// What follows where the others have come so far.
fn step(situation: Situation, others: &[Formed]) -> Step {
    let mut joining = Joining::default();
    for (member, formed) in (0..).zip(others) {
        joining.answer(member, Standing { formed: *formed, ..Standing::default() });
    }
    let step = joining.step(situation);
    assert_eq!(joining.is_lost(), step == Step::Lost);
    step
}

#[test]
fn the_newest_entries_and_the_largest_promise_are_adopted() {
    let mut joining = Joining::default();
    joining.answer(0, standing(9, 1, 7));
    assert_eq!(joining.step(situation(No, 2)), Step::Wait);
    joining.answer(0, standing(9, 1, 8));
    joining.answer(2, standing(3, 2, 4));
    let adopted = Standing { promise: standing(9, 0, 0).promise, ..standing(3, 2, 4) };
    assert_eq!(joining.step(situation(No, 2)), Step::Adopt(adopted));
}

#[test]
fn who_forgot_comes_back_only_where_every_majority_has_somebody_who_remembers() {
    let adopted = |formed| Step::Adopt(Standing { formed, ..Standing::default() });
    for (others, expected) in [
        (&[Begun, Begun][..], adopted(Begun)),
        (&[Ready, Met], adopted(Ready)),
        (&[Begun, No], Step::Lost),
        (&[Ready, No], Step::Lost),
        (&[Begun, Begun, Begun, No], adopted(Begun)),
        (&[Begun, Begun, No, No], Step::Lost),
        (&[Begun, Met], Step::Lost),
        (&[Begun, Begun, Met, No], Step::Lost), // Who has met where somebody has begun forgot too.
        (&[Begun, Begun, No], adopted(Begun)),
        (&[Begun, No, No], Step::Lost),
        (&[No, No], Step::Note(Met)),
        (&[Met, No], Step::Note(Met)),
    ] {
        assert_eq!(step(situation(No, others.len()), others), expected, "{others:?}");
    }
    let moved = Situation { has_moved: true, ..situation(No, 2) };
    assert_eq!(step(moved, &[No, No]), Step::Lost);
    assert_eq!(step(moved, &[Begun, Begun]), adopted(Begun));
    let accepts = |has_moved| Situation { has_moved, accepts_loss: true, ..situation(No, 2) };
    assert_eq!(step(accepts(false), &[Begun, No]), adopted(Begun));
    assert_eq!(step(accepts(true), &[No, No]), Step::Note(Met));
}

/// Members that say to each other how far they have come, forget, and decide something.
#[derive(Clone, Debug)]
struct Group(Vec<Member>);

#[derive(Clone, Debug, Default)]
struct Member {
    standing: Standing,
    joining: Joining,
}

impl Group {
    fn new(size: usize) -> Group {
        Group(vec![Member::default(); size])
    }

    fn hear(&mut self, listener: usize, speaker: usize) {
        let (told, others) = (self.0[speaker].standing.clone(), self.0.len() - 1);
        let Member { standing, joining } = &mut self.0[listener];
        if standing.formed == Begun {
            return;
        }
        joining.answer(speaker as u16, told);
        match joining.step(situation(standing.formed, others)) {
            Step::Note(formed) => standing.formed = formed,
            Step::Adopt(adopted) => *standing = adopted,
            Step::Wait | Step::Lost => {}
        }
    }

    /// A majority of those that vote elect one of them, take over what they know, and decide one
    /// entry more. How many are decided then, if there is such a majority.
    fn decide(&mut self, first: usize) -> Option<usize> {
        let size = self.0.len();
        let mut all: Vec<_> = (0..size).map(|at| (first + at) % size).collect();
        all.retain(|member| self.0[*member].standing.formed == Begun);
        all.truncate(size / 2 + 1);
        if all.len() <= size / 2 {
            return None;
        }
        let longest = all.iter().map(|member| self.0[*member].standing.entries.len()).max()?;
        let entries = vec![Entry(SmallBytes::new(b"x")); longest + 1];
        for member in all {
            self.0[member].standing.entries.clone_from(&entries);
        }
        Some(longest + 1)
    }
}

proptest! {
    /// The argument of the page: members speak in any order, and all but one forget at any time,
    /// several at once or again and again.
    #[test]
    fn nothing_that_was_decided_is_forgotten(
        size in 2usize..6,
        happens in prop::collection::vec((0u8..40, 0usize..6, 0usize..6), 0..400),
    ) {
        let (mut group, mut decided) = (Group::new(size), 0);
        for (what, one, other) in happens {
            let (one, other) = (one % size, other % size);
            match what {
                0 if one > 0 => group.0[one] = Member::default(),
                1 => {
                    if let Some(now) = group.decide(one) {
                        prop_assert_eq!(now, decided + 1);
                        decided = now;
                    }
                }
                _ if one != other => group.hear(one, other),
                _ => {}
            }
        }
    }

    #[test]
    fn a_new_group_begins_in_whatever_order_its_members_speak(
        size in 2usize..6, order in prop::collection::vec((0usize..6, 0usize..6), 0..40),
    ) {
        let mut group = Group::new(size);
        let all = (0..4 * size * size).map(|at| (at % size, at / size % size));
        for (one, other) in order.into_iter().map(|(a, b)| (a % size, b % size)).chain(all) {
            if one != other {
                group.hear(one, other);
            }
        }
        prop_assert!(group.0.iter().all(|member| member.standing.formed == Begun));
    }
}
