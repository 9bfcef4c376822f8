//! What must hold of the structures after a run, by the books of the clients.
//!
//! A key is there if it was at first, plus adds, minus removes: each of them is 1 for those that
//! had an effect. A change of unknown outcome widens what may be. Sizes and sums follow from that.

use std::collections::BTreeMap;

use hashbrown::HashSet;
use muesli::structures::Inspected;
use muesli::{Db, Error};

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
    Ok(checks.into_iter().chain(ended).collect())
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
