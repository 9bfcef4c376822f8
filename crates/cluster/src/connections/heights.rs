//! What was heard of how far the logs of all servers have come, and whether data are an older copy
//! by that; [`older_copies`](crate::admission::older_copies) has why, and who hears of it.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use muesli_core::NodeId;

use crate::wire::progress::Reached;

/// Why data are an older copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OlderCopy {
    /// They had come up to this record.
    Below(u64),
    /// Other data have followed them, which began then.
    Followed(u64),
}

/// What was heard of all servers: of each, its newest life.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heights {
    newest: BTreeMap<NodeId, Reached>,
    /// There is something that was not kept yet.
    pub is_new: bool,
}

impl Heights {
    /// What was kept, or said by somebody else.
    pub fn recall(kept: &[Reached]) -> Heights {
        let mut heights = Heights::default();
        kept.iter().for_each(|&reached| heights.note(reached));
        heights.is_new = false;
        heights
    }

    /// All that is known.
    pub fn all(&self) -> Vec<Reached> {
        self.newest.values().copied().collect()
    }

    /// Whether data that have come so far are an older copy, by what is known.
    pub fn judge(&self, now: Reached) -> Result<(), OlderCopy> {
        let Some(newest) = self.newest.get(&now.node) else { return Ok(()) };
        let is_below = newest.process != now.process && newest.record > now.record;
        match newest.order().cmp(&now.order()) {
            Ordering::Greater => Err(OlderCopy::Followed(newest.begun)),
            Ordering::Equal if is_below => Err(OlderCopy::Below(newest.record)),
            Ordering::Equal | Ordering::Less => Ok(()),
        }
    }

    /// A server has come so far.
    pub fn note(&mut self, now: Reached) {
        if let Some(known) = self.newest.get(&now.node) {
            let is_older = match known.order().cmp(&now.order()) {
                Ordering::Greater => true,
                Ordering::Equal => known.record > now.record || *known == now,
                Ordering::Less => false,
            };
            if is_older {
                return;
            }
        }
        self.newest.insert(now.node, now);
        self.is_new = true;
    }

    /// A process of a server has come so far, which told in its handshake which life it is of.
    pub fn note_alive(&mut self, now: Reached) {
        if self.newest.get(&now.node).is_some_and(|known| known.order() == now.order()) {
            self.note(now);
        }
    }
}

impl OlderCopy {
    /// When the data began that have followed.
    pub(crate) fn begun(self) -> Option<u64> {
        match self {
            OlderCopy::Followed(begun) => Some(begun),
            OlderCopy::Below(_) => None,
        }
    }
}

/// What was heard is being kept, on a thread of its own.
#[derive(Debug, Default)]
pub(crate) struct Keeping {
    pub is_under_way: AtomicBool,
    /// The last time it could not be written.
    pub has_failed: AtomicBool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ids::DataId;

    fn reached(data_id: u64, process: u64, record: u64) -> Reached {
        Reached { node: NodeId(1), data_id: DataId(9 - data_id), begun: data_id, process, record }
    }

    #[test]
    fn data_below_what_an_earlier_process_said_of_them_are_an_older_copy() {
        let mut heights = Heights::default();
        assert_eq!(heights.judge(reached(7, 1, 3)), Ok(()));
        heights.note(reached(7, 1, 5));
        heights.note(reached(7, 1, 4));
        assert_eq!(heights.judge(reached(7, 2, 4)), Err(OlderCopy::Below(5)));
        assert_eq!(heights.judge(reached(7, 2, 5)), Ok(()));
        assert_eq!(heights.judge(reached(7, 2, 9)), Ok(()));
        // Said before that, and arriving after it.
        assert_eq!(heights.judge(reached(7, 1, 4)), Ok(()));
    }

    /// A server has restarted, and another one still tells what its earlier process said.
    #[test]
    fn signs_of_life_count_for_the_process_that_gives_them() {
        let mut heights = Heights::default();
        heights.note(reached(7, 2, 5));
        heights.note(reached(7, 1, 5));
        heights.note_alive(reached(7, 2, 9));
        assert_eq!(heights.judge(reached(7, 2, 8)), Ok(()), "said before, and arriving after");
        assert_eq!(heights.judge(reached(7, 3, 8)), Err(OlderCopy::Below(9)));
        // Of data that began anew since, and of such that others were told of first.
        heights.note_alive(Reached { begun: 6, ..reached(7, 2, 20) });
        heights.note_alive(Reached { begun: 8, ..reached(7, 2, 30) });
        assert_eq!(heights.judge(reached(7, 3, 9)), Ok(()));
    }

    #[test]
    fn data_that_others_have_followed_are_an_older_copy_in_whichever_order_that_is_heard() {
        for data_ids in [[1, 2], [2, 1]] {
            let mut here = Heights::default();
            data_ids
                .iter()
                .for_each(|&data_id| here.note(reached(data_id, data_id, 10 * (3 - data_id))));
            assert_eq!(here.judge(reached(1, 3, 60)), Err(OlderCopy::Followed(2)));
            assert_eq!(here.judge(reached(2, 3, 10)), Ok(()));
            assert_eq!(here.judge(reached(3, 3, 0)), Ok(()));
            assert_eq!(Heights::recall(&here.all()).all(), here.all());
        }
    }
}
