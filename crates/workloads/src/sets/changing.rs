//! Transactions that add keys or remove them.

use muesli::Error;
use muesli_check::abstract_operations::AbstractOperation;

use super::ledger::SetChange;
use crate::nesting::roots::RootCall;

/// What is done with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetCall {
    Look,
    Add,
    Remove,
}

/// What a transaction is to change.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyChanges<'a> {
    /// In which structure.
    pub at: usize,
    pub keys: &'a [u64],
    /// Whether they are added; else they are removed.
    pub adds: bool,
    /// Whether it looks for them at its end, changes one back, and looks for that once more.
    pub again: bool,
}

/// What one has changed.
#[derive(Clone, Debug, Default)]
pub(super) struct KeysChanged {
    /// The keys for which it had an effect that is not changed back.
    pub keys: Vec<u64>,
    /// What it has added to the structure's tally.
    pub grouped: i64,
    /// An answer that cannot be after what it did itself.
    pub wrong: Option<String>,
}

impl SetCall {
    /// What a call was answered.
    pub fn answered(self, at: usize, key: u64, answer: bool) -> AbstractOperation {
        let set = at as u64;
        match self {
            SetCall::Look => AbstractOperation::Contains { set, key, found: answer },
            SetCall::Add => AbstractOperation::Add { set, key, was_new: answer },
            SetCall::Remove => AbstractOperation::Remove { set, key, was_there: answer },
        }
    }

    /// The call that undoes it, where it had an effect.
    pub fn inverse(self) -> Option<SetCall> {
        match self {
            SetCall::Look => None,
            SetCall::Add => Some(SetCall::Remove),
            SetCall::Remove => Some(SetCall::Add),
        }
    }
}

impl KeyChanges<'_> {
    /// What is done with each key.
    pub fn call(&self) -> SetCall {
        if self.adds { SetCall::Add } else { SetCall::Remove }
    }

    /// By how much it changes the number of keys for each that has an effect.
    pub fn by(&self) -> i64 {
        if self.adds { 1 } else { -1 }
    }

    /// What the books are told.
    pub fn changes(&self, changed: &KeysChanged) -> Vec<SetChange> {
        let (structure, by) = (self.at, self.by());
        changed.keys.iter().map(|key| SetChange { structure, key: *key, by }).collect()
    }

    /// Makes all calls, one after the other, each by `call`.
    pub async fn run(
        &self,
        root: &RootCall<'_>,
        call: impl AsyncFn(u64, SetCall) -> Result<bool, Error>,
    ) -> Result<KeysChanged, Error> {
        let mut changed = KeysChanged::default();
        for &key in self.keys {
            let effect = call(key, self.call()).await?;
            root.did(self.call().answered(self.at, key, effect));
            changed.keys.extend(effect.then_some(key));
        }
        self.look_again(root, &mut changed, call).await?;
        Ok(changed)
    }

    /// What follows when all changes are made.
    pub async fn look_again(
        &self,
        root: &RootCall<'_>,
        changed: &mut KeysChanged,
        call: impl AsyncFn(u64, SetCall) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        if !self.again {
            return Ok(());
        }
        let mut wrong = None;
        let mut expect = async |key, does: SetCall, expected: bool| {
            let answer = call(key, does).await?;
            root.did(does.answered(self.at, key, answer));
            if answer != expected {
                let after = self.call();
                let text = format!("{does:?} of {key} after its own {after:?}: {answer}");
                wrong.get_or_insert(text);
            }
            Ok::<_, Error>(())
        };
        for &key in self.keys {
            expect(key, SetCall::Look, self.adds).await?;
        }
        if let Some(first) = changed.keys.first().copied() {
            let back = self.call().inverse().expect("adds and removes have one");
            expect(first, back, true).await?;
            expect(first, SetCall::Look, !self.adds).await?;
            changed.keys.remove(0);
        }
        changed.wrong = wrong;
        Ok(())
    }
}
