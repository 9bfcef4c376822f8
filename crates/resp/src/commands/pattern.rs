//! Patterns of names, as `KEYS` and channels have them: `*`, `?`, `[a-c]`, `[^a]`, `\` before any.

/// Whether a name is as the pattern says.
pub(crate) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    // Where to go on if what follows the last star does not hold: pattern behind it, and name.
    let mut star: Option<(&[u8], &[u8])> = None;
    let (mut pattern, mut name) = (pattern, name);
    loop {
        if let Some((b'*', rest)) = pattern.split_first() {
            star = Some((rest, name));
            pattern = rest;
            continue;
        }
        let one = name.split_first().and_then(|(byte, after)| Some((one(pattern, *byte)?, after)));
        match one {
            Some((rest, after)) => (pattern, name) = (rest, after),
            None if name.is_empty() && pattern.is_empty() => return true,
            None => match star {
                Some((behind, from)) if !from.is_empty() => {
                    star = Some((behind, &from[1..]));
                    (pattern, name) = (behind, &from[1..]);
                }
                _ => return false,
            },
        }
    }
}

/// What is left of a pattern if its first part is this byte.
fn one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [b'?', rest @ ..] => Some(rest),
        [b'\\', escaped, rest @ ..] => (*escaped == byte).then_some(rest),
        [b'[', rest @ ..] => class(rest, byte),
        [plain, rest @ ..] => (*plain == byte).then_some(rest),
        [] => None,
    }
}

fn class(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (mut rest, inverted) = match pattern {
        [b'^', rest @ ..] => (rest, true),
        rest => (rest, false),
    };
    let mut is_in = false;
    loop {
        rest = match rest {
            [b'\\', escaped, rest @ ..] => {
                is_in |= *escaped == byte;
                rest
            }
            [b']', rest @ ..] => return (is_in != inverted).then_some(rest),
            [lo, b'-', hi, rest @ ..] => {
                is_in |= (*lo.min(hi)..=*lo.max(hi)).contains(&byte);
                rest
            }
            [plain, rest @ ..] => {
                is_in |= *plain == byte;
                rest
            }
            [] => return (is_in != inverted).then_some(rest),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_names() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abcb", false),
            ("h?llo", "hello", true),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            (r"a\*b", "a*b", true),
            (r"a\*b", "axb", false),
            ("*a*b*", "xxaxxbxx", true),
            ("", "a", false),
            ("a**b", "ab", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let (pattern, name) = ("a*".repeat(30) + "b", "a".repeat(300));
        assert!(!matches(pattern.as_bytes(), name.as_bytes()));
    }
}
