//! A line of the shell as commands, each of tokens.
//!
//! Words stand between spaces, commands between `;`. What is in `'single'` quotes stands as it is;
//! in `"double"` ones `\n`, `\t`, `\\`, `\"` and `\xHH` mean what they do elsewhere. A token that
//! begins with `0x` is bytes in hexadecimal. A `#` at the beginning of a token begins a comment.

use anyhow::bail;

/// A token of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellToken {
    /// What it says.
    pub bytes: Vec<u8>,
    /// Whether it stood in quotes, and so is no name of anything.
    pub quoted: bool,
}

impl ShellToken {
    /// The token as text, as far as it is one.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Whether it is this token of the language.
    pub fn is(&self, name: &str) -> bool {
        !self.quoted && self.bytes.eq_ignore_ascii_case(name.as_bytes())
    }
}

/// The commands of a line.
///
/// # Errors
/// A quote is not closed, or something in it is not understood.
pub fn commands(line: &str) -> anyhow::Result<Vec<Vec<ShellToken>>> {
    let (mut commands, mut tokens) = (Vec::new(), Vec::new());
    let mut letters = line.chars().peekable();
    while let Some(&letter) = letters.peek() {
        match letter {
            letter if letter.is_whitespace() => drop(letters.next()),
            ';' => {
                letters.next();
                commands.push(std::mem::take(&mut tokens));
            }
            '#' => break,
            _ => tokens.push(token(&mut letters)?),
        }
    }
    commands.push(tokens);
    commands.retain(|tokens: &Vec<ShellToken>| !tokens.is_empty());
    Ok(commands)
}

type Characters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn token(letters: &mut Characters<'_>) -> anyhow::Result<ShellToken> {
    let mut token = ShellToken { bytes: Vec::new(), quoted: false };
    let mut plain = String::new();
    while let Some(&letter) = letters.peek() {
        match letter {
            letter if letter.is_whitespace() || letter == ';' => break,
            '\'' | '"' => {
                letters.next();
                token.quoted = true;
                token.bytes.extend(std::mem::take(&mut plain).into_bytes());
                quoted(letters, letter, &mut token.bytes)?;
            }
            letter => {
                plain.push(letter);
                letters.next();
            }
        }
    }
    if let Some(digits) = plain.strip_prefix("0x").filter(|_| !token.quoted) {
        token.bytes = hexadecimal(digits)?;
        token.quoted = true;
    } else {
        token.bytes.extend(plain.into_bytes());
    }
    Ok(token)
}

/// What is in quotes, up to their end.
fn quoted(letters: &mut Characters<'_>, quote: char, out: &mut Vec<u8>) -> anyhow::Result<()> {
    loop {
        let letter = match letters.next() {
            None => bail!("a {quote} is not closed"),
            Some(letter) if letter == quote => return Ok(()),
            Some('\\') if quote == '"' => match letters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(letter @ ('\\' | '"')) => letter,
                Some('x') => {
                    let digits: String = letters.by_ref().take(2).collect();
                    out.extend(hexadecimal(&digits)?);
                    continue;
                }
                other => bail!(
                    "there is no \\{}; there are \\n, \\t, \\\\, \\\" and \\xHH",
                    other.unwrap_or(' ')
                ),
            },
            Some(letter) => letter,
        };
        out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

fn hexadecimal(digits: &str) -> anyhow::Result<Vec<u8>> {
    let is_hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !is_hexadecimal || digits.len() % 2 == 1 {
        bail!("`{digits}` is not hexadecimal: two digits stand for each byte");
    }
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let digits = std::str::from_utf8(pair).expect("they are digits");
        u8::from_str_radix(digits, 16).expect("two hexadecimal digits")
    };
    Ok(pairs.map(byte).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Vec<Vec<String>> {
        let commands = commands(line).unwrap().into_iter();
        commands.map(|tokens| tokens.iter().map(ShellToken::text).collect()).collect()
    }

    #[test]
    fn words_stand_between_spaces_and_commands_between_semicolons() {
        assert_eq!(read("  get a  b; scan # all"), [vec!["get", "a", "b"], vec!["scan"]]);
        assert_eq!(read(" ;; # nothing"), Vec::<Vec<String>>::new());
        assert_eq!(read("put 'a; b' \"c # \\\"d\\\"\""), [["put", "a; b", "c # \"d\""]]);
        assert_eq!(read("put k '{\"a\": 1}'"), [["put", "k", "{\"a\": 1}"]]);
        assert_eq!(read("put a''b \"\""), [["put", "ab", ""]]);
    }

    #[test]
    fn bytes_are_hexadecimal() {
        let tokens = commands("put 0xff00 \"a\\xff\\n\" '0xff'").unwrap().remove(0);
        assert_eq!(tokens[1], ShellToken { bytes: vec![0xff, 0], quoted: true });
        assert_eq!(tokens[2].bytes, b"a\xff\n");
        assert_eq!(tokens[3].bytes, b"0xff");
        assert!(tokens[0].is("PUT") && !tokens[3].is("0xff"));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let refused = |line| commands(line).unwrap_err().to_string();
        assert_eq!(refused("put 'a"), "a ' is not closed");
        assert!(refused("put 0xabc x").contains("`abc` is not hexadecimal"));
        assert!(refused("put \"\\q\"").contains("there is no \\q"));
        assert!(refused("put \"\\xg0\"").contains("is not hexadecimal"));
    }
}
