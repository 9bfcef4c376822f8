//! The trace: every event of a run, as a digest always and as text when asked for.
//!
//! Two runs are the same iff their traces are, so a trace line is made of everything that
//! distinguishes one run from another: when, where, what, and a few numbers. The digest is over
//! these numbers and not over the text, because printing costs more than the event; text can be
//! switched on without changing the digest.

use std::fmt::{self, Write as _};

use xxhash_rust::xxh3::Xxh3;

use crate::time::VirtualTime;

/// The running trace.
pub struct Trace {
    hasher: Xxh3,
    /// Lines that are not hashed yet; hashing in large pieces is several times faster.
    pending: Vec<u8>,
    events: u64,
    text: Option<String>,
}

/// One event, as the digest sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// When.
    pub at: VirtualTime,
    /// At which node; `u32::MAX` where it is no node's.
    pub node: u32,
    /// What: the name of the event.
    pub event: &'static str,
    /// Further numbers, whose meaning depends on the event.
    pub numbers: [u64; 3],
}

/// What identifies the events of a run. Prints as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u128);

const PENDING_MAX: usize = 4_096;

impl Trace {
    /// An empty trace that keeps the digest only.
    pub fn digest_only() -> Self {
        let pending = Vec::with_capacity(PENDING_MAX);
        Trace { hasher: Xxh3::new(), pending, events: 0, text: None }
    }

    /// An empty trace that keeps the text as well.
    pub fn with_text() -> Self {
        Trace { text: Some(String::new()), ..Trace::digest_only() }
    }

    /// Adds an event. `detail` is printed at the end of the line if there is text; what it says
    /// does not reach the digest.
    pub fn event(&mut self, line: Line, detail: impl FnOnce(&mut String) -> fmt::Result) {
        self.events += 1;
        if self.pending.len() + line.bytes_max() > PENDING_MAX {
            self.hash_pending();
        }
        line.append_to(&mut self.pending);
        if let Some(text) = &mut self.text {
            let written = line.print(text).and_then(|()| detail(text));
            written.expect("writing to a string cannot fail");
            text.push('\n');
        }
    }

    /// How many events there were.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// What identifies the events so far.
    pub fn digest(&mut self) -> Digest {
        self.hash_pending();
        Digest(self.hasher.digest128())
    }

    /// The lines so far, if text is kept.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    fn hash_pending(&mut self) {
        self.hasher.update(&self.pending);
        self.pending.clear();
    }
}

impl Line {
    fn bytes_max(&self) -> usize {
        8 + 4 + 1 + self.event.len() + 3 * 8
    }

    fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.at.as_nanos().to_le_bytes());
        bytes.extend_from_slice(&self.node.to_le_bytes());
        bytes.push(self.event.len() as u8);
        bytes.extend_from_slice(self.event.as_bytes());
        for number in self.numbers {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn print(&self, text: &mut String) -> fmt::Result {
        let nanos = self.at.as_nanos();
        write!(text, "{:>4}.{:09} ", nanos / 1_000_000_000, nanos % 1_000_000_000)?;
        match self.node {
            u32::MAX => text.push_str("world "),
            node => write!(text, "n{node} ")?,
        }
        write!(text, "{}", self.event)?;
        self.numbers.iter().try_for_each(|number| write!(text, " {number}"))
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Trace of {} events", self.events)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const EVENTS: [&str; 3] = ["send", "deliver", "sync"];

    fn line() -> impl Strategy<Value = Line> {
        (0..9_u64, 0..3_u32, 0..EVENTS.len(), any::<[u64; 3]>()).prop_map(
            |(at, node, event, numbers)| Line {
                at: VirtualTime::from_nanos(at),
                node,
                event: EVENTS[event],
                numbers,
            },
        )
    }

    fn digest(mut trace: Trace, lines: &[Line]) -> (Digest, Option<String>) {
        for line in lines {
            trace.event(*line, |text| write!(text, " detail"));
        }
        (trace.digest(), trace.text().map(str::to_owned))
    }

    #[test]
    fn lines_print_their_numbers_and_the_detail() {
        let at = VirtualTime::from_nanos(1_000_000_007);
        let line = Line { at, node: 3, event: "deliver", numbers: [1, 2, 3] };
        let (_, text) = digest(Trace::with_text(), &[line, Line { node: u32::MAX, ..line }]);
        let expected = "   1.000000007 n3 deliver 1 2 3 detail\n   \
                        1.000000007 world deliver 1 2 3 detail\n";
        assert_eq!(text.as_deref(), Some(expected));
    }

    #[test]
    fn any_difference_changes_the_digest() {
        let line = Line { at: VirtualTime::ZERO, node: 1, event: "send", numbers: [0; 3] };
        let variants = [
            vec![],
            vec![line],
            vec![line, line],
            vec![Line { at: VirtualTime::from_nanos(1), ..line }],
            vec![Line { node: 2, ..line }],
            vec![Line { event: "sync", ..line }],
            vec![Line { numbers: [0, 1, 0], ..line }],
        ];
        let digests: BTreeSet<String> = variants
            .iter()
            .map(|lines| digest(Trace::digest_only(), lines).0.to_string())
            .collect();
        assert_eq!(digests.len(), variants.len());
    }

    proptest! {
        #[test]
        fn text_and_looking_do_not_change_the_digest(
            lines in prop::collection::vec(line(), 0..300),
            look in 0..300_usize,
        ) {
            let (plain, none) = digest(Trace::digest_only(), &lines);
            let (texted, text) = digest(Trace::with_text(), &lines);
            prop_assert_eq!(plain, texted);
            prop_assert!(none.is_none());
            prop_assert_eq!(text.map(|text| text.lines().count()), Some(lines.len()));
            let mut looked_at = Trace::digest_only();
            for (number, line) in lines.iter().enumerate() {
                looked_at.event(*line, |_| Ok(()));
                if number == look {
                    looked_at.digest();
                }
            }
            prop_assert_eq!(looked_at.digest(), plain);
        }
    }
}
