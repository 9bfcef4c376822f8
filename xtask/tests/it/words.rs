//! The glossary is held to: a word that it retires may not come back. Identifiers that have one for
//! another reason are in `words.txt`, each with that reason.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use xtask::files;
use xtask::words;

const LIST: &str = "xtask/tests/words.txt";

#[test]
fn retired_words_do_not_come_back() {
    let retired = words::retired();
    assert!(retired.len() > 20, "{}", retired.len());
    let list = files::text(Path::new(LIST));
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut reasons: BTreeMap<_, _> =
        lines.map(|line| line.split_once(": ").expect("an identifier, and a reason")).collect();
    let (mut wrong, mut found) = (String::new(), Vec::new());
    for (word, left) in words::left(&retired) {
        let instead = &retired.iter().find(|it| it.word == word).expect("retired").instead;
        if left.prose > 0 {
            let _ = writeln!(wrong, "prose has `{word}` {} times: {instead}", left.prose);
        }
        for identifier in left.identifiers {
            match reasons.contains_key(&*identifier) {
                true => found.push(identifier),
                false => _ = writeln!(wrong, "`{identifier}` has `{word}`: {instead}"),
            }
        }
    }
    reasons.retain(|identifier, _| !found.iter().any(|it| it == identifier));
    for identifier in reasons.keys() {
        let _ = writeln!(wrong, "`{identifier}` is in {LIST} and nowhere else");
    }
    assert!(wrong.is_empty(), "say what the glossary says instead:\n{wrong}");
}
