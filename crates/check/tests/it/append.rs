//! The black-box route: single anomalies, and agreement with another checker on the same lists.
//!
//! Histories come from a serial execution; most of them then get a read or a fate changed. The
//! other checker (`adya`) gets the same transactions in its own form.

use adya::{Opts, Valid, Workload};
use muesli_check::{
    Anomaly, Checker, History, HistoryBuilder, HistoryHeader, Kind, Level, Options, Status, TxnId,
    Value,
};
use proptest::prelude::*;

use crate::random::Random;

#[derive(Clone, Debug)]
enum Op {
    Append(u64, u64),
    Read(u64, Vec<u64>),
}

#[derive(Clone, Debug)]
struct Txn {
    begin: u64,
    end: u64,
    status: Status,
    ops: Vec<Op>,
}

/// A serial execution over three lists, and a last transaction that reads them all.
fn generate(random: &mut Random, count: u64) -> Vec<Txn> {
    let mut lists = vec![Vec::new(); 3];
    let mut element = 0;
    let mut txns = Vec::new();
    for number in 0..count {
        let status = if random.once_in(8) { Status::Aborted } else { Status::Committed };
        let mut inside = lists.clone();
        let mut ops = Vec::new();
        for _ in 0..1 + random.below(4) {
            let key = random.below(3);
            if random.once_in(2) {
                element += 1;
                inside[key as usize].push(element);
                ops.push(Op::Append(key, element));
            } else {
                ops.push(Op::Read(key, inside[key as usize].clone()));
            }
        }
        if status == Status::Committed {
            lists = inside;
        }
        // Distinct instants, and the point of execution within every interval.
        let at = 1000 + number * 100;
        let (begin, end) = (at - 2 * random.below(150) - 1, at + 2 * random.below(150));
        txns.push(Txn { begin, end, status, ops });
    }
    let ops = lists.into_iter().zip(0..).map(|(list, key)| Op::Read(key, list)).collect();
    let at = 1_000_000;
    txns.push(Txn { begin: at, end: at + 1, status: Status::Committed, ops });
    txns
}

fn corrupt(random: &mut Random, txns: &mut [Txn]) {
    let last = txns.len() - 1;
    let victim = random.below(last as u64) as usize;
    let choice = random.below(5);
    let txn = &mut txns[victim];
    for op in &mut txn.ops {
        let Op::Read(_, list) = op else { continue };
        match choice {
            0 => drop(list.pop()),
            1 => list.truncate(list.len() / 2),
            2 if list.len() > 1 => list.swap(0, 1),
            3 if !list.is_empty() => drop(list.remove(0)),
            _ => {}
        }
    }
    if choice == 4 {
        txn.status = Status::Aborted;
    }
}

fn record(txns: &[Txn]) -> History {
    let mut builder = HistoryBuilder::new(Kind::Append);
    for (number, txn) in txns.iter().enumerate() {
        let id = TxnId::Numbered { node: 1, sequence: number as u64 };
        let header = HistoryHeader::committed(id, number as u64, txn.begin, txn.end);
        let mut record =
            builder.transaction(HistoryHeader { status: txn.status, ..header }).unwrap();
        for op in &txn.ops {
            match op {
                Op::Append(key, element) => {
                    record.append(key.to_string().as_bytes(), Value::Unsigned(*element)).unwrap();
                }
                Op::Read(key, list) => {
                    let list = list.iter().map(|element| Value::Unsigned(*element));
                    record.read_list(key.to_string().as_bytes(), list).unwrap();
                }
            }
        }
    }
    builder.finish()
}

/// The same transactions as invocations and completions in order of time.
fn in_the_other_form(txns: &[Txn]) -> adya::History {
    let mut events: Vec<(u64, bool, usize)> = Vec::new();
    for (process, txn) in txns.iter().enumerate() {
        events.extend([(txn.begin, true, process), (txn.end, false, process)]);
    }
    // At one instant invocations go first: equal readings of the clock order nothing.
    events.sort_by_key(|(time, invoke, process)| (*time, !*invoke, *process));
    let mut text = String::new();
    for (index, (_, invoke, process)) in events.into_iter().enumerate() {
        let txn = &txns[process];
        let name = match (invoke, txn.status) {
            (true, _) => "invoke",
            (false, Status::Committed) => "ok",
            (false, _) => "fail",
        };
        let ops: Vec<String> = txn.ops.iter().map(|op| other_op(op, invoke)).collect();
        let ops = ops.join(",");
        text += &format!(
            "{{\"index\":{index},\"type\":\"{name}\",\"process\":{process},\"value\":[{ops}]}}\n"
        );
    }
    adya::History::from_json(&text).unwrap()
}

fn other_op(op: &Op, invoke: bool) -> String {
    match op {
        Op::Append(key, element) => format!("[\"append\",{key},{element}]"),
        Op::Read(key, _) if invoke => format!("[\"r\",{key},null]"),
        Op::Read(key, list) => format!("[\"r\",{key},{list:?}]"),
    }
}

