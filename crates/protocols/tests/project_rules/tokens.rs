//! The words and signs of a source, without comments and without what only tests are compiled with.

/// A word, a sign, or a text in quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    Sign(char),
    Text(String),
}

impl Token {
    pub fn is_word(&self, word: &str) -> bool {
        matches!(self, Token::Word(it) if it == word)
    }

    pub fn is_sign(&self, sign: char) -> bool {
        *self == Token::Sign(sign)
    }

    pub fn word(&self) -> Option<&str> {
        match self {
            Token::Word(word) => Some(word),
            Token::Sign(_) | Token::Text(_) => None,
        }
    }
}

/// A token with the line that it is on, from 1.
pub(super) type Placed = (Token, usize);

/// What a source says outside of tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Code {
    pub tokens: Vec<Placed>,
    /// Modules in other files that only tests are compiled with, by name; or by the name of their
    /// file, where an attribute gives it.
    pub test_modules: Vec<String>,
}

/// What is left of a source without its tests.
pub(super) fn code(source: &str) -> Code {
    let all = tokens(source);
    let (mut code, mut place) = (Code::default(), 0);
    while place < all.len() {
        match end_of_attribute(&all, place) {
            Some(end) if is_for_tests(&all[place..end]) => {
                let after = end_of_item(&all, end);
                code.test_modules.extend(named_module(&all[place..after]));
                place = after;
            }
            _ => {
                code.tokens.push(all[place].clone());
                place += 1;
            }
        }
    }
    code
}

/// Where the attribute ends that begins at `place`, if one does.
fn end_of_attribute(all: &[Placed], place: usize) -> Option<usize> {
    let sign = |at: usize, sign| all.get(at).is_some_and(|(it, _)| it.is_sign(sign));
    (sign(place, '#') && sign(place + 1, '[')).then(|| closing(all, place + 1) + 1)
}

fn is_for_tests(attribute: &[Placed]) -> bool {
    let has = |word: &str| attribute.iter().any(|(it, _)| it.is_word(word));
    has("cfg") && has("test") && !has("not")
}

/// Where the bracket is closed that is opened at `place`.
fn closing(all: &[Placed], place: usize) -> usize {
    let mut depth = 0;
    for (at, (token, _)) in all.iter().enumerate().skip(place) {
        match token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']' | '}') => depth -= 1,
            Token::Sign(_) | Token::Word(_) | Token::Text(_) => {}
        }
        if depth == 0 {
            return at;
        }
    }
    all.len() - 1
}

/// Where the item ends that begins at `place`, with its further attributes.
fn end_of_item(all: &[Placed], mut place: usize) -> usize {
    while let Some(end) = end_of_attribute(all, place) {
        place = end;
    }
    while place < all.len() {
        match all[place].0 {
            Token::Sign(';') => return place + 1,
            Token::Sign('{') => {
                let end = closing(all, place) + 1;
                let ends_after = all.get(end).is_some_and(|(it, _)| it.is_sign(';'));
                return end + usize::from(ends_after);
            }
            Token::Sign('(' | '[') => place = closing(all, place) + 1,
            _ => place += 1,
        }
    }
    place
}

/// The module in another file that an item declares.
fn named_module(item: &[Placed]) -> Option<String> {
    let ends = item.last().is_some_and(|(it, _)| it.is_sign(';'));
    let name = item.windows(2).rev().find(|pair| pair[0].0.is_word("mod"))?[1].0.word()?;
    let path = item.windows(3).find_map(|three| match &three[2].0 {
        Token::Text(file) if three[0].0.is_word("path") => file.strip_suffix(".rs"),
        _ => None,
    });
    ends.then(|| path.unwrap_or(name).to_owned())
}

