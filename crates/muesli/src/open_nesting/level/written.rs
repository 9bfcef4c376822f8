//! What an attempt has written: keys, each with what was written last.

use std::collections::BTreeMap;

use muesli_core::{Scan, SpaceId};

use super::reads::{OwnValue, SpaceKey, covers};

/// Keys that were written, with what was written last.
#[derive(Debug, Default)]
pub(super) struct WrittenKeys(BTreeMap<SpaceKey, OwnValue>);

impl WrittenKeys {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A key is written.
    pub fn write(&mut self, key: SpaceKey, value: OwnValue) {
        self.0.insert(key, value);
    }

    /// A key is as it was before it was written.
    pub fn unwrite(&mut self, key: SpaceKey, before: Option<OwnValue>) {
        match before {
            Some(value) => drop(self.0.insert(key, value)),
            None => drop(self.0.remove(&key)),
        }
    }

    /// A key is changed by an action, perhaps later.
    pub fn act(&mut self, key: SpaceKey) {
        self.0.entry(key).or_insert(None);
    }

    /// An action is done at once, by a read and a write that are to come.
    pub fn acts_at_once(&mut self, key: &SpaceKey) {
        if self.0.get(key) == Some(&None) {
            self.0.remove(key);
        }
    }

    /// This key, if it was written.
    pub fn find(&self, key: &SpaceKey) -> Option<&SpaceKey> {
        self.0.get_key_value(key).map(|(key, _)| key)
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = &SpaceKey> {
        self.0.keys()
    }

    /// What was written to a key, if it was.
    pub fn value(&self, key: &SpaceKey) -> Option<OwnValue> {
        self.0.get(key).copied()
    }

    /// The keys of a range.
    pub fn within(&self, scan: &Scan) -> impl Iterator<Item = (&SpaceKey, OwnValue)> {
        let from = self.0.range((scan.space, scan.lo.clone())..).map(|(key, value)| (key, *value));
        from.take_while(|(key, _)| covers(scan, key))
    }

    /// The spaces of the keys.
    pub fn spaces(&self) -> impl Iterator<Item = SpaceId> {
        self.0.keys().map(|(space, _)| *space)
    }

    /// Others were written later.
    pub fn append(&mut self, newer: &mut WrittenKeys) {
        self.0.append(&mut newer.0);
    }

    /// All of it is undone, by compensations, which have written the same keys.
    pub fn forget_values(&mut self) {
        self.0.values_mut().for_each(|value| *value = None);
    }
}

#[cfg(test)]
mod tests {
    use super::super::reads::FoundDigest;
    use super::*;

    #[test]
    fn what_was_written_last_counts_and_of_what_is_undone_nothing_is_known() {
        let key = |name: &str| (SpaceId(1), name.into());
        let value = |name: &str| Some(FoundDigest::of_value(Some(&name.into())));
        let mut written = WrittenKeys::default();
        written.write(key("a"), value("1"));
        let mut newer = WrittenKeys::default();
        newer.write(key("a"), value("2"));
        newer.act(key("b"));
        newer.act(key("c"));
        newer.acts_at_once(&key("c"));
        written.append(&mut newer);
        assert!(newer.is_empty());
        assert_eq!((written.value(&key("a")), written.find(&key("c"))), (Some(value("2")), None));
        assert_eq!(written.value(&key("b")), Some(None));
        let (lo, hi) = ("a".into(), Some("b".into()));
        let scan = Scan { space: SpaceId(1), lo, hi, reverse: false, limit: 9 };
        assert!(written.within(&scan).eq([(&key("a"), value("2"))]));
        written.forget_values();
        assert_eq!(written.value(&key("a")), Some(None));
    }
}
