//! What a source refers to: the paths of its `use` declarations, and those in its code that begin
//! with `crate`, `super` or `self`.

use super::tokens::{Placed, Token};

/// A path as it is written, and the line that it is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub path: Vec<String>,
    /// The name that it has here, if it is of a `use` declaration; `*` for all names.
    pub name: Option<String>,
    /// The modules within the file that it stands in.
    pub inside: Vec<String>,
    pub line: usize,
}

/// All references of a source, in the order in which they stand there.
pub(super) fn references(tokens: &[Placed]) -> Vec<Reference> {
    let (mut found, mut place, mut depth) = (Vec::new(), 0, 0);
    let mut inside: Vec<(String, usize)> = Vec::new();
    while place < tokens.len() {
        let (token, line) = &tokens[place];
        let begin = found.len();
        match token {
            Token::Sign('{') => depth += 1,
            Token::Sign('}') => {
                depth -= 1;
                inside.pop_if(|(_, outer)| *outer == depth);
            }
            Token::Word(word) if word == "use" && !sign(tokens, place + 1, '<') => {
                place = tree(tokens, place + 1, &[], *line, &mut found);
            }
            Token::Word(word) if word == "mod" && sign(tokens, place + 2, '{') => {
                let name = tokens[place + 1].0.word().unwrap_or_default();
                inside.push((name.to_owned(), depth));
            }
            Token::Word(word) if ["crate", "super", "self"].contains(&word.as_str()) => {
                let (path, end) = path(tokens, place);
                let path = path.into_iter().map(str::to_owned).collect::<Vec<_>>();
                if path.len() > 1 {
                    found.push(Reference { path, name: None, inside: Vec::new(), line: *line });
                }
                place = end - 1;
            }
            Token::Word(_) | Token::Sign(_) | Token::Text(_) => {}
        }
        for reference in &mut found[begin..] {
            reference.inside = inside.iter().map(|(name, _)| name.clone()).collect();
        }
        place += 1;
    }
    found
}

fn sign(tokens: &[Placed], place: usize, wanted: char) -> bool {
    tokens.get(place).is_some_and(|(it, _)| it.is_sign(wanted))
}

/// Words with two colons between each, and where they end.
fn path(tokens: &[Placed], mut place: usize) -> (Vec<&str>, usize) {
    let mut words = Vec::new();
    while let Some(word) = tokens.get(place).and_then(|(it, _)| it.word()) {
        words.push(word);
        place += 1;
        let goes_on = sign(tokens, place, ':') && sign(tokens, place + 1, ':');
        if !goes_on {
            break;
        }
        place += 2;
    }
    (words, place)
}

/// A tree of `use` behind `before`; returns the place of its last token.
fn tree(
    tokens: &[Placed],
    place: usize,
    before: &[String],
    line: usize,
    found: &mut Vec<Reference>,
) -> usize {
    let (words, mut place) = path(tokens, place);
    let mut whole = before.to_vec();
    whole.extend(words.into_iter().map(str::to_owned));
    match tokens.get(place).map(|(it, _)| it) {
        Some(Token::Sign('{')) => {
            place += 1;
            while !sign(tokens, place, '}') && place < tokens.len() {
                let line = tokens[place].1;
                place = tree(tokens, place, &whole, line, found) + 1;
                place += usize::from(sign(tokens, place, ','));
            }
            return place;
        }
        Some(Token::Sign('*')) => {
            let name = Some("*".to_owned());
            found.push(Reference { path: whole, name, inside: Vec::new(), line });
            return place;
        }
        _ => {}
    }
    whole.pop_if(|last| last == "self" && !before.is_empty());
    let mut name = whole.last().cloned();
    if tokens.get(place).is_some_and(|(it, _)| it.is_word("as")) {
        name = tokens.get(place + 1).and_then(|(it, _)| it.word()).map(str::to_owned);
        place += 2;
    }
    found.push(Reference { path: whole, name, inside: Vec::new(), line });
    place - 1
}

#[test]
fn paths_are_found_in_declarations_and_in_code() {
    let source = "use a::{b, c::{self, d as e}, f::*};\npub use super::g;\nmod h {\n\
                  use super::i;\n}\nfn j() { crate::k::l(self.m, super::n::<u8>()) }";
    let code = super::tokens::code(source);
    let found: Vec<_> = references(&code.tokens)
        .into_iter()
        .map(|it| {
            let name = it.name.unwrap_or_default();
            (it.path.join("::"), name, it.inside.join("::"), it.line)
        })
        .collect();
    let of = |path: &str, name: &str, inside: &str, line| {
        (path.to_owned(), name.to_owned(), inside.to_owned(), line)
    };
    let expected = [
        of("a::b", "b", "", 1),
        of("a::c", "c", "", 1),
        of("a::c::d", "e", "", 1),
        of("a::f", "*", "", 1),
        of("super::g", "g", "", 2),
        of("super::i", "i", "h", 4),
        of("crate::k::l", "", "", 6),
        of("super::n", "", "", 6),
    ];
    assert_eq!(found, expected);
}
