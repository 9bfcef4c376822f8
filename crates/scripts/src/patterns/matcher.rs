//! Whether a pattern matches at a place of a string, and what its captures are.

/// Most captures of a pattern, as Lua has it.
const CAPTURES_MAX: usize = 32;
/// A pattern may go so deep into itself.
const DEPTH_MAX: usize = 200;
/// Steps are counted in portions.
const PORTION: u64 = 4096;

/// Why a pattern could not be looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PatternError {
    /// It is none, as this text says.
    Malformed(&'static str),
    /// The run is to stop.
    Stopped,
}

/// Where a capture is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capture {
    /// It has begun here.
    Open(usize),
    /// It is from here to there.
    Between(usize, usize),
    /// It is this position alone.
    Position(usize),
}

type Matched = Result<Option<usize>, PatternError>;

/// A pattern, and a string that is looked at.
pub(super) struct Matcher<'a> {
    subject: &'a [u8],
    pattern: &'a [u8],
    pub captures: Vec<Capture>,
    depth: usize,
    steps: u64,
    /// Counts steps; whether it may go on.
    charge: &'a dyn Fn(u64) -> bool,
}

impl<'a> Matcher<'a> {
    pub fn new(
        subject: &'a [u8],
        pattern: &'a [u8],
        charge: &'a dyn Fn(u64) -> bool,
    ) -> Matcher<'a> {
        Matcher { subject, pattern, captures: Vec::new(), depth: 0, steps: 0, charge }
    }

    /// The first match from this place on, or only there: its beginning and its end.
    pub fn search(
        &mut self,
        from: usize,
        anchored: bool,
    ) -> Result<Option<(usize, usize)>, PatternError> {
        for begin in from..=self.subject.len() {
            self.captures.clear();
            if let Some(end) = self.matches(begin, 0)? {
                self.flush()?;
                return Ok(Some((begin, end)));
            }
            if anchored {
                break;
            }
        }
        self.flush()?;
        Ok(None)
    }

    /// Counts what was not counted yet.
    fn flush(&mut self) -> Result<(), PatternError> {
        let steps = std::mem::take(&mut self.steps);
        if (self.charge)(steps) { Ok(()) } else { Err(PatternError::Stopped) }
    }

    /// Counts so many steps.
    pub fn step(&mut self, count: usize) -> Result<(), PatternError> {
        self.steps += count as u64;
        if self.steps >= PORTION { self.flush() } else { Ok(()) }
    }

    /// Where a match ends that begins at `at`, of the pattern from `rest` on.
    fn matches(&mut self, at: usize, rest: usize) -> Matched {
        if self.depth == DEPTH_MAX {
            return Err(PatternError::Malformed("pattern too complex"));
        }
        self.depth += 1;
        let found = self.matches_within(at, rest);
        self.depth -= 1;
        found
    }

    fn matches_within(&mut self, mut at: usize, mut rest: usize) -> Matched {
        loop {
            self.step(1)?;
            match self.pattern.get(rest) {
                None => return Ok(Some(at)),
                Some(b'(') if self.pattern.get(rest + 1) == Some(&b')') => {
                    return self.open(Capture::Position(at), at, rest + 2);
                }
                Some(b'(') => return self.open(Capture::Open(at), at, rest + 1),
                Some(b')') => return self.close(at, rest + 1),
                Some(b'$') if rest + 1 == self.pattern.len() => {
                    return Ok((at == self.subject.len()).then_some(at));
                }
                Some(b'%') => match self.pattern.get(rest + 1) {
                    Some(b'b') => match self.balanced(at, rest + 2)? {
                        Some(end) => (at, rest) = (end, rest + 4),
                        None => return Ok(None),
                    },
                    Some(b'f') => match self.frontier(at, rest + 2)? {
                        Some(next) => rest = next,
                        None => return Ok(None),
                    },
                    Some(digit @ b'0'..=b'9') => match self.again(at, *digit)? {
                        Some(end) => (at, rest) = (end, rest + 2),
                        None => return Ok(None),
                    },
                    _ => match self.single(at, rest)? {
                        MatchStep::Goes(next_at, next_rest) => (at, rest) = (next_at, next_rest),
                        MatchStep::Ends(end) => return Ok(end),
                    },
                },
                Some(_) => match self.single(at, rest)? {
                    MatchStep::Goes(next_at, next_rest) => (at, rest) = (next_at, next_rest),
                    MatchStep::Ends(end) => return Ok(end),
                },
            }
        }
    }

    /// One class of letters, and how often it may come.
    fn single(&mut self, at: usize, rest: usize) -> Result<MatchStep, PatternError> {
        let end = self.class_end(rest)?;
        self.step(end - rest)?; // Of a set each letter may have been looked at.
        match self.pattern.get(end) {
            Some(b'?') => {
                if self.is_single(at, rest, end)
                    && let Some(found) = self.matches(at + 1, end + 1)?
                {
                    return Ok(MatchStep::Ends(Some(found)));
                }
                Ok(MatchStep::Goes(at, end + 1))
            }
            Some(b'*') => Ok(MatchStep::Ends(self.most(at, rest, end)?)),
            Some(b'+') if self.is_single(at, rest, end) => {
                Ok(MatchStep::Ends(self.most(at + 1, rest, end)?))
            }
            Some(b'+') => Ok(MatchStep::Ends(None)),
            Some(b'-') => Ok(MatchStep::Ends(self.fewest(at, rest, end)?)),
            _ if self.is_single(at, rest, end) => Ok(MatchStep::Goes(at + 1, end)),
            _ => Ok(MatchStep::Ends(None)),
        }
    }

    fn most(&mut self, at: usize, rest: usize, end: usize) -> Matched {
        let mut count = 0;
        while self.is_single(at + count, rest, end) {
            count += 1;
            self.step(end - rest)?;
        }
        loop {
            if let Some(found) = self.matches(at + count, end + 1)? {
                return Ok(Some(found));
            }
            if count == 0 {
                return Ok(None);
            }
            count -= 1;
        }
    }

    fn fewest(&mut self, mut at: usize, rest: usize, end: usize) -> Matched {
        loop {
            if let Some(found) = self.matches(at, end + 1)? {
                return Ok(Some(found));
            }
            self.step(end - rest)?;
            if !self.is_single(at, rest, end) {
                return Ok(None);
            }
            at += 1;
        }
    }

    fn open(&mut self, capture: Capture, at: usize, rest: usize) -> Matched {
        if self.captures.len() == CAPTURES_MAX {
            return Err(PatternError::Malformed("too many captures"));
        }
        let before = self.captures.len();
        self.captures.push(capture);
        let found = self.matches(at, rest)?;
        if found.is_none() {
            self.captures.truncate(before);
        }
        Ok(found)
    }

    fn close(&mut self, at: usize, rest: usize) -> Matched {
        let is_open = |it: &Capture| matches!(it, Capture::Open(_));
        let Some(last) = self.captures.iter().rposition(is_open) else {
            return Err(PatternError::Malformed("invalid pattern capture"));
        };
        let Capture::Open(begin) = self.captures[last] else { return Ok(None) };
        self.captures[last] = Capture::Between(begin, at);
        let found = self.matches(at, rest)?;
        if found.is_none() {
            self.captures[last] = Capture::Open(begin);
        }
        Ok(found)
    }

    /// What a capture before has matched comes once more.
    fn again(&mut self, at: usize, digit: u8) -> Matched {
        let capture = usize::from(digit).checked_sub(usize::from(b'1'));
        let Some(Capture::Between(begin, end)) =
            capture.and_then(|it| self.captures.get(it)).copied()
        else {
            return Err(PatternError::Malformed("invalid capture index"));
        };
        self.step(end - begin)?;
        let comes = self.subject[at..].starts_with(&self.subject[begin..end]);
        Ok(comes.then_some(at + end - begin))
    }

    /// `%bxy`: from an `x` to the `y` that belongs to it.
    fn balanced(&mut self, at: usize, rest: usize) -> Matched {
        let (Some(open), Some(close)) = (self.pattern.get(rest), self.pattern.get(rest + 1)) else {
            return Err(PatternError::Malformed("unbalanced pattern"));
        };
        if self.subject.get(at) != Some(open) {
            return Ok(None);
        }
        let mut depth = 1;
        for end in at + 1..self.subject.len() {
            self.step(1)?;
            let letter = self.subject[end];
            if letter == *close {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(end + 1));
                }
            } else if letter == *open {
                depth += 1;
            }
        }
        Ok(None)
    }

    /// `%f[set]`: where the set begins; what follows in the pattern.
    fn frontier(&mut self, at: usize, rest: usize) -> Matched {
        if self.pattern.get(rest) != Some(&b'[') {
            return Err(PatternError::Malformed("missing '[' after '%f' in pattern"));
        }
        let end = self.class_end(rest)?;
        self.step(2 * (end - rest))?;
        let set = &self.pattern[rest + 1..end - 1];
        let before = if at == 0 { 0 } else { self.subject[at - 1] };
        let here = self.subject.get(at).copied().unwrap_or(0);
        Ok((!in_set(set, before) && in_set(set, here)).then_some(end))
    }

    /// Where the class of letters ends that begins here.
    fn class_end(&self, rest: usize) -> Result<usize, PatternError> {
        let mut end = rest + 1;
        match self.pattern[rest] {
            b'%' if end == self.pattern.len() => {
                Err(PatternError::Malformed("malformed pattern (ends with '%')"))
            }
            b'%' => Ok(end + 1),
            b'[' => {
                let missing = PatternError::Malformed("malformed pattern (missing ']')");
                end += usize::from(self.pattern.get(end) == Some(&b'^'));
                // A bracket that comes first is a letter.
                let mut is_first = true;
                loop {
                    match self.pattern.get(end) {
                        None => return Err(missing),
                        Some(b']') if !is_first => return Ok(end + 1),
                        Some(b'%') if end + 1 < self.pattern.len() => end += 2,
                        Some(_) => end += 1,
                    }
                    is_first = false;
                }
            }
            _ => Ok(end),
        }
    }

    fn is_single(&self, at: usize, rest: usize, end: usize) -> bool {
        let Some(letter) = self.subject.get(at) else { return false };
        match self.pattern[rest] {
            b'.' => true,
            b'%' => in_class(self.pattern[rest + 1], *letter),
            b'[' => in_set(&self.pattern[rest + 1..end - 1], *letter),
            own => own == *letter,
        }
    }
}

