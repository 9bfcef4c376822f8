//! Protocols say what they rely on: so many assertions for each thousand lines of code, and those
//! that are drawn at random are shown to fire by a test that breaks what they say.
//!
//! An assertion is an `assert!`, `assert_eq!` or `assert_ne!` outside of tests: it holds in
//! release, too. A line of code is one that is no comment, not empty, and outside of tests.

use std::collections::{BTreeMap, BTreeSet};

use super::tokens::{Placed, Token, code};

/// Assertions for each thousand lines of protocols, at least.
const DENSITY_MIN: usize = 20;
/// So many assertions are drawn.
const DRAWN: usize = 25;
/// What the draw begins with: another number draws others.
const SEED: &str = "18";
/// A part of a message that is at least so long says which one it is.
const NOTABLE: usize = 10;

/// An assertion, as its source has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Assertion {
    /// What is drawn first has the smallest.
    lot: u64,
    file: String,
    message: String,
}

/// The hash of a text (FNV-1a): the order in which assertions are drawn, which one more or less
/// changes little.
fn lot(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The messages of the assertions among tokens; an empty one where there is none.
fn messages(all: &[Placed]) -> Vec<String> {
    let is_assertion = |at: usize| {
        let named = ["assert", "assert_eq", "assert_ne"].iter().any(|it| all[at].0.is_word(it));
        named && all.get(at + 1).is_some_and(|(it, _)| it.is_sign('!'))
    };
    let begun = (0..all.len()).filter(|at| is_assertion(*at));
    begun.map(|at| message(&all[at + 2..])).collect()
}

/// The last text between these brackets, and in no others.
fn message(all: &[Placed]) -> String {
    let (mut depth, mut found) = (0, String::new());
    for (token, _) in all {
        match token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']' | '}') => depth -= 1,
            Token::Text(text) if depth == 1 => found.clone_from(text),
            Token::Sign(_) | Token::Word(_) | Token::Text(_) => {}
        }
        if depth == 0 {
            break;
        }
    }
    found
}

/// Assertions and lines of code, by crate.
fn by_crate() -> BTreeMap<String, (Vec<Assertion>, usize)> {
    let mut all: BTreeMap<String, (Vec<Assertion>, usize)> = BTreeMap::new();
    for (file, text) in super::files(&["rs"]) {
        let Some((name, path)) = file.split_once("/src/") else { continue };
        if path.ends_with("tests.rs") {
            continue;
        }
        let tokens = code(&text).tokens;
        let lines: BTreeSet<usize> = tokens.iter().map(|(_, line)| *line).collect();
        let (found, count) = all.entry(name.to_owned()).or_default();
        *count += lines.len();
        found.extend(messages(&tokens).into_iter().map(|message| {
            let lot = lot(&format!("{SEED} {path} {message}"));
            Assertion { lot, file: path.to_owned(), message }
        }));
    }
    all
}

/// The texts with which tests of protocols expect a panic.
fn expected() -> Vec<String> {
    let mut all = Vec::new();
    for (_, text) in super::files(&["rs"]).iter().filter(|(it, _)| it.starts_with("protocols/")) {
        for rest in text.split("#[should_panic(expected = \"").skip(1) {
            all.extend(rest.split('"').next().map(str::to_owned));
        }
    }
    all
}

/// Whether a panic with this text is the assertion's: a part of its message that is long enough to
/// say so, or all of it with something in the place of each value.
fn is_shown_by(message: &str, text: &str) -> bool {
    let parts: Vec<&str> = message
        .split('{')
        .enumerate()
        .map(|(count, part)| match count {
            0 => part,
            _ => part.split_once('}').map_or("", |(_, after)| after),
        })
        .collect();
    let is_part = text.len() >= NOTABLE && parts.iter().any(|part| part.contains(text));
    let mut rest = text;
    let is_whole = parts.iter().all(|part| match rest.split_once(part.trim()) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    });
    is_part || is_whole
}

#[test]
fn protocols_have_assertions() {
    let mut offences = Vec::new();
    for (name, (assertions, lines)) in by_crate() {
        let density = assertions.len() * 1_000 / lines.max(1);
        println!("{name}: {} assertions in {lines} lines, {density} in 1,000", assertions.len());
        if name == "protocols" && density < DENSITY_MIN {
            offences.push(format!("{name}: {density} assertions in 1,000 lines of {lines}"));
        }
    }
    super::none(&offences);
}

#[test]
fn assertions_of_protocols_say_what_they_found() {
    let (all, _) = by_crate().remove("protocols").expect("the crate of protocols");
    let silent = all.iter().filter(|it| it.message.is_empty());
    super::none(
        &silent.map(|it| format!("{}: an assertion without a text", it.file)).collect::<Vec<_>>(),
    );
}

#[test]
fn assertions_that_are_drawn_fire_when_what_they_say_is_broken() {
    let (mut all, _) = by_crate().remove("protocols").expect("the crate of protocols");
    all.sort();
    let texts = expected();
    let unshown = all
        .iter()
        .take(DRAWN)
        .filter(|drawn| !texts.iter().any(|text| is_shown_by(&drawn.message, text)));
    let tell = |it: &Assertion| {
        format!(
            "{}: no test has `{}` fail; break its rule under `should_panic`",
            it.file, it.message
        )
    };
    super::none(&unshown.map(tell).collect::<Vec<_>>());
}

#[test]
fn a_message_is_the_last_text_of_its_assertion() {
    let source = "fn f() { assert!(g(\"no\"), \"{a} is {b}\"); assert_eq!(1, 2); }\n\
                  #[cfg(test)]\nmod tests { fn t() { assert!(true); } }";
    assert_eq!(messages(&code(source).tokens), ["{a} is {b}", ""]);
    assert!(is_shown_by("{a} is decided twice", "is decided twice"));
    assert!(is_shown_by("number {arrival} of {}", "number 2 of 1"));
    assert!(!is_shown_by("number {arrival} of {}", "of"));
    assert!(!is_shown_by("bytes of answers", "bytes of changes"));
}
