//! The scripts that a server knows, by their hash. Those that were not called for the longest time
//! go where there are too many.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use muesli_scripts::ScriptFlags;

/// So many scripts are known, and so many bytes of them.
const SCRIPTS_MAX: usize = 10_000;
const BYTES_MAX: usize = 64 << 20;

/// A script.
#[derive(Clone, Debug)]
pub(crate) struct CachedScript {
    /// Its code, without its first line if that says what it may do.
    pub code: Rc<[u8]>,
    pub flags: ScriptFlags,
    /// When it was called last, as the cache counts.
    used: Cell<u64>,
}

/// The scripts.
#[derive(Debug, Default)]
pub(crate) struct ScriptCache {
    scripts: RefCell<HashMap<String, CachedScript>>,
    bytes: Cell<usize>,
    calls: Cell<u64>,
}

impl ScriptCache {
    /// The script of this hash.
    pub fn get(&self, sha: &str) -> Option<CachedScript> {
        let scripts = self.scripts.borrow();
        let found = scripts.get(sha)?;
        self.calls.set(self.calls.get() + 1);
        found.used.set(self.calls.get());
        Some(found.clone())
    }

    pub fn contains(&self, sha: &str) -> bool {
        self.scripts.borrow().contains_key(sha)
    }

    /// Has the server know a script, unless that is longer than all of them may be.
    pub fn insert(&self, sha: String, code: Rc<[u8]>, flags: ScriptFlags) {
        if code.len() > BYTES_MAX || self.contains(&sha) {
            return;
        }
        let mut scripts = self.scripts.borrow_mut();
        while !scripts.is_empty()
            && (scripts.len() >= SCRIPTS_MAX || self.bytes.get() + code.len() > BYTES_MAX)
        {
            self.forget_oldest(&mut scripts);
        }
        self.bytes.set(self.bytes.get() + code.len());
        let used = Cell::new(self.calls.get());
        scripts.insert(sha, CachedScript { code, flags, used });
    }

    /// Forgets a tenth of the scripts: those that were not called for the longest time.
    fn forget_oldest(&self, scripts: &mut HashMap<String, CachedScript>) {
        let mut calls: Vec<_> = scripts.values().map(|it| it.used.get()).collect();
        let tenth = calls.len() / 10;
        let (_, newest, _) = calls.select_nth_unstable(tenth);
        let newest = *newest;
        let mut left = tenth + 1;
        scripts.retain(|_, script| {
            let goes = left > 0 && script.used.get() <= newest;
            if goes {
                left -= 1;
                self.bytes.set(self.bytes.get() - script.code.len());
            }
            !goes
        });
    }

    pub fn clear(&self) {
        self.scripts.borrow_mut().clear();
        self.bytes.set(0);
    }

    /// How many there are, and their bytes.
    pub fn size(&self) -> (usize, usize) {
        (self.scripts.borrow().len(), self.bytes.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_are_called_stay_and_others_go() {
        let cache = ScriptCache::default();
        let add = |at: usize| {
            cache.insert(at.to_string(), b"return 1".as_slice().into(), ScriptFlags::default());
        };
        add(0);
        for at in 1..3 * SCRIPTS_MAX {
            add(at);
            assert!(cache.get("0").is_some());
        }
        let (count, bytes) = cache.size();
        assert!(count <= SCRIPTS_MAX && bytes == 8 * count, "{count} {bytes}");
        cache.insert("long".to_owned(), vec![0; BYTES_MAX].into(), ScriptFlags::default());
        assert_eq!(cache.size(), (1, BYTES_MAX));
        let too_long = vec![0; BYTES_MAX + 1].into();
        cache.insert("too long".to_owned(), too_long, ScriptFlags::default());
        assert!(cache.contains("long") && !cache.contains("too long"));
        cache.clear();
        assert_eq!(cache.size(), (0, 0));
    }
}
