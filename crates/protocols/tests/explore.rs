//! Exhaustive exploration of small scopes.

mod exploration;
mod judge;

use exploration::{Do, Found, Program, Scope, explore};
use muesli_protocols::score::Rules;
use Do::{Get, Put, ReadOnly, Scan, Strict};

/// Key a lives at node 0, b at node 1, c at node 2.
const AB_AT_0: Program = (0, &[Get("a"), Get("b"), Put("a"), Put("b")]);
const BC_AT_1: Program = (1, &[Get("b"), Get("c"), Put("b"), Put("c")]);
const READER_AT_2: Program = (2, &[ReadOnly, Get("a"), Get("b"), Get("c")]);
const READER_AT_0: Program = (0, &[ReadOnly, Get("a"), Get("b"), Get("c")]);
const WRITER_BC_AT_2: Program = (2, &[Put("b"), Put("c")]);
const WRITER_A_AT_1: Program = (1, &[Put("a")]);
const SKEW_A: Program = (0, &[Get("a"), Get("b"), Put("a")]);
const SKEW_B: Program = (1, &[Get("a"), Get("b"), Put("b")]);
const PH_A: Program = (0, &[Scan("b", "c"), Put("a")]);
const PH_B: Program = (1, &[Get("a"), Put("b1")]);
const LOCAL_C: Program = (2, &[Get("c"), Put("c")]);
const LOCAL_B: Program = (1, &[Put("b2")]);

fn show(name: &str, scope: &Scope) -> Found {
    let start = std::time::Instant::now();
    let found = explore(scope, 2_000_000);
    eprintln!("{name}: {} states in {:?}; {} outcomes {}", found.states, start.elapsed(), found.outcomes.len(), if found.violation.is_some() {"VIOLATION"} else {""});
    if std::env::var("V").is_ok() {
        eprintln!("{:#?}", found.outcomes);
        if let Some(v) = &found.violation { eprintln!("{v}"); }
    }
    found
}

#[test]
fn probe() {
    let scopes = [
        ("rmw", Scope::of(&[AB_AT_0, BC_AT_1])),
        ("rmw+r", Scope::of(&[AB_AT_0, BC_AT_1, READER_AT_2])),
        ("rmw+r0", Scope::of(&[AB_AT_0, BC_AT_1, READER_AT_0])),
        ("skew", Scope::of(&[SKEW_A, SKEW_B])),
        ("skew+r", Scope::of(&[SKEW_A, SKEW_B, READER_AT_2])),
        ("ph", Scope::of(&[PH_A, PH_B])),
        ("ph+local", Scope::of(&[PH_A, PH_B, LOCAL_B])),
        ("frac", Scope{before: vec![WRITER_A_AT_1; 2], ..Scope::of(&[READER_AT_0, WRITER_BC_AT_2])}),
        ("frac+local", Scope{before: vec![WRITER_A_AT_1; 2], ..Scope::of(&[READER_AT_0, WRITER_BC_AT_2, LOCAL_C])}),
        ("frac+rmw", Scope{before: vec![WRITER_A_AT_1; 2], ..Scope::of(&[READER_AT_0, WRITER_BC_AT_2, BC_AT_1])}),
    ];
    let d = Rules::default();
    let rules = [
        ("all", d),
        ("validate", Rules{validate: false, ..d}),
        ("reads_wait", Rules{reads_wait: false, ..d}),
        ("lock_reads", Rules{lock_reads: false, ..d}),
        ("ordered_queue", Rules{ordered_queue: false, ..d}),
        ("validate_scans", Rules{validate_scans: false, ..d}),
        ("reads_raise", Rules{reads_raise: false, ..d}),
        ("catch_up", Rules{catch_up_when_idle: false, ..d}),
    ];
    for (r, rules) in rules {
        for (s, scope) in &scopes {
            show(&format!("{r} {s}"), &Scope{rules, ..scope.clone()});
        }
    }
    let _ = Strict;
}
