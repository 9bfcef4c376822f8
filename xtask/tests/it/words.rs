//! The glossary is held to: a word that it retires may not come back. Where some are left, their
//! numbers are in `words.txt`, and may only fall.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use xtask::files;
use xtask::words::{self, UsesLeft};

const LIST: &str = "xtask/tests/words.txt";

#[test]
fn retired_words_do_not_come_back() {
    let retired = words::retired();
    assert!(retired.len() > 20, "{}", retired.len());
    let list = files::text(Path::new(LIST));
    let mut listed = BTreeMap::new();
    for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut cells = line.split_whitespace();
        let word = cells.next().expect("a word").to_owned();
        let mut number = || cells.next().and_then(|it| it.parse().ok()).expect("two numbers");
        let left = UsesLeft { identifiers: number(), prose: number() };
        assert!(retired.iter().any(|it| it.word == word), "`{word}` is not in the glossary");
        listed.insert(word, left);
    }
    let mut wrong = String::new();
    for (word, (found, examples)) in words::left(&retired) {
        let allowed = listed.get(&word).copied().unwrap_or_default();
        if found != allowed {
            let instead = &retired.iter().find(|it| it.word == word).expect("listed").instead;
            let UsesLeft { identifiers, prose } = found;
            let _ = writeln!(wrong, "{word} {identifiers} {prose}, listed {allowed:?}: {instead}");
            let _ = writeln!(wrong, "    {}", examples.join(" "));
        }
    }
    assert!(
        wrong.is_empty(),
        "say what the glossary says instead, or lower the numbers in {LIST}:\n{wrong}"
    );
}
