//! The choice of a nesting model, by clients in a closed loop.

use super::*;
use crate::nesting_choice::meter::IDLE;
use crate::nesting_choice::tried::LeftOut;

const FLAT: NestingModel = NestingModel::Flat;
const CLOSED: NestingModel = NestingModel::Closed;
const OPEN: NestingModel = NestingModel::Open;

/// Some clients in a closed loop, whose transactions take so long, more or less.
struct Loop {
    policy: ChoicePolicy,
    now: u64,
    /// When who ends, and as what it runs.
    ends: Vec<(u64, NestingModel)>,
    number: u64,
    /// What is observed of each transaction with a model.
    sees: fn(NestingModel) -> NestingObservation,
}

/// Attempts end within parts and after them, so that each model may have something to save.
fn contended(_: NestingModel) -> NestingObservation {
    NestingObservation { in_part: [1, 0, 0, 0], after_part: 1, depth: 1, ..quiet(FLAT) }
}

/// No attempt ends but well.
fn quiet(_: NestingModel) -> NestingObservation {
    NestingObservation { depth: 1, parts: 3, ..NestingObservation::default() }
}

impl Loop {
    fn new(models: &[NestingModel]) -> Loop {
        let policy = ChoicePolicy::new(models, Nanos(0), None);
        Loop { policy, now: 0, ends: vec![(0, models[0]); 4], number: 0, sees: contended }
    }

    /// The next decision, after so many transactions at most.
    fn decides(&mut self, most: u64, took: impl Fn(NestingModel) -> u64) -> Option<Decided> {
        (0..most).find_map(|_| {
            self.run(1, &took);
            self.policy.take_decided()
        })
    }

    /// How long so many transactions took, together.
    fn run(&mut self, many: u64, took: impl Fn(NestingModel) -> u64) -> u64 {
        let from = self.now;
        for _ in 0..many {
            let client = (0..self.ends.len()).min_by_key(|it| self.ends[*it].0).unwrap();
            let (now, model) = self.ends[client];
            self.now = now;
            if self.number >= self.ends.len() as u64 {
                self.policy.observe(Nanos(now), model, &(self.sees)(model));
                self.policy.ended(Nanos(self.now), true);
            }
            let model = self.policy.begin(Nanos(self.now));
            self.number += 1;
            // From half as long to one and a half times.
            let drawn = self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
            self.ends[client] = (now + took(model) * (512 + drawn) / 1_024, model);
        }
        self.now - from
    }
}

fn fixed(flat: u64, closed: u64, open: u64) -> impl Fn(NestingModel) -> u64 {
    move |model| match model {
        FLAT => flat,
        CLOSED => closed,
        OPEN => open,
    }
}

const MICROS: u64 = 1_000;

/// How long so many transactions would take if all took so long.
fn least(many: u64, took: u64) -> f64 {
    (many * took) as f64 / 4.0
}

#[test]
fn the_fastest_is_chosen_and_comparing_costs_little() {
    for costs in [[100, 130, 250], [150, 100, 140], [200, 180, 100], [1_000, 500, 100]] {
        let [flat, closed, open] = costs.map(|it| it * MICROS);
        let best = costs.map(|it| it * MICROS).into_iter().min().unwrap();
        for sees in [contended, quiet] {
            let mut clients = Loop { sees, ..Loop::new(&[FLAT, CLOSED, OPEN]) };
            clients.run(3_000, fixed(flat, closed, open));
            let chosen = clients.policy.chosen().map(fixed(flat, closed, open));
            assert_eq!(chosen, Some(best), "{costs:?}");
            let all = clients.run(100_000, fixed(flat, closed, open));
            assert!(all as f64 <= 1.05 * least(100_000, best), "{costs:?}: {all}");
        }
    }
}

#[test]
fn what_is_left_out_for_having_nothing_to_save_loses_little_though_it_is_faster() {
    for closed in [93, 96, 99, 102] {
        let mut clients = Loop { sees: quiet, ..Loop::new(&[FLAT, CLOSED]) };
        clients.run(3_000, fixed(100 * MICROS, closed * MICROS, 0));
        let all = clients.run(100_000, fixed(100 * MICROS, closed * MICROS, 0));
        let best = closed.min(100) * MICROS;
        assert!(all as f64 <= 1.05 * least(100_000, best), "{closed}: {all}");
    }
}

#[test]
fn what_makes_no_difference_is_left_simple() {
    let mut clients = Loop::new(&[FLAT, CLOSED]);
    clients.run(3_000, fixed(100 * MICROS, 100 * MICROS, 0));
    assert_eq!(clients.policy.chosen(), Some(FLAT));
}

