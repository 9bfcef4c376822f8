//! One small history per anomaly: which levels it breaks, and which it does not.

use muesli_check::{Anomaly, Checker, EdgeKind, History, Level, Options, Verdict};

/// A history from lines `id session begin end status ops`, which reads better than JSON.
fn history(lines: &[&str]) -> History {
    let mut text = String::new();
    for line in lines {
        if line.starts_with('{') {
            text.push_str(line);
        } else {
            let [id, s, b, e, st, ops] = line.splitn(6, ' ').collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            text.push_str(&format!(
                r#"{{"id":"{id}","s":{s},"b":{b},"e":{e},"st":"{st}","ops":{ops}}}"#
            ));
        }
        text.push('\n');
    }
    History::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn judge(history: &History, level: Level) -> Verdict {
    Checker::new(history).check(level, &Options::default())
}

/// Asserts that exactly the levels in `broken` are broken.
fn assert_breaks(lines: &[&str], broken: &[Level]) {
    let history = history(lines);
    for level in Level::ALL {
        let verdict = judge(&history, level);
        assert_eq!(!verdict.holds(), broken.contains(&level), "{verdict}");
    }
}

fn assert_finds(lines: &[&str], level: Level, anomaly: Anomaly) {
    let verdict = judge(&history(lines), level);
    assert!(verdict.findings.iter().any(|finding| finding.anomaly == anomaly), "{verdict}");
    assert!(!verdict.holds());
    assert!(verdict.to_string().contains(anomaly.name()));
}

/// From a level on, as the table of all levels has them.
const SERIALIZABLE_UP: &[Level] = Level::ALL.split_at(4).1;
const UPDATES_UP: &[Level] = Level::ALL.split_at(2).1;

#[test]
fn an_empty_history_holds() {
    assert_breaks(&[], &[]);
}

#[test]
fn g0_write_cycle_breaks_every_level() {
    let lines =
        [r#"A 1 1 9 c [["w","x",1],["w","y",2]]"#, r#"B 2 1 9 c [["w","x",2],["w","y",1]]"#];
    assert_breaks(&lines, &Level::ALL);
    let cycle = judge(&history(&lines), Level::Rr).cycle.unwrap();
    assert!(cycle.edges.iter().all(|edge| edge.kind == EdgeKind::WriteWrite));
}

#[test]
fn g1a_aborted_read_breaks_every_level() {
    let lines = [r#"A 1 1 2 a [["w","x",1,5]]"#, r#"B 2 3 4 c [["r","x",1,5]]"#];
    assert_breaks(&lines, &Level::ALL);
    assert_finds(&lines, Level::Rr, Anomaly::DirtyRead);
}

#[test]
fn g1b_intermediate_read_breaks_every_level() {
    let lines = [r#"A 1 1 2 c [["w","x",1],["w","x",2]]"#, r#"B 2 1 4 c [["r","x",1]]"#];
    assert_breaks(&lines, &Level::ALL);
    assert_finds(&lines, Level::Rr, Anomaly::IntermediateRead);
}

#[test]
fn g1c_circular_information_flow_breaks_all_but_rr() {
    let lines =
        [r#"A 1 1 9 c [["w","x",1],["r","y",1]]"#, r#"B 2 1 9 c [["w","y",1],["r","x",1]]"#];
    let broken: Vec<Level> = Level::ALL.into_iter().filter(|level| *level != Level::Rr).collect();
    assert_breaks(&lines, &broken);
}

#[test]
fn unrepeatable_read_breaks_all_but_pl2() {
    let lines =
        [r#"A 1 1 9 c [["r","x",0],["r","x",1]]"#, r#"B 2 1 9 c [["r","x",0],["w","x",1]]"#];
    let broken: Vec<Level> = Level::ALL.into_iter().filter(|level| *level != Level::Pl2).collect();
    assert_breaks(&lines, &broken);
}

#[test]
fn lost_update_breaks_update_serializability() {
    let lines =
        [r#"A 1 1 9 c [["r","x",0],["w","x",1]]"#, r#"B 2 1 9 c [["r","x",0],["w","x",2]]"#];
    assert_breaks(&lines, UPDATES_UP);
}

#[test]
fn write_skew_breaks_update_serializability() {
    let lines = [
        r#"A 1 1 9 c [["r","x",0],["r","y",0],["w","x",1]]"#,
        r#"B 2 1 9 c [["r","x",0],["r","y",0],["w","y",1]]"#,
    ];
    assert_breaks(&lines, UPDATES_UP);
    let cycle = judge(&history(&lines), Level::Serializable).cycle.unwrap();
    let kinds: Vec<EdgeKind> = cycle.edges.iter().map(|edge| edge.kind).collect();
    assert_eq!(kinds, [EdgeKind::ReadWrite, EdgeKind::ReadWrite]);
    assert_eq!(cycle.edges[0].key, "y");
    assert_eq!((&*cycle.edges[0].from_version, &*cycle.edges[0].to_version), ("0", "1"));
}

#[test]
fn read_skew_of_a_reader_breaks_update_serializability() {
    let lines =
        [r#"A 1 1 9 c [["w","x",1],["w","y",1]]"#, r#"R 2 1 9 c [["r","x",1],["r","y",0]]"#];
    assert_breaks(&lines, UPDATES_UP);
}

#[test]
fn read_skew_of_an_aborted_reader_breaks_what_judges_attempts() {
    let lines =
        [r#"A 1 1 9 c [["w","x",1],["w","y",1]]"#, r#"R 2 1 9 a [["r","x",1],["r","y",0]]"#];
    assert_breaks(&lines, &[Level::Eus, Level::SerializableAttempts, Level::Opacity]);
}

#[test]
fn a_long_fork_of_attempts_breaks_one_order_of_all() {
    let lines = [
        r#"A 1 1 9 c [["w","x",1]]"#,
        r#"B 2 1 9 c [["w","y",1]]"#,
        r#"R 3 1 9 a [["r","x",1],["r","y",0]]"#,
        r#"S 4 1 null r [["r","x",0],["r","y",1]]"#,
    ];
    assert_breaks(&lines, &[Level::SerializableAttempts, Level::Opacity]);
    let cycle = judge(&history(&lines), Level::SerializableAttempts).cycle.unwrap();
    assert!(cycle.edges.iter().all(|edge| edge.kind != EdgeKind::RealTime));
}

#[test]
fn two_readers_of_a_long_fork_are_update_serializable_but_not_serializable() {
    let lines = [
        r#"A 1 1 9 c [["w","x",1]]"#,
        r#"B 2 1 9 c [["w","y",1]]"#,
        r#"R 3 1 9 c [["r","x",1],["r","y",0]]"#,
        r#"S 4 1 9 c [["r","x",0],["r","y",1]]"#,
    ];
    assert_breaks(&lines, SERIALIZABLE_UP);
}

#[test]
fn phantom_is_an_anti_dependency_of_the_scan() {
    let lines = [
        r#"A 1 1 9 c [["s","a","m",[]],["w","z",1]]"#,
        r#"B 2 1 9 c [["s","n",null,[]],["w","b",1]]"#,
    ];
    assert_breaks(&lines, UPDATES_UP);
    let cycle = judge(&history(&lines), Level::Serializable).cycle.unwrap();
    assert_eq!(cycle.edges[0].key, "b");
    assert_eq!(cycle.edges[1].key, "z");
    // Outside the range there is no phantom.
    let outside = [
        r#"A 1 1 9 c [["s","a","b",[]],["w","z",1]]"#,
        r#"B 2 1 9 c [["s","n",null,[]],["w","b",1]]"#,
    ];
    assert_breaks(&outside, &[]);
}

#[test]
fn a_scan_does_not_count_its_rows_and_own_inserts_as_absent() {
    let lines = [
        r#"A 1 1 2 c [["w","b",1,7]]"#,
        r#"B 1 3 4 c [["s","a","z",[["b",1,7]]],["w","c",1],["s","a","z",[["b",1],["c","own"]]]]"#,
        r#"C 1 5 6 c [["d","b",2],["s","a","z",[["c",1]]]]"#,
        r#"D 1 7 8 c [["s","a","z",[["b",2,null],["c",1]]]]"#,
    ];
    assert_breaks(&lines, &[]);
    let forgets = [r#"A 1 1 2 c [["w","b",1],["s","a","z",[]]]"#];
    assert_finds(&forgets, Level::Rr, Anomaly::InternalRead);
    let shapes = [r#"A 1 1 2 c [["w","b",1]]"#, r#"B 1 3 4 c [["s","c","z",[["b",1]]]]"#];
    assert_finds(&shapes, Level::Rr, Anomaly::InternalRead);
}

#[test]
fn stale_read_breaks_only_real_time_levels() {
    let lines = [r#"A 1 1 2 c [["w","x",1]]"#, r#"B 2 3 4 c [["r","x",0]]"#];
    assert_breaks(&lines, &[Level::StrictSerializable, Level::Opacity]);
    let cycle = judge(&history(&lines), Level::StrictSerializable).cycle.unwrap();
    assert!(cycle.edges.iter().any(|edge| edge.kind == EdgeKind::RealTime));
    // Equal readings of the clock order nothing.
    let touching = [r#"A 1 1 2 c [["w","x",1]]"#, r#"B 2 2 4 c [["r","x",0]]"#];
    assert_breaks(&touching, &[]);
}

#[test]
fn who_may_be_stale_sees_at_every_level_what_had_ended_before_its_moment() {
    let read = |of: u64| {
        let begun = r#"{"id":"B","s":2,"b":30,"e":40,"st":"c","#;
        format!(r#"{begun}"of":{of},"ops":[["r","x",0]]}}"#)
    };
    let write = r#"A 1 1 20 c [["w","x",1]]"#;
    assert_breaks(&[write, &read(20)], &[]);
    // No level that has reads lets it miss that.
    assert_breaks(&[write, &read(21)], UPDATES_UP);
    let cycle = judge(&history(&[write, &read(21)]), Level::Serializable).cycle.unwrap();
    assert!(cycle.edges.iter().any(|edge| edge.kind == EdgeKind::RealTime));
    assert!(cycle.to_string().contains("ended 20, began 21"), "{cycle}");
    // One that is refused for it may miss it.
    let refused = read(21).replace(r#""st":"c""#, r#""st":"a""#);
    assert_breaks(&[write, &refused], &[Level::Opacity]);
    // What reads it later than real time has it is stale itself, and orders nobody else.
    let others = [r#"C 3 50 60 c [["r","y",0]]"#, r#"D 4 1 45 c [["w","y",1]]"#];
    let all = [write, &read(20), others[0], others[1]];
    assert_breaks(&all, &[Level::StrictSerializable, Level::Opacity]);
}

#[test]
fn session_order_holds_for_who_may_be_stale() {
    let stale = r#"{"id":"B","s":1,"b":30,"e":40,"st":"c","of":5,"ops":[["r","x",0]]}"#;
    let session = Options { session_order: true, ..Options::default() };
    let history = history(&[r#"A 1 1 20 c [["w","x",1]]"#, stale]);
    let holds = |options| Checker::new(&history).check(Level::Serializable, &options).holds();
    assert_eq!((holds(Options::default()), holds(session)), (true, false));
}

/// A reader that misses what an update wrote whose end it could not know of, and a bounded one that
/// has nothing to do with them.
#[test]
fn who_may_be_stale_orders_nobody_else_among_strict_updates() {
    let others = [
        r#"X 1 0 1000 c [["w","y",1]]"#,
        r#"R 2 100 200 c [["r","y",1]]"#,
        r#"U 3 300 400 c [["r","y",0],["w","z",1]]"#,
    ];
    let bounded = r#"{"id":"B","s":4,"b":2000,"e":2001,"st":"c","of":0,"ops":[]}"#;
    let strict = Options { update_strict: true, ..Options::default() };
    let holds =
        |lines: &[&str]| Checker::new(&history(lines)).check(Level::Serializable, &strict).holds();
    assert!(holds(&others));
    assert!(holds(&[&others[..], &[bounded]].concat()));
}

#[test]
fn session_order_and_update_strictness_are_options() {
    let stale = [r#"A 1 1 2 c [["w","x",1]]"#, r#"B 1 3 4 c [["r","x",0]]"#];
    let session = Options { session_order: true, ..Options::default() };
    let strict = Options { update_strict: true, ..Options::default() };
    let stale = history(&stale);
    for level in [Level::Us, Level::Eus, Level::Serializable] {
        assert!(!Checker::new(&stale).check(level, &session).holds());
        assert!(Checker::new(&stale).check(level, &strict).holds());
    }
    assert!(Checker::new(&stale).check(Level::StrictSerializable, &strict).holds());
    let updates =
        history(&[r#"A 1 1 2 c [["w","x",1]]"#, r#"B 2 3 4 c [["r","x",0],["w","y",1]]"#]);
    for level in [Level::Us, Level::Serializable] {
        assert!(!Checker::new(&updates).check(level, &strict).holds());
        assert!(Checker::new(&updates).check(level, &session).holds());
    }
}

#[test]
fn a_session_skips_over_a_transaction_that_never_returned() {
    let lines = [
        r#"A 1 1 2 c [["w","x",1]]"#,
        r#"U 1 3 null u [["w","y",null]]"#,
        r#"B 1 5 6 c [["r","x",0]]"#,
    ];
    let session = Options { session_order: true, ..Options::default() };
    assert!(!Checker::new(&history(&lines)).check(Level::Serializable, &session).holds());
}

#[test]
fn an_unknown_transaction_is_what_the_data_say() {
    let unseen = [r#"U 1 1 null u [["w","x",1]]"#, r#"B 2 3 4 c [["r","x",0]]"#];
    assert_breaks(&unseen, &[]);
    let seen =
        [r#"U 1 1 null u [["r","y",0],["w","x",1]]"#, r#"B 2 3 4 c [["r","x",1],["w","y",1]]"#];
    assert_breaks(&seen, &[]);
    assert_eq!(judge(&history(&seen), Level::Rr).stats.committed, 2);
    // Nobody but itself saw it.
    let alone = history(&[r#"U 1 1 null u [["w","x",1],["r","x",1]]"#]);
    assert_eq!(judge(&alone, Level::Rr).stats.committed, 0);
    let in_chain = [
        r#"U 1 1 null u [["w","x",1]]"#,
        r#"B 2 3 4 c [["r","x",0],["w","x",2]]"#,
        r#"{"t":"order","k":"x","node":1,"vs":[1,2]}"#,
    ];
    // B overlooked it: a lost update.
    assert_breaks(&in_chain, UPDATES_UP);
    assert_eq!(judge(&history(&in_chain), Level::Rr).stats.committed, 2);
}

#[test]
fn replica_chains_are_the_tail_of_the_committed_chain() {
    let writers =
        [r#"A 1 1 2 c [["w","x",1]]"#, r#"B 2 3 4 c [["w","x",2]]"#, r#"C 2 5 6 c [["w","x",4]]"#];
    let with = |vs: &str| {
        let order = format!(r#"{{"t":"order","k":"x","node":"r1","vs":{vs}}}"#);
        let history = history(&[writers[0], writers[1], writers[2], &order]);
        judge(&history, Level::Rr)
    };
    for good in ["[1,2,4]", "[2,4]", "[4]", "[0,1,2,4]"] {
        assert!(with(good).holds(), "{good}");
    }
    for (bad, why) in [
        ("[]", "1 is missing"),
        ("[1,4]", "2 is missing"),
        ("[1,2]", "4 is missing"),
        ("[0,2,4]", "1 is missing"),
        ("[2,1,4]", "1 stands after version 2"),
        ("[1,2,3,4]", "3 was never committed"),
        ("[1,1,2,4]", "1 stands after version 1"),
    ] {
        let text = with(bad).to_string();
        assert!(text.contains(why) && text.contains("\"r1\""), "{bad}: {text}");
    }
}

#[test]
fn faults_of_single_operations_are_named() {
    use Anomaly::{DuplicateVersion, InternalRead, MissingVersion, UnknownVersion, ValueMismatch};
    let cases: [(&[&str], Anomaly); 9] = [
        (&[r#"A 1 1 2 c [["r","x",7]]"#], UnknownVersion),
        (&[r#"A 1 1 2 c [["w","x",7]]"#, r#"B 1 1 2 c [["w","x",7]]"#], DuplicateVersion),
        (&[r#"A 1 1 2 c [["w","x",null]]"#], MissingVersion),
        (&[r#"A 1 1 2 c [["w","x",1,5]]"#, r#"B 1 3 4 c [["r","x",1,6]]"#], ValueMismatch),
        (&[r#"A 1 1 2 c [["d","x",1]]"#, r#"B 1 3 4 c [["r","x",1,6]]"#], ValueMismatch),
        (&[r#"A 1 1 2 c [["r","x",0,5]]"#, r#"B 1 3 4 c [["r","x",0,6]]"#], ValueMismatch),
        (&[r#"A 1 1 2 c [["r","x","own",5]]"#], InternalRead),
        (&[r#"A 1 1 2 c [["w","x",null,5],["w","x",1,6],["r","x","own",5]]"#], InternalRead),
        (&[r#"A 1 1 2 c [["w","x",1],["r","x",0]]"#], InternalRead),
    ];
    for (lines, anomaly) in cases {
        assert_finds(lines, Level::Rr, anomaly);
    }
    assert_finds(&[r#"A 1 1 2 c [["r","x",1],["w","x",1]]"#], Level::Rr, InternalRead);
    let good = [
        r#"A 1 1 2 c [["w","x",null,5],["w","x",[1,2],6],["r","x","own",6],["r","x",[1,2],6]]"#,
        r#"B 1 3 4 c [["r","x",[1,2],6],["d","x",[1,3]],["r","x","own",null]]"#,
        r#"C 1 5 6 c [["r","x",[1,3],null]]"#,
    ];
    assert_breaks(&good, &[]);
}

#[test]
fn sums_are_judged_over_complete_reads() {
    let lines = [
        r#"L 1 1 2 c [["w","a/1",1,60],["w","a/2",1,40]]"#,
        r#"T 1 3 4 c [["r","a/1",1,60],["r","a/2",1,40],["w","a/1",2,50],["w","a/2",2,50]]"#,
        r#"R 1 5 6 c [["s","a/","a0",[["a/1",2,50],["a/2",2,50]]]]"#,
        r#"P 1 7 8 c [["r","a/1",2,50]]"#,
    ];
    let history = history(&lines);
    let with = |sum_check: &str| {
        let options = Options { sums: vec![sum_check.parse().unwrap()], ..Options::default() };
        Checker::new(&history).check(Level::Serializable, &options)
    };
    assert!(with("a/:100:2").holds());
    let broken = with("a/:99:2");
    assert_eq!(broken.finding_count, 2);
    assert!(broken.to_string().contains("sum 100, not 99"), "{broken}");
    assert!(with("a/:100:3").holds());
}

#[test]
fn a_cycle_shows_as_a_table_and_as_dot() {
    let lines =
        [r#"A 1 1 9 c [["r","x",0],["w","y\"",1]]"#, r#"B 2 1 null c [["r","y\"",0],["w","x",1]]"#];
    let verdict = judge(&history(&lines), Level::Serializable);
    let text = verdict.to_string();
    for part in ["serializable: broken", "cycle of 2", "A ", "rw", "read 0, wrote 1", "never"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let dot = verdict.to_dot().unwrap();
    assert!(dot.starts_with("digraph") && dot.contains("t0 -> t1") && dot.contains("t1 -> t0"));
    assert!(dot.contains("y\\\""), "{dot}");
    assert!(judge(&history(&[]), Level::Opacity).to_dot().is_none());
}

#[test]
fn the_shortest_cycle_is_shown() {
    // A ring of four transactions, and within it a ring of two.
    let lines = [
        r#"A 1 1 9 c [["r","a",0],["w","d",1]]"#,
        r#"B 1 1 9 c [["r","b",0],["w","a",1],["r","q",0]]"#,
        r#"C 1 1 9 c [["r","c",0],["w","b",1],["w","q",1]]"#,
        r#"D 1 1 9 c [["r","d",0],["w","c",1],["r","z",0]]"#,
        r#"E 1 1 9 c [["w","z",1],["r","c",0]]"#,
        r#"F 1 1 9 c [["r","z",1],["w","d",2]]"#,
    ];
    let verdict = judge(&history(&lines), Level::Serializable);
    assert_eq!(verdict.cycle.unwrap().transactions.len(), 2);
}

#[test]
fn the_one_broken_reader_among_many_forks_is_found() {
    // Two unrelated chains; readers see any pair of versions, which is update serializable.
    let mut lines = vec![r#"L 0 1 1 c [["w","x",1],["w","y",1]]"#.to_owned()];
    for version in 2..=200 {
        lines
            .push(format!(r#"X{version} 0 1 1 c [["r","x",{}],["w","x",{version}]]"#, version - 1));
        lines
            .push(format!(r#"Y{version} 0 1 1 c [["r","y",{}],["w","y",{version}]]"#, version - 1));
    }
    for reader in 0..600 {
        let (x, y) = (1 + reader * 7 % 200, 1 + reader * 11 % 200);
        let status = if reader % 2 == 0 { "c" } else { "a" };
        lines.push(format!(r#"R{reader} 0 1 1 {status} [["r","x",{x}],["r","y",{y}]]"#));
    }
    let judge_all = |lines: &[String], level| {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        judge(&history(&lines), level)
    };
    assert!(judge_all(&lines, Level::Eus).holds());
    assert!(!judge_all(&lines, Level::Serializable).holds());
    for place in [400, 600, 999] {
        let mut broken = lines.clone();
        broken.insert(place, r#"BAD 0 1 1 a [["r","x",150],["r","y",0]]"#.to_owned());
        assert!(judge_all(&broken, Level::Us).holds());
        let cycle = judge_all(&broken, Level::Eus).cycle.unwrap();
        assert_eq!(cycle.transactions[0].id, "BAD");
    }
}
