//! Inline commands: a line of words, for who types.

/// The words of a line: apart by blanks, in quotes where they hold some. `None`: a quote is open,
/// or something stands right behind one.
pub fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    let mut rest = line;
    loop {
        let blanks = rest.iter().take_while(|it| is_blank(**it)).count();
        rest = &rest[blanks..];
        if rest.is_empty() {
            return Some(found);
        }
        let (word, taken) = word(rest)?;
        found.push(word);
        rest = &rest[taken..];
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | 0)
}

/// The first word, and how many bytes it takes.
fn word(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut word = Vec::new();
    let mut at = 0;
    while at < text.len() && !is_blank(text[at]) {
        match text[at] {
            quote @ (b'"' | b'\'') => {
                at += 1 + quoted(&text[at + 1..], quote, &mut word)?;
                let after = text.get(at);
                return after.is_none_or(|it| is_blank(*it)).then_some((word, at));
            }
            other => word.push(other),
        }
        at += 1;
    }
    Some((word, at))
}

/// What is in quotes; how many bytes that takes, the closing quote included.
fn quoted(text: &[u8], quote: u8, word: &mut Vec<u8>) -> Option<usize> {
    let mut at = 0;
    loop {
        match (*text.get(at)?, quote) {
            (b'\\', b'"') => {
                let escaped = *text.get(at + 1)?;
                let hex = text.get(at + 2..at + 4).and_then(hex_byte);
                if let (b'x', Some(byte)) = (escaped, hex) {
                    word.push(byte);
                    at += 4;
                    continue;
                }
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => other,
                });
                at += 2;
            }
            (b'\\', _) if text.get(at + 1) == Some(&b'\'') => {
                word.push(b'\'');
                at += 2;
            }
            (byte, _) if byte == quote => return Some(at + 1),
            (byte, _) => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digit = |it: u8| (it as char).to_digit(16);
    Some((digit(digits[0])? * 16 + digit(digits[1])?) as u8)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_are_apart_by_blanks_and_may_be_in_quotes() {
        let table: [(&str, Option<Vec<&str>>); 7] = [
            ("  set  a b ", Some(vec!["set", "a", "b"])),
            ("", Some(vec![])),
            (r#"set a "b c""#, Some(vec!["set", "a", "b c"])),
            (r#"set a "\x41\n""#, Some(vec!["set", "a", "A\n"])),
            (r"set a 'it\'s'", Some(vec!["set", "a", "it's"])),
            (r#"set a "b"#, None),
            (r#"set a "b"c"#, None),
        ];
        for (line, expected) in table {
            let found = words(line.as_bytes());
            let expected = expected.map(|it| it.into_iter().map(|it| it.into()).collect());
            assert_eq!(found, expected, "{line}");
        }
    }
}
