//! What is derived of plans, and what each participant does of one.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};

use muesli_core::procedure::NewValue;
use muesli_core::sabotage::Broken;
use muesli_core::{Refuses, Row, Scan, SmallBytes, SpaceId, Stop, Store, Touched};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::running::{PlanSwitch, run, survey};
use super::{
    PlanBuilder, PlanExplanation, PlanTable, PlanValue, PlannedProcedure, PlannedProcedureError,
    ProcedurePlan, RowRange, TracedRuns, traced,
};
use crate::procedures::DryRun;
use crate::{Key, arg, column};

const STOCK: PlanTable<(u32, u32), i64> = PlanTable::by_unit("stock", "shop", 1);
const LINES: PlanTable<(u32, u32), String> = PlanTable::by_unit("line", "shop", 1);
const LABELS: PlanTable<(u32,), String> = PlanTable::everywhere("label");
const SPACES: [&str; 3] = ["stock", "line", "label"];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Wanted {
    shop: u32,
    item: u32,
    count: i64,
}

/// An order at a shop, of items that other shops may supply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Entered {
    shop: u32,
    number: u32,
    lines: Vec<Wanted>,
}

/// Takes what is wanted, and writes down what it is called.
struct Order;

impl PlannedProcedure for Order {
    const NAME: &'static str = "order";
    type Arguments = Entered;
    type Answer = u64;

    fn plan(plan: &mut PlanBuilder<Entered>) -> PlanValue<u64> {
        let (shop, number) = (arg!(plan, shop), arg!(plan, number));
        let lines = arg!(plan, lines);
        let labels = plan.map(lines, |plan, line| {
            let item = column!(plan, line.item, item);
            let supplier = column!(plan, line.item, shop);
            let label = plan.read(LABELS, (item,));
            plan.refuse_unless("there is no such item", label, |_, label| label.is_some());
            plan.update(STOCK, (supplier, item), line.item, |_, stock, line| {
                Some(stock.unwrap_or(0) - line.count)
            });
            label
        });
        plan.insert(LINES, (shop, number), labels, |_, labels| {
            labels.iter().map(|label| (**label).clone().unwrap_or_default()).collect()
        });
        plan.compute("lines", lines, |_, lines| lines.len() as u64)
    }
}

fn explained<P: PlannedProcedure>() -> PlanExplanation {
    PlanExplanation::of::<P>()
}

#[test]
fn an_order_is_single_or_independent_and_refused_alike() {
    let order = explained::<Order>();
    assert_eq!((order.class, order.refuses), ("single or independent", "alike"), "{order}");
    assert_eq!(order.units, ["shop(lines[].shop)", "shop(shop)"]);
    assert_eq!(ProcedurePlan::of::<Order>().refuses(), Refuses::Alike);
    assert!(!order.read_only && order.shared.is_empty() && order.errors.is_empty());
    let shown = order.to_string();
    assert!(
        shown.contains("step 2, update `stock`(lines[].shop, lines[].item): at shop(lines[].shop)"),
        "{shown}"
    );
}

/// Plans of one argument, a pair of shops, and no answer.
macro_rules! plans {
    ($($name:ident $script:literal |$plan:ident, $from:ident, $to:ident| $body:block)+) => {$(
        struct $name;

        impl PlannedProcedure for $name {
            const NAME: &'static str = $script;
            type Arguments = (u32, u32);
            type Answer = ();

            fn plan($plan: &mut PlanBuilder<(u32, u32)>) -> PlanValue<()> {
                let $from = $plan.arg("from", |shops| shops.0);
                let $to = $plan.arg("to", |shops| shops.1);
                $body
                $plan.nothing()
            }
        }
    )+};
}

