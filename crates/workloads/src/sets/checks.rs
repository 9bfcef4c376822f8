//! What must hold of the structures after a run, by the books of the clients.
//!
//! A key is there if it was at first, plus adds, minus removes: each of them is 1 for those that
//! had an effect. A change of unknown outcome widens what may be. Sizes and sums follow from that.

use std::collections::BTreeMap;

use hashbrown::HashSet;
use muesli::structures::{Counter, Inspected};
use muesli::{Db, Error, Tx};

use super::structure::value_of;
use super::{SPACE, Sets, open};
use crate::check::{Check, Complaints};
use crate::nesting::open_layer::check_finished;

pub(super) async fn check(sets: &Sets, db: &Db) -> Result<Vec<Check>, Error> {
    let ended = match sets.nesting.may_be_open() {
        true => Some(check_finished(&open::layer(sets, db)?, db).await?),
        false => None,
    };
    let structures = sets.structures(db.space(SPACE)?);
    let strict = db.strict().read_only();
    let (mut unsound, mut wrong) = (Complaints::default(), Complaints::default());
    let mut size = 0;
    for (number, structure) in structures.iter().enumerate() {
        let inspected = strict.transact_here(async |tx| structure.inspect(tx).await).await?;
        for broken in &inspected.wrong {
            unsound.add(|| format!("structure {number}: {broken}"));
        }
        size += inspected.entries.len();
        judge_contents(sets, number, &inspected, &mut wrong);
    }
    let (mut walks, mut perhaps) = (0, 0);
    let (mut wrong_walks, mut wrong_answers) = (Complaints::default(), Complaints::default());
    for ledger in sets.ledgers.all() {
        walks += ledger.walks;
        perhaps += ledger.perhaps.len();
        wrong_walks.extend(&ledger.wrong_walks);
        wrong_answers.extend(&ledger.wrong_answers);
    }
    let first = sets.initial.len() * sets.count;
    let details = format!("{size} keys, at first {first}, {perhaps} changes of unknown outcome");
    let checks = [
        Check::none_wrong("structures are sound", &unsound, format!("{}", structures.len())),
        Check::none_wrong("contents are the committed changes", &wrong, details),
        Check::none_wrong("snapshots are sound", &wrong_walks, format!("{walks} walked")),
        Check::none_wrong("answers can be", &wrong_answers, String::new()),
    ];
    let tallied = if sets.grouped { Some(check_tallies(sets, db).await?) } else { None };
    Ok(checks.into_iter().chain(ended).chain(tallied).collect())
}

/// Whether open children with open children have counted what these did, and those that were undone
/// nothing.
async fn check_tallies(sets: &Sets, db: &Db) -> Result<Check, Error> {
    let space = db.space(open::TALLIES)?;
    let (strict, mut shown) = (db.strict().read_only(), Vec::new());
    for at in 0..sets.count {
        let rows = open::tallies(space, at);
        let read = async |tx: &Tx| Counter::get_many(tx, &rows).await;
        shown.push(strict.transact_here(read).await?.iter().sum::<i64>());
    }
    let mut wrong = Complaints::default();
    for (at, shows) in shown.iter().enumerate() {
        let (mut least, mut most) = (0, 0);
        for ledger in sets.ledgers.all() {
            let sure = ledger.tallied.get(&at).copied().unwrap_or_default();
            (least, most) = (least + sure, most + sure);
            for (_, by) in ledger.tallied_perhaps.iter().filter(|(of, _)| *of == at) {
                (least, most) = (least + by.min(&0), most + by.max(&0));
            }
        }
        if !(least..=most).contains(shows) {
            wrong.add(|| format!("the tally of structure {at} is {shows}, not {least}..={most}"));
        }
    }
    Ok(Check::none_wrong(
        "tallies count what open children of open ones did",
        &wrong,
        format!("{shown:?}"),
    ))
}

/// Whether the keys of a structure are those that the books allow.
fn judge_contents(
    sets: &Sets,
    number: usize,
    inspected: &Inspected<u64, u64>,
    wrong: &mut Complaints,
) {
    let mut there = HashSet::new();
    for (key, value) in &inspected.entries {
        if *key >= sets.phases.keys || *value != value_of(*key) || !there.insert(*key) {
            wrong.add(|| format!("structure {number} holds {key} with {value}"));
        }
    }
    let mut open: HashSet<(u64, i64)> = HashSet::new();
    // What is there, by the books; every key that anybody has seen.
    let mut balances: BTreeMap<u64, i64> = there.iter().map(|key| (*key, 0)).collect();
    sets.initial.iter().for_each(|key| *balances.entry(*key).or_default() += 1);
    for mut ledger in sets.ledgers.all() {
        ledger.begin_incarnation();
        let perhaps = ledger.perhaps.iter().filter(|change| change.structure == number);
        open.extend(perhaps.map(|change| (change.key, change.by)));
        for ((_, key), by) in ledger.sure.range((number, 0)..(number + 1, 0)) {
            *balances.entry(*key).or_default() += by;
        }
    }
    for (key, balance) in balances {
        let found = i64::from(there.contains(&key));
        // With open ends on one side the balance may be off by any number on that side.
        let right = match (open.contains(&(key, 1)), open.contains(&(key, -1))) {
            (false, false) => found == balance,
            (true, false) => found >= balance,
            (false, true) => found <= balance,
            (true, true) => true,
        };
        if !right {
            wrong
                .add(|| format!("structure {number}: {key} is there {found} times, not {balance}"));
        }
    }
}