fn other_verdict(history: &adya::History, model: &str) -> Valid {
    let opts = Opts { models: vec![model.to_owned()], ..Opts::default() };
    adya::check(history, Workload::ListAppend, &opts).valid
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn both_checkers_agree(seed: u64, count in 2_u64..30, corruptions in 0_u64..3) {
        let mut random = Random(seed);
        let mut txns = generate(&mut random, count);
        for _ in 0..corruptions {
            corrupt(&mut random, &mut txns);
        }
        let history = record(&txns);
        let other = in_the_other_form(&txns);
        let checker = Checker::new(&history);
        for (level, model) in [
            (Level::Serializable, "serializable"),
            (Level::StrictSerializable, "strict-serializable"),
        ] {
            let verdict = checker.check(level, &Options::default());
            let valid = other_verdict(&other, model);
            if valid != Valid::Unknown {
                prop_assert_eq!(verdict.holds(), valid == Valid::True, "{} {:#?}", verdict, txns);
            }
            if corruptions == 0 {
                prop_assert!(verdict.holds(), "{}", verdict);
            }
        }
    }
}

#[test]
fn the_other_checker_has_an_opinion() {
    let mut random = Random(5);
    let decided = (0..200).filter(|_| {
        let mut txns = generate(&mut random, 12);
        corrupt(&mut random, &mut txns);
        other_verdict(&in_the_other_form(&txns), "serializable") != Valid::Unknown
    });
    assert!(decided.count() > 150);
}

#[test]
fn corruptions_are_found_often() {
    let mut random = Random(3);
    let broken = (0..200).filter(|_| {
        let mut txns = generate(&mut random, 12);
        corrupt(&mut random, &mut txns);
        let history = record(&txns);
        !Checker::new(&history).check(Level::Serializable, &Options::default()).holds()
    });
    assert!(broken.count() > 60);
}

fn history(lines: &[&str]) -> History {
    let mut text = String::from("{\"t\":\"meta\",\"kind\":\"append\"}\n");
    for (number, line) in lines.iter().enumerate() {
        let (status, ops) = line.split_once(' ').unwrap();
        text += &format!(
            "{{\"id\":\"T{number}\",\"b\":1,\"e\":9,\"st\":\"{status}\",\"ops\":[{ops}]}}\n"
        );
    }
    History::read(text.as_bytes()).unwrap()
}

#[test]
fn faults_of_lists_are_named() {
    use Anomaly::{
        DirtyRead, DuplicateElement, IncompatibleOrder, IntermediateRead, InternalRead,
        UnknownVersion, UnrepeatableRead,
    };
    let cases: [(&[&str], Anomaly); 9] = [
        (&[r#"a ["a","x",1]"#, r#"c ["r","x",[1]]"#], DirtyRead),
        (
            &[r#"c ["a","x",1],["a","x",2]"#, r#"c ["r","x",[1]]"#, r#"c ["r","x",[1,2]]"#],
            IntermediateRead,
        ),
        (&[r#"c ["r","x",[1]]"#], UnknownVersion),
        (&[r#"c ["a","x",1]"#, r#"c ["r","x",[1,1]]"#], DuplicateElement),
        (&[r#"c ["a","x",1]"#, r#"c ["a","x",1]"#], DuplicateElement),
        (
            &[r#"c ["a","x",1]"#, r#"c ["a","x",2]"#, r#"c ["r","x",[1,2]]"#, r#"c ["r","x",[2]]"#],
            IncompatibleOrder,
        ),
        (&[r#"c ["a","x",2],["a","x",1]"#, r#"c ["r","x",[1,2]]"#], IncompatibleOrder),
        (&[r#"c ["a","x",1],["r","x",[]]"#], InternalRead),
        (&[r#"c ["r","x",[]],["r","x",[1]]"#, r#"c ["a","x",1]"#], UnrepeatableRead),
    ];
    for (lines, anomaly) in cases {
        let history = history(lines);
        let verdict = Checker::new(&history).check(Level::Rr, &Options::default());
        let found = verdict.findings.iter().any(|finding| finding.anomaly == anomaly);
        assert!(found, "{lines:?} {verdict}");
    }
}

#[test]
fn appends_nobody_read_come_after_the_list() {
    // Both saw the empty list and appended: whichever came second lost the other's element.
    let both = history(&[r#"c ["r","x",[]],["a","x",1]"#, r#"c ["r","x",[]],["a","x",2]"#]);
    let verdict = Checker::new(&both).check(Level::Us, &Options::default());
    assert!(!verdict.holds());
    assert!(verdict.to_string().contains("an unread element"), "{verdict}");
    let one = history(&[r#"c ["r","x",[]],["a","x",1]"#, r#"c ["a","x",2]"#]);
    assert!(Checker::new(&one).check(Level::Opacity, &Options::default()).holds());
}

#[test]
fn interleaved_appends_of_two_transactions_are_a_write_cycle() {
    let lines = [r#"c ["a","x",1],["a","x",3]"#, r#"c ["a","x",2]"#, r#"c ["r","x",[1,2,3]]"#];
    let history = history(&lines);
    let verdict = Checker::new(&history).check(Level::Rr, &Options::default());
    assert_eq!(verdict.cycle.unwrap().transactions.len(), 2);
}

#[test]
fn an_unknown_append_that_was_read_is_committed() {
    let seen = history(&[r#"u ["a","x",1]"#, r#"c ["r","x",[1]]"#]);
    let verdict = Checker::new(&seen).check(Level::Opacity, &Options::default());
    assert!(verdict.holds(), "{verdict}");
    assert_eq!(verdict.stats.committed, 2);
}
