//! The longest of what a run has said and kept. Records, pieces of checkpoints and messages have
//! limits in production that short runs never come near; but what grows with the data grows in
//! short runs too, and stands out there.

/// The longest of each kind, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Longest {
    /// A record of a log.
    pub record: u64,
    /// A piece of a checkpoint.
    pub piece: u64,
    /// A message to another node, with its kind.
    pub message: (u64, &'static str),
}

impl Longest {
    pub(in crate::world) fn note_record(&mut self, bytes: u64) {
        self.record = self.record.max(bytes);
    }

    pub(in crate::world) fn note_piece(&mut self, bytes: u64) {
        self.piece = self.piece.max(bytes);
    }

    pub(in crate::world) fn note_message(
        &mut self,
        bytes: u64,
        name: impl FnOnce() -> &'static str,
    ) {
        if bytes > self.message.0 {
            self.message = (bytes, name());
        }
    }

    /// The longest of both.
    #[must_use]
    pub fn or(self, other: Longest) -> Longest {
        Longest {
            record: self.record.max(other.record),
            piece: self.piece.max(other.piece),
            message: self.message.max(other.message),
        }
    }

    /// What is longer than `most` bytes, as a text; `None`: nothing.
    pub fn over(&self, most: u64) -> Option<String> {
        let all = [
            (self.record, "a record"),
            (self.piece, "a piece of a checkpoint"),
            (self.message.0, "a message"),
        ];
        let (bytes, what) = all.into_iter().find(|(bytes, _)| *bytes > most)?;
        let kind = match what {
            "a message" => format!(" (`{}`)", self.message.1),
            _ => String::new(),
        };
        Some(format!(
            "{what}{kind} of {bytes} bytes is over the limit of {most} bytes of this run: it grows \
             with the data"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_of_each_kind_is_noted_and_named() {
        let (mut one, mut other) = (Longest::default(), Longest::default());
        one.note_record(5);
        one.note_record(3);
        one.note_message(7, || "Vote");
        other.note_piece(9);
        other.note_message(6, || "Prepare");
        let both = one.or(other);
        assert_eq!(both, Longest { record: 5, piece: 9, message: (7, "Vote") });
        assert_eq!(both.over(9), None);
        assert!(both.over(8).unwrap().starts_with("a piece of a checkpoint of 9 bytes"));
        assert!(one.over(6).unwrap().starts_with("a message (`Vote`) of 7 bytes"));
    }
}
