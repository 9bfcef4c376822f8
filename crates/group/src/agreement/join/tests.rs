//! Groups form, and members that forgot come back or wait.

use Formed::{Begun, Met, No, Ready};
use proptest::prelude::*;

use super::*;
use crate::agreement::ballot::Ballot;

fn replica_state(promise: u32, accepted: u32, length: u64) -> Summary {
    let ballot = |number| Ballot { configuration: 1, number, member: 1 };
    Summary {
        formed: Begun,
        configuration: first(3),
        promise: ballot(promise),
        accepted: ballot(accepted),
        length,
        ..Summary::default()
    }
}

/// A group of so many.
fn first(size: usize) -> Configuration {
    Configuration::first((0..size as u16).collect())
}

fn situation(me: u16, mine: Formed, first: &Configuration) -> Situation<'_> {
    Situation { me, mine, first, had_formed: false, asked_all: true, accepts_loss: false }
}

/// A member that has come so far in the first configuration.
fn at(formed: Formed, configuration: &Configuration) -> Summary {
    let known = if formed == No { Configuration::default() } else { configuration.clone() };
    Summary { formed, configuration: known, ..Summary::default() }
}

/// What follows for the last one where the others have come so far.
fn step(had_formed: bool, accepts_loss: bool, others: &[Formed]) -> JoinStep {
    let (mut joining, first) = (Joining::default(), first(others.len() + 1));
    for (member, formed) in (0..).zip(others) {
        joining.answer(member, at(*formed, &first));
    }
    let situation = situation(others.len() as u16, No, &first);
    let step = joining.step(Situation { had_formed, accepts_loss, ..situation });
    let unsure =
        joining.step(Situation { had_formed, accepts_loss, asked_all: false, ..situation });
    let asks = step == JoinStep::Note(Met) && !accepts_loss;
    assert_eq!(unsure, if asks { JoinStep::AskAll } else { step.clone() });
    assert_eq!(joining.is_lost(), step == JoinStep::Lost);
    step
}

#[test]
fn the_newest_entries_and_the_largest_promise_are_adopted() {
    let (mut joining, first) = (Joining::default(), first(3));
    joining.answer(0, replica_state(9, 1, 7));
    assert_eq!(joining.step(situation(1, No, &first)), JoinStep::Wait);
    joining.answer(0, replica_state(9, 1, 8));
    joining.answer(2, replica_state(3, 2, 4));
    let adopted = Summary { promise: replica_state(9, 0, 0).promise, ..replica_state(3, 2, 4) };
    assert_eq!(joining.step(situation(1, No, &first)), JoinStep::Adopt(2, adopted));
}

#[test]
fn who_forgot_comes_back_only_where_every_majority_has_somebody_who_remembers() {
    let adopted = |size: usize, formed| JoinStep::Adopt(0, at(formed, &first(size)));
    for (others, expected) in [
        (&[Begun, Begun][..], adopted(3, Begun)),
        (&[Ready, Met], adopted(3, Ready)),
        (&[Begun, No], JoinStep::Lost),
        (&[Ready, No], JoinStep::Lost),
        (&[Begun, Begun, Begun, No], adopted(5, Begun)),
        (&[Begun, Begun, No, No], JoinStep::Lost),
        (&[Begun, Met], JoinStep::Lost),
        (&[Begun, Begun, Met, No], JoinStep::Lost), // Who has met where one has begun forgot too.
        (&[Begun, Begun, No], adopted(4, Begun)),
        (&[Begun, No, No], JoinStep::Lost),
        (&[No, No], JoinStep::Note(Met)),
        (&[Met, No], JoinStep::Note(Met)),
    ] {
        assert_eq!(step(false, false, others), expected, "{others:?}");
    }
    assert_eq!(step(true, false, &[No, No]), JoinStep::Lost);
    assert_eq!(step(true, false, &[Begun, Begun]), adopted(3, Begun));
    assert_eq!(step(false, true, &[Begun, No]), adopted(3, Begun));
    assert_eq!(step(true, true, &[No, No]), JoinStep::Note(Met));
}

#[test]
fn who_votes_waits_until_all_others_have_come_to_the_newest_configuration() {
    let (mut joining, first) = (Joining::default(), first(3));
    let second = first.next(2, vec![0, 1, 3]);
    joining.answer(0, at(Begun, &second));
    joining.answer(1, at(Begun, &first));
    joining.answer(2, at(Begun, &first));
    assert_eq!(joining.step(situation(3, No, &first)), JoinStep::Wait);
    joining.answer(1, at(Begun, &second));
    assert_eq!(joining.step(situation(3, No, &first)), JoinStep::Adopt(0, at(Begun, &second)));
    // Who began in neither has to begin in the first; and who did not vote there may go on at once.
    joining.answer(1, at(Ready, &first));
    assert_eq!(joining.step(situation(3, No, &first)), JoinStep::Adopt(0, at(Begun, &second)));
    assert_eq!(joining.step(situation(1, Ready, &first)), JoinStep::Wait);
    joining.answer(3, at(Begun, &second));
    assert_eq!(joining.step(situation(1, Ready, &first)), JoinStep::Note(Begun));
}