/// All tokens of a source.
fn tokens(source: &str) -> Vec<Placed> {
    let (mut found, mut line, mut rest) = (Vec::new(), 1, source);
    while let Some(first) = rest.chars().next() {
        let (length, token) = next(rest, first);
        found.extend(token.map(|token| (token, line)));
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found
}

/// How long the next piece of a source is, and the token that it makes.
fn next(rest: &str, first: char) -> (usize, Option<Token>) {
    let is_word = |it: char| it.is_alphanumeric() || it == '_';
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), None);
    }
    if rest.starts_with("/*") {
        return (comment_length(rest), None);
    }
    if let Some((length, text)) = raw_text(rest).or_else(|| text(rest)) {
        return (length, Some(Token::Text(text.to_owned())));
    }
    if first == '\'' {
        return (character_length(rest), None);
    }
    if is_word(first) {
        let length = rest.find(|it| !is_word(it)).unwrap_or(rest.len());
        return (length, Some(Token::Word(rest[..length].to_owned())));
    }
    let sign = (!first.is_whitespace()).then_some(Token::Sign(first));
    (first.len_utf8(), sign)
}

/// The length of a comment that may hold others.
fn comment_length(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let step = match &rest.as_bytes()[at..] {
            [b'/', b'*', ..] => (1, 2),
            [b'*', b'/', ..] => (-1, 2),
            _ => (0, 1),
        };
        depth += step.0;
        at += step.1;
        if depth == 0 {
            break;
        }
    }
    at
}

/// A text in quotes that may hold escapes, with its length.
fn text(rest: &str) -> Option<(usize, &str)> {
    let begin = if rest.starts_with("b\"") { 2 } else { 1 };
    if !rest[..begin].ends_with('"') {
        return None;
    }
    let mut is_escaped = false;
    for (at, it) in rest.char_indices().skip(begin) {
        match it {
            '"' if !is_escaped => return Some((at + 1, &rest[begin..at])),
            _ => is_escaped = it == '\\' && !is_escaped,
        }
    }
    None
}

/// A text in quotes without escapes, with its length.
fn raw_text(rest: &str) -> Option<(usize, &str)> {
    let marked = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let quoted = marked.trim_start_matches('#');
    let end = format!("\"{}", "#".repeat(marked.len() - quoted.len()));
    let inner = quoted.strip_prefix('"')?;
    let begin = rest.len() - inner.len();
    let length = inner.find(&end)?;
    Some((begin + length + end.len(), &inner[..length]))
}

/// The length of a character in quotes, or of the quote before the name of a lifetime.
fn character_length(rest: &str) -> usize {
    let mut inner = rest.char_indices().skip(1);
    match inner.next() {
        Some((_, '\\')) => {
            // What is escaped may be a quote itself.
            let end = rest.char_indices().skip(3).find(|(_, it)| *it == '\'');
            end.map_or(rest.len(), |(at, _)| at + 1)
        }
        Some(_) if inner.next().is_some_and(|(_, it)| it == '\'') => {
            inner.next().map_or(rest.len(), |(at, _)| at)
        }
        _ => 1,
    }
}

#[test]
fn comments_texts_and_tests_are_no_words() {
    let source = "use a::b; // use c\n/* d /* e */ f */ \"g\\\"h\" r#\"i\"j\"# 'k' '\\'' 'l: m\n\
                  #[cfg(test)]\n#[path = \"n_tests.rs\"]\nmod tests;\n\
                  #[cfg(test)]\nmod o { use p; }\n#[cfg(test)]\nuse q::{r, s};\nfn t() {}";
    let code = code(source);
    let words: Vec<_> = code.tokens.iter().filter_map(|(it, _)| it.word()).collect();
    assert_eq!(words, ["use", "a", "b", "l", "m", "fn", "t"]);
    assert_eq!(code.test_modules, ["n_tests"]);
    let texts = code.tokens.iter().filter(|(it, _)| matches!(it, Token::Text(_)));
    assert_eq!(texts.count(), 2);
    assert_eq!(code.tokens.last().map(|(_, line)| *line), Some(10));
}