plans! {
    Crossing "crossing" |plan, from, to| {
        let one = plan.constant(1_u32);
        let stock = plan.read(STOCK, (from, one));
        let left = plan.field(stock, "left", |stock| stock.unwrap_or(0));
        plan.write(STOCK, (to, one), left, |_, left| *left);
    }
    SharedLeft "shared" |plan, from, to| {
        let one = plan.constant(1_u32);
        let stock = plan.shared(STOCK, (from, one));
        let left = plan.field(stock, "left", |stock| stock.unwrap_or(0));
        plan.write(STOCK, (to, one), left, |_, left| *left);
    }
    Guarded "guarded" |plan, from, to| {
        let one = plan.constant(1_u32);
        let stock = plan.read(STOCK, (from, one));
        plan.when(stock, |_, stock| stock.is_some(), |plan| {
            plan.delete(STOCK, (to, one));
        });
    }
    Alone "alone" |plan, from, to| {
        let one = plan.constant(1_u32);
        let stock = plan.read(STOCK, (from, one));
        plan.refuse_unless("too little", stock, |_, stock| stock.is_some_and(|it| it > 0));
        plan.update(STOCK, (to, one), (), |_, stock, ()| Some(stock.unwrap_or(0) + 1));
    }
    TwoRounds "two-rounds" |plan, from, _to| {
        let all = plan.scan(STOCK, (from,), RowRange::ALL);
        plan.each(all, |plan, row| {
            let other = plan.field(row.item, "value", |row| row.1 as u32);
            let one = plan.constant(1_u32);
            plan.delete(STOCK, (other, one));
        });
    }
    OutOfScope "scope" |plan, from, to| {
        let one = plan.constant(1_u32);
        let mut inner = None;
        plan.when((), |shops, ()| shops.0 > 1, |plan| inner = Some(plan.read(STOCK, (from, one))));
        let stock = inner.expect("it was written");
        plan.write(STOCK, (to, one), stock, |_, stock| stock.unwrap_or(0));
    }
    ReadAndWritten "read-and-written" |plan, from, _to| {
        let label = plan.read(LABELS, (from,));
        plan.refuse_unless("there is one", label, |_, label| label.is_none());
        plan.write(LABELS, (from,), (), |_, ()| "new".to_owned());
    }
    Empty "empty" |_plan, _from, _to| {}
    ScatteredUse "scattered" |plan, from, to| {
        let shops = plan.compute("shops", (from, to), |_, (from, to)| vec![*from, *to]);
        let one = plan.constant(1_u32);
        let all = plan.map(shops, |plan, shop| plan.read(STOCK, (shop.item, one)));
        plan.write(STOCK, (from, one), all, |_, all| all.len() as i64);
    }
    Restocked "restocked" |plan, from, to| {
        let shops = plan.compute("shops", (from, to), |_, (from, to)| vec![*from, *to]);
        plan.each(shops, |plan, shop| {
            let found = plan.scan(STOCK, (shop.item,), RowRange::ALL);
            plan.when(found, |_, found| !found.is_empty(), |plan| {
                let item = plan.field(found, "item", |found| found[0].0.1);
                plan.write(LINES, (shop.item, item), (), |_, ()| "restocked".to_owned());
            });
        });
    }
}

