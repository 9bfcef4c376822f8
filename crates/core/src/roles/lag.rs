//! By how much one replica of a group is behind the others, as operators are told.

use std::fmt;

use crate::wire_struct;

/// By how much a replica is behind the one that has come furthest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// Entries of the group's log that it lacks or has not applied.
    pub entries: u64,
    /// The bytes of these.
    pub bytes: u64,
    /// How much it has of what it fetches from another replica, of 100, if it does.
    pub percent: Option<u8>,
}

wire_struct!(Lag { entries: u64, bytes: u64, percent: Option<u8> });

impl fmt::Display for Lag {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lag { entries, bytes, percent } = self;
        match percent {
            // What it fetches is no part of the log, but all that the log has led to.
            Some(percent) if *entries == 0 => write!(out, "catching up {percent} %"),
            Some(percent) => {
                write!(out, "catching up {percent} %, behind by {entries} entries / {bytes} bytes")
            }
            None if *entries == 0 => out.write_str("up to date"),
            None => write!(out, "behind by {entries} entries / {bytes} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Wire;

    #[test]
    fn lags_are_told_and_come_back_from_their_bytes() {
        let behind = Lag { entries: 3, bytes: 70, percent: None };
        assert_eq!(behind.to_string(), "behind by 3 entries / 70 bytes");
        assert_eq!(Lag::default().to_string(), "up to date");
        let fetches = Lag { percent: Some(43), ..behind };
        assert_eq!(fetches.to_string(), "catching up 43 %, behind by 3 entries / 70 bytes");
        let state = Lag { percent: Some(43), ..Lag::default() };
        assert_eq!(state.to_string(), "catching up 43 %");
        let mut bytes = Vec::new();
        fetches.encode(&mut bytes);
        assert_eq!(Lag::decode_all(&bytes), Ok(fetches));
    }
}
