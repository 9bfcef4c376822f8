//! What must hold of the records after a run, by the books of the clients.

use muesli::{Db, Error};

use super::ledger::closed;
use super::record::{Record, UNITS};
use super::{SPACE, Ycsb, YcsbVariant};
use crate::check::{Check, Complaints};

/// So many records are read in one transaction.
const CHUNK: usize = 500;

pub(super) async fn check(ycsb: &Ycsb, db: &Db) -> Result<Vec<Check>, Error> {
    let (records, mut wrong) = read_records(ycsb, db).await?;
    let ledger = closed(&ycsb.ledgers);
    wrong.extend(&ledger.wrong_records);
    let changes: u64 = records.iter().map(|record| record.changes).sum();
    let bounds = ledger.changes..=ledger.changes + ledger.changes_perhaps;
    let counted = format!("{changes} counted, {bounds:?} committed");
    let mut checks = vec![
        Check::none_wrong("records are there and whole", &wrong, format!("{}", records.len())),
        Check {
            name: "counters show every committed change",
            ok: bounds.contains(&changes),
            details: counted,
        },
    ];
    if matches!(ycsb.variant, YcsbVariant::Transactional | YcsbVariant::Scanning) {
        let units: i64 = records.iter().map(|record| record.units).sum();
        let expected = UNITS * ycsb.keys.first_count() as i64;
        checks.push(Check {
            name: "units are conserved",
            ok: units == expected,
            details: format!("{units}, at first {expected}"),
        });
        let read = format!("{} read", ledger.groups_read);
        checks.push(Check::none_wrong("groups hold their units", &ledger.wrong_groups, read));
    }
    Ok(checks)
}

/// All records, and those that should be there and are not.
async fn read_records(ycsb: &Ycsb, db: &Db) -> Result<(Vec<Record>, Complaints), Error> {
    let (space, strict) = (db.space(SPACE)?, db.strict().read_only());
    let numbers: Vec<u64> = (0..ycsb.keys.given_out()).collect();
    let (mut records, mut wrong) = (Vec::new(), Complaints::default());
    for chunk in numbers.chunks(CHUNK) {
        let keys = || chunk.iter().map(|number| ycsb.keys.name(*number));
        let read = async |tx: &muesli::Tx| tx.get_many(space, keys()).await;
        let values = strict.transact_here(read).await?;
        for (&number, value) in chunk.iter().zip(values) {
            match value.map(|value| ycsb.decode(&value)) {
                Some(Ok(record)) if record.number == number => records.push(record),
                None if may_be_absent(ycsb, number) => {}
                found => wrong.add(|| format!("record {number} is {found:?}")),
            }
        }
    }
    Ok((records, wrong))
}

fn may_be_absent(ycsb: &Ycsb, number: u64) -> bool {
    ycsb.variant == YcsbVariant::Scanning || !ycsb.keys.is_acknowledged(number)
}