#[test]
fn values_that_cross_are_named_with_what_can_be_done() {
    let plan = ProcedurePlan::of::<Crossing>();
    let error = plan.errors()[0].to_string();
    for part in ["`crossing`", "step 2, write `stock`(to", "at shop(to)", ".left`", "shop(from)"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    for remedy in ["cut that row in two", "`shared`", "pass `stock#0.left` as an argument"] {
        assert!(error.contains(remedy), "{remedy} in {error}");
    }
    assert_eq!(explained::<Crossing>().class, "not one round");
    assert_eq!(explained::<SharedLeft>().class, "single or independent");
    assert_eq!(explained::<SharedLeft>().shared.len(), 1);
}

#[test]
fn conditions_and_lists_are_what_their_bodies_need() {
    let errors = explained::<Guarded>().errors;
    assert!(errors[0].contains("step 2, delete `stock`(to"), "{errors:?}");
    let errors = explained::<ScatteredUse>().errors;
    assert!(errors[0].contains("several units"), "{errors:?}");
}

#[test]
fn what_cannot_be_in_one_round_is_said() {
    let of = |errors: &[PlannedProcedureError]| errors.first().cloned().expect("an error");
    let two = of(ProcedurePlan::of::<TwoRounds>().errors());
    let PlannedProcedureError::TwoRounds { column, .. } = &two else { panic!("{two}") };
    assert_eq!(column, "stock#0[].value");
    let scope = of(ProcedurePlan::of::<OutOfScope>().errors());
    assert!(matches!(scope, PlannedProcedureError::Scope { .. }), "{scope}");
    let both = of(ProcedurePlan::of::<ReadAndWritten>().errors());
    assert!(matches!(both, PlannedProcedureError::ReadAndWritten { .. }), "{both}");
    let empty = of(ProcedurePlan::of::<Empty>().errors());
    assert!(matches!(empty, PlannedProcedureError::Empty { .. }), "{empty}");
    let refused = super::with::<Crossing>(muesli_core::Procedures::default());
    assert!(matches!(refused, Err(PlannedProcedureError::Crosses { .. })));
}

#[test]
fn who_refuses_by_its_own_data_has_a_vote() {
    let alone = explained::<Alone>();
    assert_eq!((alone.class, alone.refuses), ("single or coordinated", "alone"));
    assert_eq!(alone.refusals[0].at, "shop(from)");
}

/// The keys of one participant: shops of odd or of even numbers, and what is everywhere.
#[derive(Default)]
struct Participant {
    odd: bool,
    rows: BTreeMap<(SpaceId, SmallBytes), SmallBytes>,
    /// What is told; `None`: they vote.
    shared: Option<BTreeMap<SmallBytes, Option<SmallBytes>>>,
}

fn number_of(name: &str) -> Result<SpaceId, Stop> {
    let place = SPACES.iter().position(|space| *space == name);
    place.map(|place| SpaceId(place as u16)).ok_or_else(|| Stop::Faulty(name.to_owned()))
}

impl Store for Participant {
    fn space(&self, name: &str) -> Result<SpaceId, Stop> {
        number_of(name)
    }

    fn get(&mut self, space: SpaceId, key: &SmallBytes) -> Result<Option<SmallBytes>, Stop> {
        assert!(self.is_here(space, key, false), "{key:?} is elsewhere");
        Ok(self.rows.get(&(space, key.clone())).cloned())
    }

    fn put(&mut self, space: SpaceId, key: SmallBytes, value: NewValue) -> Result<(), Stop> {
        assert!(self.is_here(space, &key, true), "{key:?} is elsewhere");
        match value {
            Some(value) => self.rows.insert((space, key), value),
            None => self.rows.remove(&(space, key)),
        };
        Ok(())
    }

    fn scan(&mut self, scan: &Scan) -> Result<Vec<Row>, Stop> {
        let rows = self.rows.iter().filter(|((space, key), _)| {
            *space == scan.space && *key >= scan.lo && scan.hi.as_ref().is_none_or(|hi| key < hi)
        });
        Ok(rows.map(|((_, key), value)| (key.clone(), value.clone())).collect())
    }

    fn shared(
        &mut self,
        space: SpaceId,
        key: &SmallBytes,
    ) -> Result<Option<Option<SmallBytes>>, Stop> {
        let here = || self.rows.get(&(space, key.clone())).cloned();
        Ok(match &self.shared {
            Some(shared) => Some(shared.get(key).cloned().flatten()),
            None => self.is_here(space, key, false).then(here),
        })
    }

    fn is_here(&self, space: SpaceId, key: &SmallBytes, _: bool) -> bool {
        space == SpaceId(2) || key.as_slice().get(3).is_some_and(|it| (it % 2 == 1) == self.odd)
    }
}

fn stored<V: Serialize>(value: &V) -> SmallBytes {
    postcard::to_stdvec(value).expect("a row").into()
}

fn two_participants() -> [Participant; 2] {
    let label = |item: u32| ((SpaceId(2), (item,).encoded()), stored(&format!("label {item}")));
    [false, true].map(|odd| Participant { odd, rows: (1..=3).map(label).collect(), shared: None })
}

fn run_at<P: PlannedProcedure>(
    participant: &mut Participant,
    arguments: &P::Arguments,
    broken: Broken<PlanSwitch>,
) -> Result<Option<SmallBytes>, Stop> {
    let plan = ProcedurePlan::of::<P>();
    run(&plan, participant, arguments as &dyn Any, broken)
}

fn wanted(shop: u32, item: u32) -> Wanted {
    Wanted { shop, item, count: 2 }
}

#[test]
fn each_participant_does_the_steps_of_its_partition() {
    let order = Entered { shop: 1, number: 9, lines: vec![wanted(1, 1), wanted(2, 3)] };
    let [mut even, mut odd] = two_participants();
    for participant in [&mut even, &mut odd] {
        let answer = run_at::<Order>(participant, &order, Broken::default()).unwrap();
        assert_eq!(answer, Some(stored(&Some(2_u64))));
    }
    let stock = |it: &Participant, shop: u32, item: u32| {
        it.rows.get(&(SpaceId(0), (shop, item).encoded())).cloned()
    };
    assert_eq!(stock(&odd, 1, 1), Some(stored(&-2_i64)));
    assert_eq!(stock(&even, 2, 3), Some(stored(&-2_i64)));
    assert_eq!(stock(&odd, 2, 3).or(stock(&even, 1, 1)), None);
    let line = (SpaceId(1), (1_u32, 9_u32).encoded());
    assert_eq!(odd.rows.get(&line), Some(&stored(&"label 1label 3")));
    assert_eq!(even.rows.get(&line), None);
}

#[test]
fn all_refuse_an_item_that_there_is_not() {
    let order = Entered { shop: 1, number: 9, lines: vec![wanted(1, 1), wanted(2, 7)] };
    for mut participant in two_participants() {
        let refused = run_at::<Order>(&mut participant, &order, Broken::default());
        assert_eq!(refused, Err(Stop::Refused("there is no such item".into())));
    }
}

#[test]
fn what_is_elsewhere_is_not_absent() {
    let [mut even, mut odd] = two_participants();
    odd.rows.insert((SpaceId(0), (1_u32, 1_u32).encoded()), stored(&5_i64));
    for participant in [&mut even, &mut odd] {
        assert_eq!(run_at::<Alone>(participant, &(1, 2), Broken::default()).map(|_| ()), Ok(()));
    }
    // With the rule broken, who does not hold the stock takes it for used up, and refuses alone.
    let mut broken = Broken::default();
    broken.set(PlanSwitch::ElsewhereIsNotAbsent, false);
    let [mut even, _] = two_participants();
    let refused = run_at::<Alone>(&mut even, &(1, 2), broken);
    assert_eq!(refused, Err(Stop::Refused("too little".into())));
    assert_eq!(run_at::<Alone>(&mut odd, &(1, 2), broken).map(|_| ()), Ok(()));
}

#[test]
fn who_was_not_told_what_it_writes_by_stops() {
    let [mut even, mut odd] = two_participants();
    odd.rows.insert((SpaceId(0), (1_u32, 1_u32).encoded()), stored(&5_i64));
    let untold = run_at::<SharedLeft>(&mut even, &(1, 2), Broken::default());
    let Err(Stop::Faulty(text)) = untold else { panic!("{untold:?}") };
    assert!(text.contains("stock#0") && text.contains("granola-passing"), "{text}");
    let shared = BTreeMap::from([((1_u32, 1_u32).encoded(), Some(stored(&5_i64)))]);
    let mut shown_to = Participant { shared: Some(shared), ..even };
    run_at::<SharedLeft>(&mut shown_to, &(1, 2), Broken::default()).unwrap();
    let copied = shown_to.rows.get(&(SpaceId(0), (2_u32, 1_u32).encoded()));
    assert_eq!(copied, Some(&stored(&5_i64)));
}

#[test]
fn a_survey_says_where_fragments_are_and_what_they_may_touch() {
    let order = Entered { shop: 1, number: 9, lines: vec![wanted(1, 1), wanted(2, 3)] };
    let plan = ProcedurePlan::of::<Order>();
    let found = survey(&plan, &number_of, &order).unwrap();
    let shops: BTreeSet<_> = found.places.iter().map(|it| (it.space.0, it.key.clone())).collect();
    let shop = |space: u16, shop: u32| (space, (shop,).encoded());
    let everywhere = (2, SmallBytes::EMPTY);
    assert_eq!(shops, BTreeSet::from([shop(0, 1), shop(0, 2), shop(1, 1), everywhere]));
    let writes = [(0, (1, 1)), (0, (2, 3)), (1, (1, 9))];
    let key = |(space, key): (u16, (u32, u32))| Touched::Key(SpaceId(space), key.encoded());
    assert_eq!(found.touched.writes, writes.map(key));
}

#[test]
fn a_survey_of_a_long_list_takes_no_time_by_its_square_and_has_an_end() {
    let plan = ProcedurePlan::of::<Order>();
    let order = |count: u32| Entered {
        shop: 1,
        number: 9,
        lines: (0..count).map(|shop| wanted(shop, 1)).collect(),
    };
    let begun = std::time::Instant::now();
    let found = survey(&plan, &number_of, &order(40_000)).unwrap();
    assert_eq!((found.places.len(), found.touched.writes.len()), (40_000 + 2, 40_000 + 1));
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    let Err(Stop::Faulty(text)) = survey(&plan, &number_of, &order(100_000)) else { panic!() };
    assert!(text.contains("steps"), "{text}");
}

#[test]
fn rows_that_plans_touch_are_traced_with_those_that_each_needed() {
    let mut dry_run = DryRun::new(&SPACES);
    for item in 1_u32..4 {
        dry_run.put(dry_run.space("label"), (item,).encoded(), stored(&"label"));
    }
    let order = Entered { shop: 1, number: 9, lines: vec![wanted(1, 1), wanted(2, 3)] };
    let (done, traced_runs) = traced(9, &[], || dry_run.run_plan::<Order>(&order));
    let runs = traced_runs.runs;
    assert_eq!((done, runs.len()), (Ok(2), 1));
    assert!(runs[0].rows.iter().all(|row| row.named == row.parts.len()));
    let row = |table: &'static str, key: SmallBytes, needs: &[usize]| {
        (table, key, table != "label", needs.to_vec())
    };
    let found = runs[0].rows.iter();
    let found: Vec<_> =
        found.map(|it| (it.table, it.key.clone(), it.writes, it.needs.clone())).collect();
    let expected = [
        row("label", (1_u32,).encoded(), &[]),
        row("stock", (1_u32, 1_u32).encoded(), &[]),
        row("label", (3_u32,).encoded(), &[]),
        row("stock", (2_u32, 3_u32).encoded(), &[]),
        row("line", (1_u32, 9_u32).encoded(), &[0, 2]),
    ];
    assert_eq!(found, expected);
    // What a run touched that was refused is noted, too.
    let (_, traced_runs) = traced(9, &[], || {
        let [mut even, _] = two_participants();
        run_at::<Alone>(&mut even, &(2, 4), Broken::default())
    });
    let rows = &traced_runs.runs[0].rows;
    assert_eq!(rows.iter().map(|row| row.needs.len()).collect::<Vec<_>>(), [0]);
    assert_eq!(traced(9, &[], || ()).1, TracedRuns::default());
}

