//! Transactions that may be stale, and what each protocol makes of them.

use crate::options::{Staleness, TxnOptions};

/// What becomes of a read-only transaction whose client says how stale what it sees may be
/// ([`TxnOptions::staleness`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StalenessSupport {
    /// The coordinator sees to it: it may answer from a snapshot that is so old.
    Bounded,
    /// It is run as always: it sees all that was committed before it began, whatever it may miss.
    AlwaysFresh,
    /// It is run as a [strict](TxnOptions::strict) one is, which sees all of that.
    AsStrict,
    /// It is refused: nothing bounds how stale a snapshot is.
    Refused,
}

impl StalenessSupport {
    /// The options by which a transaction is run that may be stale; `None`: it is refused.
    pub fn options(self, asked: TxnOptions) -> Option<TxnOptions> {
        assert!(asked.staleness.is_some(), "a transaction that is not to be stale");
        let asked = TxnOptions { read_only: true, ..asked };
        match self {
            StalenessSupport::Bounded => Some(asked),
            StalenessSupport::AlwaysFresh => Some(TxnOptions { staleness: None, ..asked }),
            StalenessSupport::AsStrict => {
                let (strict, follower_reads, staleness) = (true, false, Some(Staleness::NONE));
                Some(TxnOptions { strict, follower_reads, staleness, ..asked })
            }
            StalenessSupport::Refused => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Nanos;

    #[test]
    fn what_may_be_stale_only_reads_however_it_is_run() {
        let staleness = Some(Staleness { most: Nanos(7), waits: false });
        let asked = TxnOptions { staleness, follower_reads: true, ..TxnOptions::default() };
        let run = |support: StalenessSupport| {
            let run = support.options(asked)?;
            assert!(run.read_only, "{support:?}");
            Some((run.strict, run.follower_reads, run.staleness))
        };
        assert_eq!(run(StalenessSupport::Bounded), Some((false, true, staleness)));
        assert_eq!(run(StalenessSupport::AlwaysFresh), Some((false, true, None)));
        let fresh = Some(Staleness::NONE);
        assert_eq!(run(StalenessSupport::AsStrict), Some((true, false, fresh)));
        assert_eq!(run(StalenessSupport::Refused), None);
    }
}
