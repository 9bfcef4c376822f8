//! Sums that a workload keeps constant, like the total of all accounts of a bank.
//!
//! Every transaction that read all keys with the prefix must have seen the total. This needs the
//! values themselves in the history, not hashes.

use std::str::FromStr;

use thiserror::Error;

use crate::finding::{Anomaly, Findings};
use crate::history::{Atom, KeyId, Op, Row, SeenId, TxnIndex};
use crate::resolve::Resolved;

/// The values of the `count` keys that start with `prefix` always add up to `total`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SumCheck {
    /// The bytes that the keys start with.
    pub prefix: Vec<u8>,
    /// What the values add up to.
    pub total: i128,
    /// How many keys there are.
    pub count: usize,
}

/// Text that is not `prefix:total:count`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("sum `{0}` is not `prefix:total:count`, as in `acct/:1000:10`")]
pub struct SumCheckError(pub String);

impl FromStr for SumCheck {
    type Err = SumCheckError;

    fn from_str(text: &str) -> Result<Self, SumCheckError> {
        let parse = || {
            let (rest, count) = text.rsplit_once(':')?;
            let (prefix, total) = rest.rsplit_once(':')?;
            let (total, count) = (total.parse().ok()?, count.parse().ok()?);
            Some(SumCheck { prefix: prefix.as_bytes().to_vec(), total, count })
        };
        parse().ok_or_else(|| SumCheckError(text.to_owned()))
    }
}

/// How many transactions read all keys of the sum.
pub(crate) fn readers(resolved: &Resolved<'_>, sum_check: &SumCheck) -> usize {
    let summed = summed(resolved, sum_check);
    let read = |txn| values_of(resolved, sum_check, &summed, txn).is_some();
    resolved.history.indices().filter(|txn| read(*txn)).count()
}

/// For each key, whether it belongs to the sum.
fn summed(resolved: &Resolved<'_>, sum_check: &SumCheck) -> Vec<bool> {
    let keys = &resolved.history.keys;
    (0..keys.len() as u32).map(|key| keys.bytes(key).starts_with(&sum_check.prefix)).collect()
}

/// Adds a finding for every transaction that saw another total.
pub(crate) fn judge(resolved: &Resolved<'_>, sum_check: &SumCheck, findings: &mut Findings) {
    let history = resolved.history;
    let summed = summed(resolved, sum_check);
    for txn in history.indices() {
        if let Some(fault) = judge_transaction(resolved, sum_check, &summed, txn) {
            findings.add(Anomaly::Sum, resolved.committed[txn.index()], || {
                format!("{} {fault}", history.show_name(txn))
            });
        }
    }
}

fn judge_transaction(
    resolved: &Resolved<'_>,
    sum_check: &SumCheck,
    summed: &[bool],
    txn: TxnIndex,
) -> Option<String> {
    let values = values_of(resolved, sum_check, summed, txn)?;
    let mut sum = 0_i128;
    for (key, value) in &values {
        match value {
            Atom::Int(number) => sum += i128::from(*number),
            Atom::Unsigned(number) => sum += i128::from(*number),
            Atom::Unrecorded | Atom::Null | Atom::Json(_) => {
                let key = resolved.history.show_key(*key);
                return Some(format!("read {key}, which belongs to a sum, without a number"));
            }
        }
    }
    let prefix = String::from_utf8_lossy(&sum_check.prefix);
    (sum != sum_check.total).then(|| {
        format!(
            "read all {} keys of {prefix} with the sum {sum}, not {}",
            sum_check.count, sum_check.total
        )
    })
}

/// What a transaction read of the sum's keys, if it read them all.
fn values_of(
    resolved: &Resolved<'_>,
    sum_check: &SumCheck,
    summed: &[bool],
    txn: TxnIndex,
) -> Option<Vec<(KeyId, Atom)>> {
    let mut values = first_values(resolved, summed, txn);
    values.retain(|(_, value)| *value != Atom::Null);
    (values.len() == sum_check.count).then_some(values)
}

/// The value of the first read of each summed key, unless it was the transaction's own write.
fn first_values(resolved: &Resolved<'_>, summed: &[bool], txn: TxnIndex) -> Vec<(KeyId, Atom)> {
    let history = resolved.history;
    let mut values: Vec<(KeyId, Atom)> = Vec::new();
    let mut note = |row: Row| {
        if summed[row.key.index()] && row.seen != SeenId::Own {
            values.push((row.key, row.value));
        }
    };
    for op in history.ops_of(txn) {
        match *op {
            Op::Read { key, seen, value } => note(Row { key, seen, value }),
            Op::Scan { scan } => {
                history.rows[history.scans[scan as usize].rows.clone()]
                    .iter()
                    .copied()
                    .for_each(&mut note);
            }
            Op::Write { .. } | Op::Delete { .. } | Op::Append { .. } | Op::ReadList { .. } => {}
        }
    }
    values.sort_by_key(|(key, _)| *key);
    values.dedup_by_key(|(key, _)| *key);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_reads_from_the_right_so_that_prefixes_may_hold_colons() {
        let sum_check: SumCheck = "a:b:-5:10".parse().unwrap();
        assert_eq!(sum_check, SumCheck { prefix: b"a:b".to_vec(), total: -5, count: 10 });
        for bad in ["", "a", "a:1", "a:x:1", "a:1:-1"] {
            assert!(
                bad.parse::<SumCheck>().unwrap_err().to_string().contains("prefix:total:count")
            );
        }
    }
}
