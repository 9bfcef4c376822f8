//! A state under way to a receiver, as the member that sends it sees it.
//!
//! It is cut into pieces while the participant goes on. A leader's has run entries that may never
//! be decided, so each piece remembers how many had been run when it was taken, and leaves once
//! these are decided. Where the leader is deposed, pieces that still wait are taken anew from the
//! participant that has returned to what is decided, once that is as new as the pieces that have
//! left: to the receiver it is as if nobody had been deposed.

use std::collections::VecDeque;

use muesli_core::Cursor;

use crate::agreement::entry::Entry;
use crate::agreement::transfer::StatePiece;

/// The state, of which so much has been taken and sent.
#[derive(Debug)]
pub(in crate::replica) struct Sending {
    transfer: u64,
    /// Which of the member's participants it is taken from.
    pub(in crate::replica) generation: u64,
    /// The state is that after so many entries.
    pub(in crate::replica) covers: u64,
    cursor: Cursor,
    /// The number of the first piece that is not acknowledged, those from there on, and how many
    /// were sent.
    first: u64,
    pieces: VecDeque<Piece>,
    sent: u64,
    bytes: u64,
    /// How many entries the participant had run when the last piece was taken.
    newest: u64,
    /// Once all pieces were taken: which entries they may hold effects of.
    needs: Option<u64>,
    is_over: bool,
}

#[derive(Debug)]
struct Piece {
    state: Entry,
    /// It may hold effects of so many entries.
    holds: u64,
    /// From where it was taken; `None` where it is of the moment at which the transfer began.
    before: Option<Cursor>,
}

impl Sending {
    /// A state as it is after so many entries.
    pub(in crate::replica) fn new(
        transfer: u64,
        generation: u64,
        covers: u64,
        cursor: Cursor,
    ) -> Sending {
        Sending {
            transfer,
            generation,
            covers,
            cursor,
            first: 0,
            pieces: VecDeque::new(),
            sent: 0,
            bytes: 0,
            newest: covers,
            needs: None,
            is_over: false,
        }
    }

    /// Whether nothing of it has left yet.
    pub(in crate::replica) fn waits(&self) -> bool {
        self.first == 0 && self.sent == 0
    }

    /// Whether it is this transfer.
    pub(in crate::replica) fn is(&self, transfer: u64) -> bool {
        self.transfer == transfer
    }

    /// The receiver has so many pieces on its disk; `again`: what was sent after them was lost. It
    /// may name some that are to be sent again, or that never were.
    pub(in crate::replica) fn acknowledge(&mut self, have: u64, again: bool) {
        while self.first < have {
            let Some(piece) = self.pieces.pop_front() else { break };
            self.bytes -= piece.state.0.len() as u64;
            self.first += 1;
        }
        self.sent = self.sent.max(self.first);
        if again {
            self.sent = self.first;
            self.is_over = false;
        }
    }

    /// Whether the next piece is to be taken: all others were sent, the receiver keeps up, and the
    /// participant, which has run `applied` entries, is not behind what the others hold.
    pub(in crate::replica) fn takes_next(&self, applied: u64, window_bytes: u64) -> bool {
        let next = self.first + self.pieces.len() as u64;
        let is_due = self.sent == next && self.needs.is_none();
        is_due && self.bytes < window_bytes && applied >= self.newest
    }

    /// Takes the next piece from a participant that has run `applied` entries.
    pub(in crate::replica) fn take(
        &mut self,
        applied: u64,
        next: impl FnOnce(&mut Cursor, &mut Vec<u8>) -> bool,
    ) {
        let is_of_beginning = self.cursor.step == 0 && !self.cursor.first.is_empty();
        let before = (!is_of_beginning).then(|| self.cursor.clone());
        let holds = if is_of_beginning { self.covers } else { applied };
        let mut state = Vec::new();
        if next(&mut self.cursor, &mut state) {
            self.bytes += state.len() as u64;
            self.pieces.push_back(Piece { state: Entry::from(state), holds, before });
        } else {
            self.needs = Some(holds);
        }
        self.newest = holds;
    }

    /// The next message, if all is decided that it may hold effects of, and there is one.
    pub(in crate::replica) fn send(&mut self, decided: u64) -> Option<StatePiece> {
        if self.covers > decided {
            return None;
        }
        let piece = self.pieces.get((self.sent - self.first) as usize);
        let is_end = piece.is_none();
        if is_end && (self.is_over || self.needs.is_none()) {
            return None;
        }
        if piece.map_or(self.needs, |it| Some(it.holds)) > Some(decided) {
            return None;
        }
        let message = StatePiece {
            transfer: self.transfer,
            covers: self.covers,
            number: self.sent,
            percent: self.cursor.percent,
            piece: piece.map(|it| it.state.clone()),
            needs: self.needs.unwrap_or(0),
        };
        self.is_over = is_end;
        self.sent += u64::from(!is_end);
        Some(message)
    }