/// How a match goes on.
enum MatchStep {
    Goes(usize, usize),
    Ends(Option<usize>),
}

/// Whether a letter is of a class that a letter names; of no class: whether it is that letter.
fn in_class(class: u8, letter: u8) -> bool {
    let is_in = match class.to_ascii_lowercase() {
        b'a' => letter.is_ascii_alphabetic(),
        b'c' => letter.is_ascii_control(),
        b'd' => letter.is_ascii_digit(),
        b'l' => letter.is_ascii_lowercase(),
        b'p' => letter.is_ascii_punctuation(),
        b's' => letter.is_ascii_whitespace() || letter == 0x0b,
        b'u' => letter.is_ascii_uppercase(),
        b'w' => letter.is_ascii_alphanumeric(),
        b'x' => letter.is_ascii_hexdigit(),
        b'z' => letter == 0,
        _ => return class == letter,
    };
    is_in != class.is_ascii_uppercase()
}

/// Whether a letter is in what is between brackets.
fn in_set(set: &[u8], letter: u8) -> bool {
    let (mut set, inverted) = match set {
        [b'^', rest @ ..] => (rest, true),
        rest => (rest, false),
    };
    loop {
        let (is_in, rest) = match set {
            [] => return inverted,
            [b'%', class, rest @ ..] => (in_class(*class, letter), rest),
            [lo, b'-', hi, rest @ ..] => ((*lo..=*hi).contains(&letter), rest),
            [own, rest @ ..] => (*own == letter, rest),
        };
        if is_in {
            return !inverted;
        }
        set = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(subject: &str, pattern: &str) -> Result<Option<String>, PatternError> {
        let (anchored, pattern) = match pattern.strip_prefix('^') {
            Some(rest) => (true, rest),
            None => (false, pattern),
        };
        let mut matcher = Matcher::new(subject.as_bytes(), pattern.as_bytes(), &|_| true);
        Ok(matcher.search(0, anchored)?.map(|(begin, end)| subject[begin..end].to_owned()))
    }

    #[test]
    fn patterns_match_as_those_of_lua() {
        for (subject, pattern, expected) in [
            ("hello world", "o w", Some("o w")),
            ("hello", "l+", Some("ll")),
            ("hello", "l-o", Some("llo")),
            ("hello", "^ell", None),
            ("hello", "lo$", Some("lo")),
            ("a[b]c", "%[.-%]", Some("[b]")),
            ("key=value", "(%w+)=(%w+)", Some("key=value")),
            ("f(a(b)c)d", "%b()", Some("(a(b)c)")),
            ("THE (quick) fox", "%f[%a]%a+%f[%A]", Some("THE")),
            ("abcabc", "(abc)%1", Some("abcabc")),
            ("x]y", "[]]", Some("]")),
            ("x-y", "[a%-]", Some("-")),
            ("2024-01", "%d%d%d%d", Some("2024")),
            ("", ".*", Some("")),
            ("aab", "a?ab", Some("aab")),
            ("xyz", "[^x]+", Some("yz")),
        ] {
            assert_eq!(first(subject, pattern).unwrap().as_deref(), expected, "{pattern}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for (pattern, expected) in [
            ("%", "malformed pattern (ends with '%')"),
            ("[a", "malformed pattern (missing ']')"),
            ("[%", "malformed pattern (missing ']')"),
            ("a)", "invalid pattern capture"),
            ("%1", "invalid capture index"),
            ("%b", "unbalanced pattern"),
            ("%fa", "missing '[' after '%f' in pattern"),
        ] {
            assert_eq!(first("aaa", pattern), Err(PatternError::Malformed(expected)), "{pattern}");
        }
        let deep = "a?".repeat(5_000);
        let text = "a".repeat(5_000);
        assert_eq!(first(&text, &deep), Err(PatternError::Malformed("pattern too complex")));
    }

    #[test]
    fn a_search_that_takes_too_many_steps_is_stopped() {
        let steps = std::cell::Cell::new(0);
        let charge = |count| {
            steps.set(steps.get() + count);
            steps.get() < 1_000_000
        };
        let (subject, pattern) = ("a".repeat(3_000), ".-".repeat(12) + "b");
        let mut matcher = Matcher::new(subject.as_bytes(), pattern.as_bytes(), &charge);
        assert_eq!(matcher.search(0, false), Err(PatternError::Stopped));
    }
}
