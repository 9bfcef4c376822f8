//! How much of what was sent over a connection the other end has taken.
//!
//! A server says from time to time how many bytes of messages it has taken in, behind what it
//! answered to them: whoever hears it has heard all answers that were ready. Until then a message
//! is outstanding, and whoever waits for its answer does not say it again.

use std::collections::VecDeque;

use muesli_core::Nanos;

/// Moments are told apart as finely as this.
const MARK_EVERY: Nanos = Nanos::from_millis(5);

/// What was sent over a connection, in bytes of frames of messages.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// Frames that were ended.
    sent: u64,
    /// The first of these that the other end has taken.
    taken: u64,
    /// How much had been sent at some moments, in order.
    marks: VecDeque<(u64, Nanos)>,
}

impl Flow {
    /// A frame of so many bytes was ended.
    pub fn send(&mut self, bytes: usize) {
        self.sent += bytes as u64;
    }

    /// Whether something was not taken yet.
    pub fn is_outstanding(&self) -> bool {
        self.taken < self.sent
    }

    /// All that was sent up to `now` is in what was counted.
    pub fn mark(&mut self, now: Nanos) {
        if self.marks.back().is_none_or(|(_, at)| *at + MARK_EVERY <= now) {
            self.marks.push_back((self.sent, now));
        }
    }

    /// The other end has taken so many bytes since the connection began. Answers up to when all
    /// that was sent is among these, if that is news.
    pub fn take(&mut self, bytes: u64) -> Option<Nanos> {
        self.taken = self.taken.max(bytes.min(self.sent));
        let mut upto = None;
        while let Some((_, at)) = self.marks.pop_front_if(|(sent, _)| *sent <= self.taken) {
            upto = Some(at);
        }
        upto
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against the bytes that were sent at each moment. What was taken stays taken, whatever
        /// is said later.
        #[test]
        fn what_is_said_to_be_taken_is(
            steps in prop::collection::vec((0usize..100, 0u64..20_000_000, 0u64..2_000), 1..40),
        ) {
            let (mut flow, mut now, mut sends, mut total) = (Flow::default(), 0, vec![], 0);
            let mut most_taken = 0;
            for (bytes, passed, taken) in steps {
                now += passed;
                flow.send(bytes);
                total += bytes as u64;
                sends.push((now, total));
                flow.mark(Nanos(now));
                most_taken = most_taken.max(taken);
                if let Some(upto) = flow.take(taken) {
                    let sent = sends.iter().rev().find(|(at, _)| *at < upto.0);
                    prop_assert!(sent.is_none_or(|(_, sent)| *sent <= most_taken));
                }
                prop_assert!(flow.taken <= total);
                prop_assert_eq!(flow.is_outstanding(), flow.taken < total);
            }
            flow.take(u64::MAX);
            prop_assert!(!flow.is_outstanding());
        }
    }
}