#[test]
fn empty_ranges_are_touched_and_each_body_needs_its_own_condition() {
    let mut dry_run = DryRun::new(&SPACES);
    for item in [3_u32, 4] {
        dry_run.put(dry_run.space("stock"), (2_u32, item).encoded(), stored(&5_i64));
    }
    let (done, traced_runs) = traced(9, &[], || dry_run.run_plan::<Restocked>(&(1, 2)));
    assert_eq!(done, Ok(()));
    let found: Vec<_> = traced_runs.runs[0]
        .rows
        .iter()
        .map(|row| (row.table, row.key.clone(), row.named, row.by_arguments, row.needs.clone()))
        .collect();
    let expected = [
        // Shop 1 has nothing, which had to be looked for there.
        ("stock", (1_u32,).encoded(), 1, 0b1, vec![]),
        ("stock", (2_u32, 3_u32).encoded(), 1, 0b1, vec![]),
        ("stock", (2_u32, 4_u32).encoded(), 1, 0b1, vec![]),
        // The item follows from what is found, and what shop 1 has does not matter to shop 2.
        ("line", (2_u32, 3_u32).encoded(), 2, 0b1, vec![1]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn runs_are_traced_as_far_as_there_may_be_rows() {
    let mut dry_run = DryRun::new(&SPACES);
    let (_, traced_runs) = traced(5, &[], || {
        for _ in 0..4 {
            dry_run.run_plan::<Restocked>(&(1, 2)).expect("it is not refused");
        }
    });
    let TracedRuns { runs, rows, left_out } = traced_runs;
    assert_eq!((runs.len(), rows, left_out), (2, 4, 2));
    // Nothing is noted of procedures that are apart, and their rows count toward nothing.
    let (_, traced_runs) = traced(1, &[Restocked::NAME], || {
        dry_run.run_plan::<Restocked>(&(1, 2)).expect("it is not refused");
    });
    assert_eq!(traced_runs, TracedRuns::default());
}

#[test]
fn a_run_of_a_long_list_is_traced_in_no_time_by_its_square() {
    let lines: Vec<_> = (0..40_000).map(|number| wanted(2 * number + 1, 1)).collect();
    let order = Entered { shop: 1, number: 9, lines };
    let [_, mut odd] = two_participants();
    let begun = std::time::Instant::now();
    let done = run_at::<Order>(&mut odd, &order, Broken::default()).unwrap();
    let untraced = begun.elapsed();
    let begun = std::time::Instant::now();
    let (again, traced_runs) = traced(100_000, &[], || {
        run_at::<Order>(&mut odd, &Entered { number: 10, ..order }, Broken::default()).unwrap()
    });
    assert_eq!((done.is_some(), again, traced_runs.rows), (true, done, 80_001));
    let most = 8 * untraced + std::time::Duration::from_secs(1);
    assert!(begun.elapsed() < most, "{:?}, and {untraced:?} untraced", begun.elapsed());
}

proptest! {
    /// A dry run is held to the footprint, and stops where it touches more.
    #[test]
    fn footprints_contain_what_dry_runs_touch(
        shop in 1_u32..5, number: u32,
        lines in prop::collection::vec((1_u32..5, 1_u32..5, 1_i64..9), 0..6),
    ) {
        let mut dry_run = DryRun::new(&SPACES);
        for item in 1_u32..4 {
            dry_run.put(dry_run.space("label"), (item,).encoded(), stored(&"label"));
        }
        let is_known = lines.iter().all(|(_, item, _)| *item < 4);
        let lines: Vec<_> =
            lines.into_iter().map(|(shop, item, count)| Wanted { shop, item, count }).collect();
        let count = lines.len() as u64;
        let ended = dry_run.run_plan::<Order>(&Entered { shop, number, lines });
        match is_known {
            true => prop_assert_eq!(ended, Ok(count)),
            false => prop_assert!(matches!(ended, Err(Stop::Refused(_))), "{ended:?}"),
        }
    }
}
