//! What a proof of the cluster's secret is asked with.

use muesli_core::wire::{Reader, Wire, WireError};

/// Bytes of a challenge.
pub const CHALLENGE_BYTES: usize = 16;

/// A number that was never used before and cannot be guessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Challenge(pub [u8; CHALLENGE_BYTES]);

impl Challenge {
    /// A new one.
    ///
    /// # Panics
    /// If the system has no random numbers.
    pub fn draw() -> Challenge {
        let mut bytes = [0; CHALLENGE_BYTES];
        getrandom::fill(&mut bytes).expect("the system gives random numbers");
        Challenge(bytes)
    }
}

impl Wire for Challenge {
    const LEAST_BYTES: usize = CHALLENGE_BYTES;

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Challenge, WireError> {
        input.array().map(Challenge)
    }
}
