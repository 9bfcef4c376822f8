//! The fast checker against a slow second one that tries every order of a few transactions.
//!
//! The slow one replays transactions one after the other: a transaction may come next if every
//! read sees the current version of its key and every write installs the version that follows it.
//! Sound histories come from a serial execution with overlapping intervals; half of them then get
//! a few of their reads, versions or intervals changed.

use std::collections::BTreeMap;

use muesli_check::{
    Checker, History, HistoryBuilder, HistoryHeader, Kind, Level, Options, Seen, Status, TxnId,
    Value, Version,
};
use proptest::prelude::*;

use crate::random::Random;

const KEYS: u64 = 3;

#[derive(Clone, Debug)]
struct Txn {
    session: u64,
    begin: u64,
    end: u64,
    status: Status,
    /// Key and version, 0 the initial one; a scan reads all keys from its low end on.
    reads: Vec<(u64, u64)>,
    scan_low: Option<u64>,
    writes: Vec<(u64, u64)>,
}

impl Txn {
    fn committed(&self) -> bool {
        self.status == Status::Committed
    }

    fn ended_before(&self, other: &Txn) -> bool {
        self.status != Status::Running && self.end < other.begin
    }
}

/// A serial execution of `count` transactions.
fn generate(random: &mut Random, count: u64) -> Vec<Txn> {
    let mut latest = [0_u64; KEYS as usize];
    (0..count).map(|number| generate_transaction(random, number, &mut latest)).collect()
}

fn generate_transaction(random: &mut Random, number: u64, latest: &mut [u64]) -> Txn {
    let status = match random.below(6) {
        0 => Status::Aborted,
        1 if random.once_in(2) => Status::Running,
        _ => Status::Committed,
    };
    let scan_low = random.once_in(4).then(|| random.below(KEYS));
    let mut reads: Vec<(u64, u64)> = Vec::new();
    for key in 0..KEYS {
        let scanned = scan_low.is_some_and(|low| key >= low);
        if scanned || (scan_low.is_none() && random.once_in(2)) {
            reads.push((key, latest[key as usize]));
        }
    }
    let mut writes = Vec::new();
    for key in 0..KEYS {
        if random.once_in(3) {
            let version = latest[key as usize] + 1 + random.below(2);
            writes.push((key, version));
            if status == Status::Committed {
                latest[key as usize] = version;
            }
        }
    }
    let at = 100 + number * 10;
    let (begin, end) = (at - random.below(15), at + random.below(15));
    Txn { session: random.below(2), begin, end, status, reads, scan_low, writes }
}

/// Changes what a transaction read, when it ran, or which versions two writers installed.
fn corrupt(random: &mut Random, txns: &mut [Txn]) {
    let victim = random.below(txns.len() as u64) as usize;
    match random.below(3) {
        0 => {
            let versions: Vec<(u64, u64)> =
                txns.iter().filter(|t| t.committed()).flat_map(|t| t.writes.clone()).collect();
            for read in &mut txns[victim].reads {
                let of_key: Vec<u64> =
                    versions.iter().filter(|w| w.0 == read.0).map(|w| w.1).collect();
                let choice = random.below(of_key.len() as u64 + 1) as usize;
                read.1 = of_key.get(choice).copied().unwrap_or(0);
            }
            let own = txns[victim].writes.clone();
            txns[victim].reads.iter_mut().filter(|read| own.contains(read)).for_each(|r| r.1 = 0);
        }
        1 => {
            let shift = random.below(60);
            txns[victim].begin += shift;
            txns[victim].end += shift;
        }
        _ => {
            let other = random.below(txns.len() as u64) as usize;
            for mine in 0..txns[victim].writes.len() {
                let (key, version) = txns[victim].writes[mine];
                let both = txns[victim].committed() && txns[other].committed();
                let theirs = txns[other].writes.iter_mut().find(|write| write.0 == key);
                if let (true, Some(theirs)) = (both && victim != other, theirs) {
                    let swapped = std::mem::replace(&mut theirs.1, version);
                    txns[victim].writes[mine].1 = swapped;
                }
            }
            remove_future_reads(txns);
        }
    }
}

/// A read of the transaction's own later write is a finding, not a matter of order.
fn remove_future_reads(txns: &mut [Txn]) {
    for txn in txns {
        let own = txn.writes.clone();
        txn.reads.iter_mut().filter(|read| own.contains(read)).for_each(|read| read.1 = 0);
    }
}

