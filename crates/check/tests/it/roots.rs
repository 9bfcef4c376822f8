//! Roots: that their transactions are theirs, and that their operations have a serial order.

use muesli_check::{Anomaly, Checker, HandlerStats, History, Level, Options, RootStats, Verdict};

/// A history from lines `root id b e st ops` and `role root id b e st ops`.
fn history(lines: &[&str]) -> History {
    let mut text = String::new();
    for line in lines {
        let line = match line.split_once(' ') {
            Some(("start", ops)) => format!(r#"{{"t":"start","ops":{ops}}}"#),
            Some(("root", rest)) => {
                let [id, s, b, e, st, ops] = rest.splitn(6, ' ').collect::<Vec<_>>()[..] else {
                    panic!("{line}");
                };
                format!(
                    r#"{{"t":"root","id":"{id}","s":{s},"b":{b},"e":{e},"st":"{st}","ops":{ops}}}"#
                )
            }
            Some((role, rest)) => {
                let [root, id, b, e, st, ops] = rest.splitn(6, ' ').collect::<Vec<_>>()[..] else {
                    panic!("{line}");
                };
                let part = format!(r#""root":"{root}","as":"{role}""#);
                format!(r#"{{"id":"{id}","b":{b},"e":{e},"st":"{st}",{part},"ops":{ops}}}"#)
            }
            None => panic!("{line}"),
        };
        text.push_str(&line);
        text.push('\n');
    }
    History::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn judge(lines: &[&str], level: Level, options: &Options) -> Verdict {
    Checker::new(&history(lines)).check(level, options)
}

fn at(lines: &[&str], level: Level) -> Verdict {
    judge(lines, level, &Options::default())
}

/// What is found at a level, by name.
fn found(lines: &[&str], level: Level) -> Vec<Anomaly> {
    at(lines, level).findings.iter().map(|finding| finding.anomaly).collect()
}

/// Two roots that commute are interleaved by rows, which alone would be a cycle.
#[test]
fn roots_are_judged_by_their_operations_and_transactions_by_rows() {
    let lines = [
        r#"root A 1 1 90 c [["+","s",1,true],["+","s",2,true]]"#,
        r#"root B 2 2 80 c [["+","s",3,true],["+","s",4,true]]"#,
        r#"child A a1 10 20 c [["r","x",0],["w","x",1]]"#,
        r#"child B b1 21 30 c [["r","x",1],["w","x",2]]"#,
        r#"child A a2 31 40 c [["r","x",2],["w","x",3]]"#,
        r#"child B b2 41 50 c [["r","x",3],["w","x",4]]"#,
    ];
    for level in Level::ALL {
        let verdict = at(&lines, level);
        assert!(verdict.holds(), "{verdict}");
        let judged = if level >= Level::Serializable { 2 } else { 0 };
        assert_eq!(verdict.stats.roots, RootStats { judged, undecided: 0 }, "{level}");
    }
}

/// Rows are in order, as each child reads and writes apart; the roots are not.
#[test]
fn answers_that_no_order_explains_are_found() {
    let lines = [
        r#"root A 1 1 90 c [["+","s",1,true],["?","s",2,false]]"#,
        r#"root B 2 2 80 c [["+","s",2,true],["?","s",1,false]]"#,
        r#"child A a1 10 20 c [["r","y",0]]"#,
        r#"child B b1 11 20 c [["r","x",0]]"#,
        r#"child A a2 31 40 c [["w","x",1]]"#,
        r#"child B b2 32 40 c [["w","y",1]]"#,
    ];
    for level in Level::ALL {
        let expected: &[_] =
            if level >= Level::Serializable { &[Anomaly::Operations] } else { &[] };
        assert_eq!(found(&lines, level), expected, "{level}");
    }
    let text = at(&lines, Level::Serializable).to_string();
    for part in ["no serial order of 2 roots", "root A did look for 2 in s: false", "is 1"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn what_an_aborted_root_did_must_have_left_nothing() {
    let aborted = r#"root A 1 1 20 a [["+","s",1,true]]"#;
    let of = |second: &'static str| found(&[aborted, second], Level::Serializable);
    assert_eq!(of(r#"root B 2 30 40 c [["?","s",1,false]]"#), []);
    assert_eq!(of(r#"root B 2 30 40 c [["?","s",1,true]]"#), [Anomaly::Operations]);
    assert_eq!(of(r#"root B 2 5 40 c [["-","s",1,true]]"#), [Anomaly::Operations]);
}

#[test]
fn unknown_outcomes_are_resolved_by_their_own_transactions_or_left_open() {
    let unknown = r#"root A 1 1 null u [["+","s",1,true]]"#;
    let own = r#"own A a 2 null u [["w","x",1]]"#;
    let seen = r#"child B b 30 40 c [["r","x",1]]"#;
    let unseen = r#"child B b 30 40 c [["r","x",0]]"#;
    let (there, absent) =
        (r#"root B 2 30 40 c [["?","s",1,true]]"#, r#"root B 2 30 40 c [["?","s",1,false]]"#);
    for (lines, holds) in [
        (vec![unknown, there], true),
        (vec![unknown, absent], true),
        (vec![unknown, own, seen, there], true),
        // It committed, and may have come after who did not see it.
        (vec![unknown, own, seen, absent], true),
        (vec![unknown, own, unseen, absent], true),
        (vec![unknown, own, unseen, there], false),
    ] {
        assert_eq!(found(&lines, Level::StrictSerializable).is_empty(), holds, "{lines:?}");
    }
    // It began after that one had ended.
    let late = r#"root A 1 50 null u [["+","s",1,true]]"#;
    assert_eq!(found(&[late, there], Level::Serializable), []);
    assert_eq!(found(&[late, there], Level::StrictSerializable), [Anomaly::Operations]);
}

#[test]
fn real_time_and_sessions_order_roots_where_they_order_transactions() {
    let lines = [
        r#"start [["+","s",2,true]]"#,
        r#"root A 1 1 10 c [["+","s",1,true]]"#,
        r#"root B 1 20 30 c [["?","s",1,false],["?","s",2,true]]"#,
    ];
    assert_eq!(found(&lines, Level::Serializable), []);
    assert_eq!(found(&lines, Level::StrictSerializable), [Anomaly::Operations]);
    let session_order = Options { session_order: true, ..Options::default() };
    assert!(!judge(&lines, Level::Serializable, &session_order).holds());
    let of_another = lines[2].replace("B 1", "B 2");
    let others = [lines[0], lines[1], &of_another];
    assert!(judge(&others, Level::Serializable, &session_order).holds());
    let update_strict = Options { update_strict: true, ..Options::default() };
    assert!(judge(&lines, Level::Serializable, &update_strict).holds(), "nothing says they update");
    let updates = [
        lines[0],
        lines[1],
        lines[2],
        r#"child A a 2 9 c [["w","x",1]]"#,
        r#"child B b 21 29 c [["w","y",1]]"#,
    ];
    assert!(!judge(&updates, Level::Serializable, &update_strict).holds());
}

#[test]
fn transactions_need_a_root_that_ran_around_them() {
    let root = r#"root A 1 10 50 c []"#;
    let of = |line: &'static str| found(&[root, line], Level::Serializable);
    assert_eq!(of("child A a 10 50 c []"), []);
    assert_eq!(of("own A a 10 50 c []"), []);
    assert_eq!(of("child B a 10 50 c []"), [Anomaly::MissingRoot]);
    assert_eq!(of("child A a 9 50 c []"), [Anomaly::OutsideRoot]);
    assert_eq!(of("child A a 10 51 c []"), [Anomaly::OutsideRoot]);
    assert_eq!(of("own A a 51 null c []"), [Anomaly::OutsideRoot]);
    // Others may run these for it, later.
    assert_eq!(of("compensation A a 60 70 c []"), []);
    assert_eq!(of("handler A a 60 70 c []"), []);
    assert_eq!(of("handler A a 9 70 c []"), [Anomaly::OutsideRoot]);
    let text = at(&[root, "child B a 10 50 c []"], Level::Rr).to_string();
    assert!(text.contains("a is of root B (child), and the history has no such root"), "{text}");
}

#[test]
fn a_root_ends_as_its_own_transactions_do() {
    let of = |root: &'static str, own: &'static str| found(&[root, own], Level::Serializable);
    let (committed, aborted) = (r#"root A 1 10 50 c []"#, r#"root A 1 10 50 a []"#);
    assert_eq!(of(committed, r#"own A a 10 50 a [["w","x",null]]"#), [Anomaly::RootOutcome]);
    assert_eq!(of(aborted, r#"own A a 10 50 c [["w","x",1]]"#), [Anomaly::RootOutcome]);
    assert_eq!(of(committed, r#"own A a 10 50 c [["w","x",1]]"#), []);
    assert_eq!(of(aborted, r#"own A a 10 50 c [["r","x",0]]"#), [], "it changed nothing");
}

#[test]
fn handlers_are_counted_by_whether_their_roots_sessions_ran_them() {
    let part = |id: &str, session: u32, role: &str, status: &str| {
        let part = format!(r#""root":"A","as":"{role}""#);
        format!(r#"{{"id":"{id}","s":{session},"b":1,"e":2,"st":"{status}",{part},"ops":[]}}"#)
    };
    let lines = [
        part("a1", 1, "child", "c"),
        part("a2", 1, "compensation", "c"),
        part("a3", 2, "compensation", "c"),
        part("a4", 2, "compensation", "a"),
        part("a5", 1, "own", "c"),
        part("a6", 3, "handler", "c"),
    ];
    let history = History::read(lines.join("\n").as_bytes()).unwrap();
    let verdict = Checker::new(&history).check(Level::Serializable, &Options::default());
    let handlers = HandlerStats {
        compensations: 2,
        compensations_by_others: 1,
        commit_handlers: 1,
        commit_handlers_by_others: 1,
    };
    assert_eq!(verdict.stats.handlers, handlers);
}

/// Transfers that ran at the same time and whose ends say nothing of their order; their reads and
/// writes do.
#[test]
fn an_order_that_rows_tell_is_not_searched_for() {
    let mut random = 1_u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % below
    };
    let mut accounts = [(0_u32, 100_i64); 8];
    let start: Vec<String> = (0..8).map(|at| format!(r#"["+=","{at}",100]"#)).collect();
    let mut lines = vec![format!("start [{}]", start.join(","))];
    for txn in 1..=2_000_u32 {
        let from = draw(8) as usize;
        let to = (from + 1 + draw(7) as usize) % 8;
        let ends = 10_000 + draw(10_000);
        let [(read_from, has), (read_to, gets)] = [accounts[from], accounts[to]];
        let moves = format!(r#"["=","{from}",{has}],["+=","{from}",-1]"#);
        let moves = format!(r#"{moves},["=","{to}",{gets}],["+=","{to}",1]"#);
        lines.push(format!("root R{txn} {txn} 1 {ends} c [{moves}]"));
        let reads = format!(r#"["r","{from}",{read_from}],["r","{to}",{read_to}]"#);
        let writes = format!(r#"["w","{from}",{txn}],["w","{to}",{txn}]"#);
        lines.push(format!("own R{txn} T{txn} 1 {ends} c [{reads},{writes}]"));
        accounts[from] = (txn, has - 1);
        accounts[to] = (txn, gets + 1);
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let verdict = at(&lines, Level::StrictSerializable);
    assert!(verdict.holds(), "{verdict}");
    assert_eq!(verdict.stats.roots, RootStats { judged: 2_000, undecided: 0 });
}