#[test]
fn a_change_is_followed() {
    let mut clients = Loop::new(&[FLAT, CLOSED]);
    clients.run(10_000, fixed(100 * MICROS, 150 * MICROS, 0));
    assert_eq!(clients.policy.chosen(), Some(FLAT));
    clients.run(10_000, fixed(300 * MICROS, 150 * MICROS, 0));
    assert_eq!(clients.policy.chosen(), Some(CLOSED));
    let all = clients.run(100_000, fixed(300 * MICROS, 150 * MICROS, 0));
    assert!(all as f64 <= 1.05 * least(100_000, 150 * MICROS), "{all}");
}

#[test]
fn open_children_must_gain_more_than_others() {
    for (open, expected) in [(95, FLAT), (70, OPEN)] {
        let mut clients = Loop::new(&[FLAT, OPEN]);
        clients.run(5_000, fixed(100 * MICROS, 0, open * MICROS));
        assert_eq!(clients.policy.chosen(), Some(expected), "{open}");
    }
}

#[test]
fn with_one_model_nothing_is_tried() {
    let mut clients = Loop::new(&[OPEN]);
    clients.run(1_000, fixed(1, 1, 1));
    assert_eq!(clients.policy.chosen(), Some(OPEN));
}

#[test]
fn nodes_with_one_clock_try_the_same_at_the_same_time() {
    let mut nodes = [0, 1].map(|_| Loop::new(&[FLAT, CLOSED, OPEN]));
    let took = fixed(200 * MICROS, 100 * MICROS, 300 * MICROS);
    nodes[1].run(100, &took);
    while nodes[0].now < nodes[1].now {
        nodes[0].run(1, &took);
    }
    let (mut same, mut tries) = (0, 0);
    while tries < 200 && nodes.iter().all(|it| it.policy.chosen().is_none()) {
        let models = nodes.each_ref().map(|it| it.policy.current());
        same += u32::from(models[0] == models[1]);
        tries += 1;
        let behind = usize::from(nodes[1].now < nodes[0].now);
        nodes[behind].run(1, &took);
    }
    assert!(tries > 50 && same * 10 > tries * 9, "{same} of {tries}");
}

#[test]
fn long_pauses_are_no_part_of_any_slot() {
    let mut policy = ChoicePolicy::new(&[FLAT, CLOSED], Nanos(0), None);
    let mut now = 0;
    for _ in 0..200 {
        policy.begin(Nanos(now));
        policy.ended(Nanos(now + 1_000), true);
        now += 3_600_000_000_000;
    }
    assert!(policy.meter.slot.busy <= 1_000, "{:?}", policy.meter.slot);
    assert!(policy.meter.at + policy.meter.length() * IDLE < now);
    // One that runs for a year is no more work than one that runs for a minute.
    policy.begin(Nanos(now));
    policy.ended(Nanos(now + 365 * 24 * 3_600_000_000_000), true);
    assert!(policy.meter.slot.busy <= policy.meter.length());
}

#[test]
fn the_same_transactions_lead_to_the_same_choices() {
    let decisions = || {
        let mut clients = Loop::new(&[FLAT, CLOSED, OPEN]);
        let mut decided = Vec::new();
        for _ in 0..20_000 {
            clients.run(1, fixed(120 * MICROS, 100 * MICROS, 110 * MICROS));
            let decision = clients.policy.take_decided();
            decided.extend(decision.map(|it| (it.begun, it.model, it.cause)));
        }
        decided
    };
    assert!(!decisions().is_empty());
    assert_eq!(decisions(), decisions());
}

fn left_out(decided: &Decided) -> Vec<Option<LeftOut>> {
    decided.tried.iter().map(|it| it.left_out).collect()
}

#[test]
fn models_that_have_nothing_to_save_are_tried_for_a_short_time() {
    let warm_up = |sees| {
        let mut clients = Loop { sees, ..Loop::new(&[FLAT, CLOSED, OPEN]) };
        let took = fixed(250 * MICROS, 252 * MICROS, 255 * MICROS);
        clients.decides(10_000, took).expect("a comparison ends")
    };
    let (contended, quiet) = (warm_up(contended), warm_up(quiet));
    assert_eq!((contended.model, quiet.model), (FLAT, FLAT));
    assert_eq!(left_out(&contended), [None; 3]);
    assert_eq!(left_out(&quiet)[1..], [Some(LeftOut::SavesNothing); 2]);
    let least = quiet.tried.iter().map(|it| it.took.committed).min().unwrap();
    let begun = (quiet.begun, contended.begun);
    assert!(least > 0 && 2 * begun.0 < begun.1, "{least} {begun:?}");
}

