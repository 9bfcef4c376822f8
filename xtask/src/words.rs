//! Words that are not used any more, as the glossary lists them, and where they still are.
//!
//! Code is looked at by its identifiers: each is cut into words (`StandingOf`, `standing_of`), and
//! an identifier of six words or more is a sentence, and counts as prose. Prose is pages, comments,
//! messages and help texts; there each use counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::files;

/// A word of the glossary's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retired {
    /// The word, in small letters.
    pub word: String,
    /// What is said instead.
    pub instead: String,
    /// Whether prose does without it, too.
    pub prose: bool,
}

/// Where a retired word still is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsesLeft {
    /// Identifiers that have it.
    pub identifiers: BTreeSet<String>,
    /// Its uses in prose, where that does without it.
    pub prose: usize,
}

/// The heading of the list in the glossary.
const HEADING: &str = "## Retired words";
/// Pages that speak of retired words, or of what was.
const ABOUT_THEM: [&str; 2] = ["GLOSSARY.md", "CHANGELOG.md"];

/// The retired words, from the glossary.
///
/// # Panics
/// The glossary has no such list.
pub fn retired() -> Vec<Retired> {
    let glossary = files::text(Path::new("GLOSSARY.md"));
    let (_, list) = glossary.split_once(HEADING).expect("the glossary has a list");
    let rows = list.lines().filter(|line| line.starts_with("| ")).skip(2);
    let cells = rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    cells
        .flat_map(|cells| {
            let [words, instead, place] = cells[..] else { panic!("three cells: {cells:?}") };
            let (instead, prose) = (instead.to_owned(), place == "code and prose");
            assert!(prose || place == "code", "`code` or `code and prose`: {place}");
            words.split(", ").map(str::to_owned).map(move |word| Retired {
                word,
                instead: instead.clone(),
                prose,
            })
        })
        .collect()
}

/// Where each retired word still is, by itself or in its plural.
pub fn left(retired: &[Retired]) -> BTreeMap<String, UsesLeft> {
    let by_text: BTreeMap<&str, &Retired> =
        retired.iter().map(|it| (it.word.as_str(), it)).collect();
    let listed = |word: &str| {
        let either = [Some(word), word.strip_suffix('s')].into_iter().flatten();
        either.filter_map(|it| by_text.get(it).copied()).next()
    };
    let mut all: BTreeMap<_, _> =
        retired.iter().map(|it| (it.word.clone(), UsesLeft::default())).collect();
    let (identifiers, prose) = texts();
    for identifier in &identifiers {
        for found in words_of(identifier).iter().filter_map(|word| listed(word)) {
            let left = all.get_mut(&found.word).expect("it is listed");
            left.identifiers.insert(identifier.clone());
        }
    }
    for found in prose.iter().filter_map(|word| listed(word)).filter(|it| it.prose) {
        all.get_mut(&found.word).expect("it is listed").prose += 1;
    }
    all
}

/// An identifier of so many words is a sentence, the name of a test: prose.
const SENTENCE_WORDS: usize = 6;

/// Rust's own word for what it makes macros by.
const OF_THE_LANGUAGE: &str = "macro_rules";

/// All identifiers, and all words of the project's prose.
fn texts() -> (BTreeSet<String>, Vec<String>) {
    let (mut identifiers, mut prose) = (BTreeSet::new(), Vec::new());
    for path in files::with_extension(&["md"]) {
        if !ABOUT_THEM.iter().any(|page| path == Path::new(page)) {
            prose.extend(prose_words(&files::text(&path)));
        }
    }
    for path in files::with_extension(&["rs"]) {
        let (code, prose_text) = split_rust(&files::text(&path));
        prose.extend(prose_words(&prose_text));
        let word = |letter: char| !(letter.is_alphanumeric() || letter == '_');
        let is_name = |it: &&str| it.trim_start_matches('_').starts_with(char::is_alphabetic);
        let all = code.split(word).filter(is_name);
        identifiers.extend(all.filter(|it| *it != OF_THE_LANGUAGE).map(str::to_owned));
    }
    let is_sentence = |it: &String| words_of(it).len() >= SENTENCE_WORDS;
    let (sentences, identifiers): (BTreeSet<_>, _) = identifiers.into_iter().partition(is_sentence);
    prose.extend(sentences.iter().flat_map(|it| words_of(it)));
    (identifiers, prose)
}

/// The words of a text, in small letters; names in capitals alone are none.
fn prose_words(text: &str) -> impl Iterator<Item = String> {
    let is_name = |word: &&str| word.len() > 1 && word.chars().all(char::is_uppercase);
    let words = text.split(|letter: char| !letter.is_alphabetic());
    words.filter(move |word| !is_name(word)).map(str::to_lowercase)
}

/// The words of an identifier, in small letters.
fn words_of(identifier: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for letter in identifier.chars() {
        if letter == '_' || letter.is_uppercase() && was_small {
            words.push(String::new());
        }
        was_small = letter.is_lowercase();
        if letter != '_' {
            words.last_mut().expect("never empty").extend(letter.to_lowercase());
        }
    }
    words
}

/// What of a Rust file is code, and what comments and texts say.
fn split_rust(text: &str) -> (String, String) {
    let (mut code, mut prose_text, mut rest) = (String::new(), String::new(), text);
    while let Some(first) = rest.chars().next() {
        let (is_prose, length) = match token(rest) {
            Some(length) => (true, length),
            None => (false, first.len_utf8()),
        };
        let (now, remaining) = rest.split_at(length);
        match is_prose {
            true => {
                prose_text.push_str(now);
                prose_text.push('\n');
                code.push(' ');
            }
            false => code.push_str(now),
        }
        rest = remaining;
    }
    (code, prose_text)
}

/// How long the comment or text is that begins here, if one does.
fn token(rest: &str) -> Option<usize> {
    let until = |end: &str, from: usize| {
        rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len())
    };
    if rest.starts_with("//") {
        return Some(until("\n", 0));
    }
    if rest.starts_with("/*") {
        return Some(until("*/", 2));
    }
    if let Some(raw) = rest.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            return Some(until(&format!("\"{}", "#".repeat(hashes)), hashes + 2));
        }
    }
    if rest.starts_with('"') {
        return Some(text_end(rest));
    }
    // A letter between quotes, and no lifetime.
    let mut letters = rest.strip_prefix('\'')?.char_indices();
    match (letters.next(), letters.next()) {
        (Some((_, '\\')), _) => Some(until("'", 3)),
        (Some(_), Some((at, '\''))) => Some(at + 2),
        _ => None,
    }
}

/// Where the text ends that begins here with a quote.
fn text_end(rest: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_cut_into_words() {
        assert_eq!(words_of("StandingOf"), ["standing", "of"]);
        assert_eq!(words_of("GO_ON_LATER"), ["go", "on", "later"]);
        assert_eq!(words_of("is_free2"), ["is", "free2"]);
    }

    #[test]
    fn what_is_said_is_no_code() {
        let text = "let a = \"b \\\" c \\\n d\"; // e \"f\"\n/// g\n\
                    let h: &'static str = r#\"i \"j\"#;\nlet k = ['\"', '\\'', 'l'];";
        let (code, prose_text) = split_rust(text);
        let code: String = code.split_whitespace().collect();
        assert_eq!(code, "leta=;leth:&'staticstr=;letk=[,,];");
        let words = prose_words(&prose_text).filter(|word| !word.is_empty());
        assert_eq!(words.collect::<String>(), "bcdefgrijl");
    }
}