#[test]
fn where_the_configuration_may_have_ended_all_of_the_next_one_are_asked_too() {
    let (mut joining, first) = (Joining::default(), first(3));
    let second = first.next(2, vec![0, 1, 2, 3, 4]);
    let ending = Summary { next: Some(second.clone()), ..at(Begun, &first) };
    joining.answer(0, ending.clone());
    joining.answer(1, at(Begun, &first));
    // Members 2, 3 and 4 may have decided something together in the second one.
    assert_eq!(joining.step(situation(2, No, &first)), JoinStep::Wait);
    joining.answer(3, at(Begun, &first));
    assert_eq!(joining.step(situation(2, No, &first)), JoinStep::Wait);
    joining.answer(4, at(No, &first));
    assert_eq!(joining.step(situation(2, No, &first)), JoinStep::Wait);
    joining.answer(4, at(Begun, &first));
    assert_eq!(joining.step(situation(2, No, &first)), JoinStep::Adopt(0, ending));
    joining.answer(4, at(Begun, &second));
    assert_eq!(joining.step(situation(2, No, &first)), JoinStep::Wait);
}

#[test]
fn who_does_not_vote_learns_from_a_majority_that_knows_of_no_end() {
    let (mut joining, first) = (Joining::default(), first(3));
    joining.answer(0, at(Begun, &first));
    assert_eq!(joining.step(situation(3, No, &first)), JoinStep::Wait);
    let next = first.next(2, vec![0, 1, 2, 3]);
    let ending = Summary { next: Some(next), ..at(Begun, &first) };
    joining.answer(1, ending);
    assert_eq!(joining.step(situation(3, No, &first)), JoinStep::Wait);
    // Those who do not vote either do not count.
    joining.answer(4, at(Begun, &first));
    assert_eq!(joining.step(situation(3, No, &first)), JoinStep::Wait);
    joining.answer(1, at(Begun, &first));
    assert_eq!(joining.step(situation(3, No, &first)), JoinStep::Adopt(0, at(Begun, &first)));
    assert!(!joining.is_lost());
}

#[test]
fn who_knows_of_an_end_and_is_gone_does_not_keep_the_others_from_teaching() {
    let (mut joining, first) = (Joining::default(), first(3));
    let next = first.next(2, vec![0, 1, 2, 3]);
    joining.answer(0, Summary { next: Some(next), ..at(Begun, &first) });
    joining.answer(1, at(Begun, &first));
    assert_eq!(joining.step(situation(3, No, &first)), JoinStep::Wait);
    joining.answer(2, at(Begun, &first));
    assert_eq!(joining.step(situation(3, No, &first)), JoinStep::Adopt(1, at(Begun, &first)));
}

/// Members that say to each other how far they have come, forget, and decide something.
#[derive(Clone, Debug)]
struct Group(Vec<Member>);

#[derive(Clone, Debug, Default)]
struct Member {
    replica_state: Summary,
    joining: Joining,
}

impl Group {
    fn new(size: usize) -> Group {
        Group(vec![Member::default(); size])
    }

    fn answer_to(&mut self, listener: usize, speaker: usize) {
        let (summary, first) = (self.0[speaker].replica_state.clone(), first(self.0.len()));
        let Member { replica_state, joining } = &mut self.0[listener];
        if replica_state.formed == Begun {
            return;
        }
        joining.answer(speaker as u16, summary);
        match joining.step(situation(listener as u16, replica_state.formed, &first)) {
            JoinStep::Note(formed) => {
                (replica_state.formed, replica_state.configuration) = (formed, first)
            }
            JoinStep::Adopt(_, adopted) => *replica_state = adopted,
            JoinStep::Wait | JoinStep::AskAll | JoinStep::Lost => {}
        }
    }

    /// A majority of those that vote elect one of them, take over what they know, and decide one
    /// entry more. How many are decided then, if there is such a majority.
    fn decide(&mut self, first: usize) -> Option<usize> {
        let size = self.0.len();
        let mut all: Vec<_> = (0..size).map(|at| (first + at) % size).collect();
        all.retain(|member| self.0[*member].replica_state.formed == Begun);
        all.truncate(size / 2 + 1);
        if all.len() <= size / 2 {
            return None;
        }
        let longest = all.iter().map(|member| self.0[*member].replica_state.length).max()?;
        for member in all {
            self.0[member].replica_state.length = longest + 1;
        }
        Some(longest as usize + 1)
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
                _ if one != other => group.answer_to(one, other),
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
                group.answer_to(one, other);
            }
        }
        prop_assert!(group.0.iter().all(|member| member.replica_state.formed == Begun));
    }
}