fn record(txns: &[Txn]) -> History {
    let mut builder = HistoryBuilder::new(Kind::Version);
    for (number, txn) in txns.iter().enumerate() {
        let id = TxnId::Numbered { node: 0, sequence: number as u64 };
        let header = HistoryHeader::committed(id, txn.session, txn.begin, txn.end);
        let mut record =
            builder.transaction(HistoryHeader { status: txn.status, ..header }).unwrap();
        let names: Vec<String> = (0..KEYS).map(|key| key.to_string()).collect();
        match txn.scan_low {
            Some(low) => {
                let seen = txn.reads.iter().filter(|(_, version)| *version > 0);
                let rows = seen.map(|(key, version)| {
                    (names[*key as usize].as_bytes(), Seen::from(*version), Value::Unrecorded)
                });
                record.scan(names[low as usize].as_bytes(), None, rows).unwrap();
            }
            None => {
                for (key, version) in &txn.reads {
                    let name = names[*key as usize].as_bytes();
                    record.read(name, *version, Value::Unrecorded).unwrap();
                }
            }
        }
        for (key, version) in &txn.writes {
            let version = txn.committed().then_some(Version::Number(*version));
            record.write(names[*key as usize].as_bytes(), version, Value::Unrecorded).unwrap();
        }
    }
    builder.finish()
}

/// Whether some order of `members` replays and puts `before` pairs in order.
fn replays(txns: &[Txn], members: &[usize], before: &dyn Fn(usize, usize) -> bool) -> bool {
    let mut chains: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for txn in txns.iter().filter(|txn| txn.committed()) {
        txn.writes.iter().for_each(|(key, version)| chains.entry(*key).or_default().push(*version));
    }
    chains.values_mut().for_each(|chain| chain.sort_unstable());
    let mut left = members.to_vec();
    place_next(txns, &chains, &mut BTreeMap::new(), &mut left, before)
}

fn place_next(
    txns: &[Txn],
    chains: &BTreeMap<u64, Vec<u64>>,
    current: &mut BTreeMap<u64, u64>,
    left: &mut Vec<usize>,
    before: &dyn Fn(usize, usize) -> bool,
) -> bool {
    if left.is_empty() {
        return true;
    }
    for choice in 0..left.len() {
        let next = left[choice];
        let txn = &txns[next];
        let follows = |(key, version): &(u64, u64)| {
            let now = current.get(key).copied().unwrap_or(0);
            chains[key].iter().find(|newer| **newer > now) == Some(version)
        };
        let sees = |(key, version): &(u64, u64)| current.get(key).copied().unwrap_or(0) == *version;
        let allowed = left.iter().all(|other| *other == next || !before(*other, next))
            && txn.reads.iter().all(sees)
            && (!txn.committed() || txn.writes.iter().all(follows));
        if !allowed {
            continue;
        }
        let saved = current.clone();
        if txn.committed() {
            current.extend(txn.writes.iter().copied());
        }
        left.remove(choice);
        let done = place_next(txns, chains, current, left, before);
        left.insert(choice, next);
        *current = saved;
        if done {
            return true;
        }
    }
    false
}

fn slow_holds(txns: &[Txn], level: Level, options: &Options) -> bool {
    let all: Vec<usize> = (0..txns.len()).collect();
    let select = |wanted: &dyn Fn(&Txn) -> bool| -> Vec<usize> {
        all.iter().copied().filter(|txn| wanted(&txns[*txn])).collect()
    };
    let update = |txn: &Txn| txn.committed() && !txn.writes.is_empty();
    let real_time = |a: usize, b: usize| match level {
        _ if options.update_strict => {
            update(&txns[a]) && update(&txns[b]) && txns[a].ended_before(&txns[b])
        }
        Level::StrictSerializable | Level::Opacity => txns[a].ended_before(&txns[b]),
        _ => false,
    };
    let session = |a: usize, b: usize| {
        let (first, second) = (&txns[a], &txns[b]);
        let returned = first.status != Status::Running;
        let in_order = (first.begin, a) < (second.begin, b) && first.end <= second.begin;
        options.session_order && first.session == second.session && returned && in_order
    };
    let before = |a: usize, b: usize| a != b && (real_time(a, b) || session(a, b));
    match level {
        Level::Serializable | Level::StrictSerializable => {
            replays(txns, &select(&Txn::committed), &before)
        }
        Level::SerializableAttempts | Level::Opacity => replays(txns, &all, &before),
        Level::Us | Level::Eus => {
            let updates = select(&update);
            let judged = |txn: &Txn| !update(txn) && (txn.committed() || level == Level::Eus);
            let with = |reader: usize| {
                let members: Vec<usize> = updates.iter().copied().chain([reader]).collect();
                replays(txns, &members, &before)
            };
            replays(txns, &updates, &before) && select(&judged).into_iter().all(with)
        }
        Level::Rr | Level::Pl2 => unreachable!("not decided by replay"),
    }
}