#[test]
fn a_model_that_is_faster_is_chosen_whatever_it_saves() {
    let mut clients = Loop { sees: quiet, ..Loop::new(&[FLAT, CLOSED, OPEN]) };
    clients.run(10_000, fixed(100 * MICROS, 80 * MICROS, 50 * MICROS));
    assert_eq!(clients.policy.chosen(), Some(OPEN), "it ends waits for locks, say");
}

#[test]
fn closed_children_are_not_tried_again_where_flat_transactions_never_ended_in_a_part() {
    let mut clients = Loop { sees: quiet, ..Loop::new(&[FLAT, CLOSED, OPEN]) };
    let took = || fixed(100 * MICROS, 110 * MICROS, 150 * MICROS);
    let first = clients.decides(10_000, took()).expect("a comparison ends");
    assert!(first.tried[1].took.attempts > 0);
    let due = clients.decides(100_000, took()).expect("another one is due");
    assert_eq!((due.cause, due.model), (ComparisonCause::Due, FLAT));
    assert_eq!(due.tried[1].took.attempts, 0);
    assert!(due.tried[2].took.attempts > 0, "locks may be waited for");
    clients.sees = contended;
    let all = |decided: &Decided| decided.tried.iter().all(|it| it.took.attempts > 0);
    let compared = (0..10).find_map(|_| clients.decides(100_000, took()).filter(all));
    assert!(compared.is_some(), "attempts end in parts now");
}

#[test]
fn attempts_that_end_otherwise_are_a_reason_to_compare_anew() {
    let mut clients = Loop { sees: quiet, ..Loop::new(&[FLAT, CLOSED]) };
    let before = fixed(100 * MICROS, 110 * MICROS, 0);
    clients.decides(10_000, before).expect("a comparison ends");
    // Long after the last comparison, and long before the next.
    while clients.policy.own.as_ref().unwrap().keep < 256 {
        clients.decides(1_000_000, fixed(100 * MICROS, 110 * MICROS, 0)).unwrap();
    }
    clients.run(5_000, fixed(100 * MICROS, 110 * MICROS, 0));
    clients.sees = contended;
    let after = || fixed(110 * MICROS, 60 * MICROS, 0);
    let decided = clients.decides(5_000, after()).expect("what ends where has changed");
    assert_eq!((decided.cause, decided.model), (ComparisonCause::Observed, CLOSED));
}

#[test]
fn what_was_observed_of_a_model_does_not_count_for_another() {
    let mut policy = ChoicePolicy::new(&[FLAT, CLOSED], Nanos(0), None);
    policy.observe(Nanos(0), CLOSED, &contended(CLOSED));
    assert_eq!(policy.meter.slot.seen, NestingObservation::default());
    policy.observe(Nanos(0), FLAT, &contended(FLAT));
    assert_eq!(policy.meter.slot.seen, contended(FLAT));
}

/// Where children are undone alone there are no flat transactions: closed children are what open
/// ones are compared with.
#[test]
fn the_simplest_is_compared_with_others_and_not_with_itself() {
    for (costs, best) in [([100, 100], CLOSED), ([100, 300], CLOSED), ([300, 100], OPEN)] {
        let [closed, open] = costs.map(|it| it * MICROS);
        for sees in [contended, quiet] {
            let mut clients = Loop { sees, ..Loop::new(&[CLOSED, OPEN]) };
            clients.run(3_000, fixed(u64::MAX, closed, open));
            assert_eq!(clients.policy.chosen(), Some(best), "{costs:?}");
        }
    }
}

/// A client whose transactions are short, and far between.
#[test]
fn a_comparison_of_rare_transactions_ends() {
    let mut policy = ChoicePolicy::new(&[FLAT, CLOSED], Nanos(0), None);
    let mut now = 0;
    for _ in 0..20_000 {
        let model = policy.begin(Nanos(now));
        now += fixed(100 * MICROS, 200 * MICROS, 0)(model);
        policy.observe(Nanos(now), model, &contended(model));
        policy.ended(Nanos(now), true);
        now += 300_000 * MICROS;
    }
    assert_eq!(policy.chosen(), Some(FLAT));
}

#[test]
fn what_has_nothing_to_compare_counts_nothing() {
    let mut policy = ChoicePolicy::new(&[CLOSED], Nanos(0), None);
    for _ in 0..4 {
        assert_eq!(policy.begin(Nanos(0)), CLOSED);
    }
    policy.attempt(Nanos(u64::MAX - 1));
    policy.observe(Nanos(u64::MAX), CLOSED, &contended(CLOSED));
    assert_eq!((policy.meter.slot.busy, policy.meter.slot.seen.after_part), (0, 0));
}
