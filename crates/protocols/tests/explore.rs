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

fn show(name: &str, scope: &Scope) -> Found {
    let start = std::time::Instant::now();
    let found = explore(scope, 2_000_000);
    eprintln!("{name}: {} states in {:?}; {:#?}", found.states, start.elapsed(), found.outcomes);
    if let Some(v) = &found.violation { eprintln!("{v}"); }
    found
}

#[test]
fn probe() {
    show("two", &Scope::of(&[AB_AT_0, BC_AT_1]));
    show("two reordered", &Scope { reordered: true, ..Scope::of(&[AB_AT_0, BC_AT_1]) });
    show("two+r", &Scope::of(&[AB_AT_0, BC_AT_1, READER_AT_2]));
    show("two r2", &Scope{ replicas: 2, ..Scope::of(&[AB_AT_0, BC_AT_1])});
    let _ = (Rules::default(), Scan("a","b"), Strict);
}