/// An uncommitted transaction may read only versions that exist; mutations keep that true, but a
/// read of a version whose writer changed may not.
fn all_reads_exist(txns: &[Txn]) -> bool {
    let exists = |read: &(u64, u64)| {
        read.1 == 0 || txns.iter().any(|txn| txn.committed() && txn.writes.contains(read))
    };
    txns.iter().all(|txn| txn.reads.iter().all(exists))
}

fn compare(txns: &[Txn]) -> Result<[u32; 2], TestCaseError> {
    let history = record(txns);
    let checker = Checker::new(&history);
    let mut counts = [0; 2];
    for &level in &Level::ALL[2..] {
        for (session_order, update_strict) in
            [(false, false), (true, false), (false, true), (true, true)]
        {
            let options = Options { session_order, update_strict, ..Options::default() };
            let verdict = checker.check(level, &options);
            let slow = slow_holds(txns, level, &options);
            prop_assert_eq!(verdict.holds(), slow, "{} {:?} {:#?}", verdict, options, txns);
            counts[usize::from(slow)] += 1;
        }
    }
    Ok(counts)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn the_fast_checker_agrees_with_trying_every_order(seed: u64, count in 2_u64..=6) {
        let mut random = Random(seed);
        let mut txns = generate(&mut random, count);
        for _ in 0..random.below(4) {
            corrupt(&mut random, &mut txns);
        }
        prop_assume!(all_reads_exist(&txns));
        compare(&txns)?;
    }

    #[test]
    fn a_serial_execution_holds_at_every_level(seed: u64, count in 1_u64..200) {
        let txns = generate(&mut Random(seed), count);
        let history = record(&txns);
        let checker = Checker::new(&history);
        for level in [Level::Rr, Level::Pl2, Level::Us, Level::Eus, Level::Serializable] {
            let verdict = checker.check(level, &Options::default());
            prop_assert!(verdict.holds(), "{}", verdict);
        }
        // Give every transaction an interval of its own, in the order of execution.
        let mut apart = txns;
        for (number, txn) in apart.iter_mut().enumerate() {
            (txn.begin, txn.end) = (number as u64 * 10, number as u64 * 10 + 9);
        }
        let history = record(&apart);
        let options =
            Options { session_order: true, ..Options::default() };
        for level in Level::ALL {
            let verdict = Checker::new(&history).check(level, &options);
            prop_assert!(verdict.holds(), "{}", verdict);
        }
    }
}

#[test]
fn both_answers_are_common_among_the_generated_histories() {
    let mut random = Random(7);
    let mut totals = [0; 2];
    for _ in 0..300 {
        let mut txns = generate(&mut random, 5);
        for _ in 0..random.below(4) {
            corrupt(&mut random, &mut txns);
        }
        if all_reads_exist(&txns) {
            let counts = compare(&txns).unwrap();
            totals = [totals[0] + counts[0], totals[1] + counts[1]];
        }
    }
    assert!(totals[0] > 500 && totals[1] > 500, "{totals:?}");
}

#[test]
fn a_large_tangle_is_answered_with_a_short_cycle() {
    let mut random = Random(11);
    let mut builder = HistoryBuilder::new(Kind::Version);
    for number in 1..=50_000_u64 {
        let id = TxnId::Numbered { node: 0, sequence: number };
        let mut txn = builder.transaction(HistoryHeader::committed(id, 0, number, number)).unwrap();
        // Everyone writes the next version of one key and reads some version of the other.
        let (own, other) = if number.is_multiple_of(2) { (b"a", b"b") } else { (b"b", b"a") };
        let version = |number: u64| number.div_ceil(2);
        txn.read(other, random.below(25_000), Value::Unrecorded).unwrap();
        txn.write(own, Some(Version::Number(version(number))), Value::Unrecorded).unwrap();
    }
    let history = builder.finish();
    for level in [Level::Us, Level::Serializable, Level::StrictSerializable] {
        let verdict = muesli_check::check(&history, level, &Options::default());
        assert!(verdict.cycle.is_some_and(|cycle| (2..=4).contains(&cycle.edges.len())));
    }
}
