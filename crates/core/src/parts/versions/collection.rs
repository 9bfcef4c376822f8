//! Old versions that no snapshot can read any more, and how they are dropped.

use super::bytes::len;
use super::{Handle, NIL, Replaced, Versions};
use crate::ids::Timestamp;

impl Versions {
    #[cold]
    pub(super) fn cut_older(&mut self, handle: Handle) {
        let rest = std::mem::replace(&mut self.entry_mut(handle).older, NIL);
        self.free_chain(rest);
    }

    /// Drops up to `budget` replaced versions that no snapshot at or above `low` can read, and
    /// keys whose newest version is such a tombstone. Returns how many versions were dropped.
    pub fn collect(&mut self, low: Timestamp, budget: usize) -> u64 {
        let mut dropped = 0;
        for _ in 0..budget {
            let Some(replaced) = self.replaced.pop_front_if(|replaced| replaced.at <= low) else {
                break;
            };
            let Replaced { handle, .. } = replaced;
            let entry = &self.entries[handle.slot as usize];
            if entry.generation != handle.generation {
                continue;
            }
            let dead = entry.value.is_none() && entry.at <= low;
            let free = entry.lock.is_free();
            dropped += self.cut_below(handle, low);
            if dead && free {
                self.note_collected(handle);
                self.remove(handle);
                dropped += 1;
            } else if dead {
                self.replaced.push_back(replaced); // Locked: look again when its turn comes.
            }
        }
        dropped
    }

    /// Frees every version older than the one that a snapshot at `low` reads. Returns how many.
    fn cut_below(&mut self, handle: Handle, low: Timestamp) -> u64 {
        let entry = &mut self.entries[handle.slot as usize];
        let rest = if entry.at <= low {
            std::mem::replace(&mut entry.older, NIL)
        } else {
            let mut place = entry.older;
            while place != NIL && self.older[place as usize].at > low {
                place = self.older[place as usize].older;
            }
            match self.older.get_mut(place as usize) {
                Some(visible) => std::mem::replace(&mut visible.older, NIL),
                None => NIL,
            }
        };
        self.free_chain(rest)
    }

    /// Frees an older version and all that are older than it. Returns how many.
    pub(super) fn free_chain(&mut self, mut rest: u32) -> u64 {
        let mut count = 0;
        while rest != NIL {
            let older = &mut self.older[rest as usize];
            let freed = len(older.value.take().as_ref());
            (self.bytes, self.older_bytes) = (self.bytes - freed, self.older_bytes - freed);
            self.free_older.push(rest);
            rest = std::mem::replace(&mut older.older, NIL);
            count += 1;
        }
        count
    }
}