    /// Whether a piece was taken that has not left, and may.
    pub(in crate::replica) fn may_leave(&self, decided: u64) -> bool {
        let piece = self.pieces.get((self.sent - self.first) as usize);
        piece.is_some_and(|it| it.holds.max(self.covers) <= decided)
    }

    /// The participant has returned to what it was after `upto` entries, and nothing after `sure`
    /// need ever be decided: what may hold effects of that is taken anew. False: the state is of no
    /// use any more.
    pub(in crate::replica) fn take_back(&mut self, upto: u64, sure: u64) -> bool {
        if self.covers > upto {
            return false; // Keys that were there when it began may have other slots now.
        }
        while let Some(piece) = self.pieces.pop_back_if(|it| it.holds > sure) {
            let before = piece.before.expect("the transfer begins with what is decided");
            self.bytes -= piece.state.0.len() as u64;
            self.cursor = before;
        }
        let left = self.first + self.pieces.len() as u64;
        assert!(self.sent <= left, "what has left is decided");
        if self.needs.is_some_and(|it| it > sure) {
            (self.needs, self.is_over) = (None, false);
        }
        self.newest = self.newest.min(sure);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a piece that says where it was taken and after how many entries; five keys in all.
    fn take(it: &mut Sending, applied: u64) {
        assert!(it.takes_next(applied, 100), "{it:?}");
        it.take(applied, |cursor, out| {
            if cursor.first.pop_front().is_some() {
                out.push(99);
                return true;
            }
            (cursor.step, cursor.place) = (1, cursor.place + 1);
            out.extend([cursor.place as u8, applied as u8]);
            cursor.place <= 5
        });
    }

    fn sent(it: &mut Sending, decided: u64) -> Vec<u8> {
        let sent = it.send(decided).and_then(|it| it.piece);
        sent.map_or(Vec::new(), |it| it.0.to_vec())
    }

    fn begun() -> Sending {
        let first = VecDeque::from([vec![]]);
        let mut it = Sending::new(1, 0, 10, Cursor { first, ..Cursor::default() });
        take(&mut it, 12);
        assert_eq!(it.send(9), None, "the moment that it is of is not decided");
        assert_eq!(sent(&mut it, 10), [99], "what is of the beginning holds nothing later");
        it
    }

    #[test]
    fn a_piece_leaves_once_all_is_decided_that_it_may_hold() {
        let mut it = begun();
        take(&mut it, 13);
        assert!(!it.takes_next(13, 100), "one at a time");
        assert_eq!(it.send(12), None);
        assert_eq!(sent(&mut it, 13), [1, 13]);
        it.acknowledge(1, true);
        assert_eq!(sent(&mut it, 13), [1, 13], "it was lost");
    }

    #[test]
    fn more_may_be_acknowledged_than_counts_as_sent() {
        let mut it = begun();
        take(&mut it, 13);
        assert_eq!(sent(&mut it, 13), [1, 13]);
        it.acknowledge(0, true);
        it.acknowledge(2, false);
        take(&mut it, 14);
        assert_eq!(sent(&mut it, 14), [2, 14], "what was sent at first has come after all");
        take(&mut it, 15);
        it.acknowledge(u64::MAX, false);
        assert_eq!((it.first, it.sent), (4, 4), "or so a liar says of what was never sent");
        take(&mut it, 16);
        assert_eq!(sent(&mut it, 16), [4, 16]);
    }

    #[test]
    fn what_may_never_be_decided_is_taken_anew() {
        let mut it = begun();
        take(&mut it, 13);
        assert_eq!(sent(&mut it, 13), [1, 13]);
        take(&mut it, 20);
        assert_eq!(it.send(14), None);
        assert!(it.take_back(11, 14));
        assert_eq!(it.send(30), None, "it is gone");
        assert!(!it.takes_next(12, 100), "the participant is behind what was sent");
        take(&mut it, 14);
        assert_eq!(sent(&mut it, 14), [2, 14], "from the same place");
        assert_eq!((it.first, it.sent), (0, 3));
    }

    #[test]
    fn the_end_is_said_anew_too() {
        let mut it = begun();
        for applied in 13..18 {
            take(&mut it, applied);
            assert!(it.send(applied).is_some());
        }
        take(&mut it, 30);
        assert_eq!((it.needs, it.send(29)), (Some(30), None));
        assert!(it.take_back(15, 20));
        assert_eq!(it.needs, None);
        take(&mut it, 20);
        let end = it.send(20).expect("all is decided");
        assert_eq!((end.number, end.piece, end.needs), (6, None, 20));
        assert_eq!(it.send(20), None, "it is said once");
        it.acknowledge(6, true);
        assert!(it.send(20).is_some(), "or when it was lost");
    }

    #[test]
    fn a_moment_that_is_taken_back_ends_it() {
        assert!(!begun().take_back(9, 20));
    }
}
