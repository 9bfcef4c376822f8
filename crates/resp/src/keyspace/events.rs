//! What is told of keys that change, to those who listen to keyspace events.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Something that happened to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyEvent {
    /// Redis's letter for its class.
    pub class: char,
    pub name: &'static str,
    pub db: u8,
    pub key: Vec<u8>,
}

/// A message that a script has for a channel, once it has committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublishedMessage {
    /// The channel is one of a shard.
    pub of_shards: bool,
    pub channel: Vec<u8>,
    pub message: Vec<u8>,
}

/// The events of a transaction.
#[derive(Debug, Default)]
pub(crate) struct KeyEvents {
    /// Whether anybody may want to know.
    wanted: bool,
    /// What the command that runs is told as.
    cause: Cell<Option<(char, &'static str)>>,
    all: RefCell<Vec<KeyEvent>>,
    /// How many bytes they have, with all else that is told after the commit.
    bytes: Rc<Cell<usize>>,
}

/// What each of the things that are told after the commit costs, beside its bytes.
pub(super) const EFFECT_BYTES: usize = 64;

impl KeyEvents {
    /// Events that count their bytes here.
    pub fn new(wanted: bool, bytes: Rc<Cell<usize>>) -> KeyEvents {
        KeyEvents { wanted, bytes, ..KeyEvents::default() }
    }

    /// A command of this name and group runs from now on.
    pub fn begin(&self, name: &'static str, group: &'static str) {
        if self.wanted {
            self.cause.set(Some((class(group), event_name(name))));
        }
    }

    /// Whether the command that runs is of this class.
    pub fn is_of(&self, class: char) -> bool {
        self.cause.get().is_some_and(|it| it.0 == class)
    }

    /// A key has changed by the command that runs: told once.
    pub fn changed(&self, db: u8, key: &[u8]) {
        let Some((class, name)) = self.cause.get() else { return };
        let is_last = |it: &KeyEvent| it.name == name && it.key == key && it.db == db;
        if !self.all.borrow().last().is_some_and(is_last) {
            self.add(class, name, db, key);
        }
    }

    pub fn add(&self, class: char, name: &'static str, db: u8, key: &[u8]) {
        if self.wanted {
            self.bytes.set(self.bytes.get() + EFFECT_BYTES + key.len());
            self.all.borrow_mut().push(KeyEvent { class, name, db, key: key.to_vec() });
        }
    }

    /// Those of a child of the transaction.
    #[cfg(feature = "scripts")]
    pub fn child(&self, bytes: Rc<Cell<usize>>) -> KeyEvents {
        KeyEvents::new(self.wanted, bytes)
    }

    /// Adds those of a child.
    #[cfg(feature = "scripts")]
    pub fn merge(&self, events: Vec<KeyEvent>) {
        self.all.borrow_mut().extend(events);
    }

    pub fn take(&self) -> Vec<KeyEvent> {
        self.all.take()
    }
}

fn class(group: &str) -> char {
    match group {
        "string" | "bitmap" => '$',
        "list" => 'l',
        "set" => 's',
        "hash" => 'h',
        "sorted-set" => 'z',
        _ => 'g',
    }
}

/// What the change that a command makes is called.
fn event_name(command: &'static str) -> &'static str {
    match command {
        "getset" | "mset" | "msetnx" | "psetex" | "set" | "setex" | "setnx" => "set",
        "bitfield" | "bitop" => "set",
        "decr" | "decrby" | "incr" => "incrby",
        "expireat" | "getex" | "pexpire" | "pexpireat" => "expire",
        "hmset" | "hsetnx" => "hset",
        "blpop" => "lpop",
        "blmove" | "brpoplpush" | "lmove" | "rpoplpush" => "lmove",
        "blmpop" | "lmpop" => "lpop",
        "brpop" => "rpop",
        "lpushx" => "lpush",
        "rpushx" => "rpush",
        "bzmpop" | "bzpopmin" | "zmpop" => "zpopmin",
        "bzpopmax" => "zpopmax",
        "zincrby" => "zincr",
        "copy" => "copy_to",
        "rename" | "renamenx" => "rename_to",
        "move" => "move_to",
        "sort" => "sortstore",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_one_event_and_only_if_wanted() {
        for wanted in [false, true] {
            let bytes = Rc::new(Cell::new(0));
            let events = KeyEvents::new(wanted, bytes.clone());
            events.begin("hmset", "hash");
            events.changed(0, b"a");
            events.changed(0, b"a");
            events.changed(0, b"b");
            let names: Vec<_> = events.take().into_iter().map(|it| (it.name, it.key)).collect();
            let expected = vec![("hset", b"a".to_vec()), ("hset", b"b".to_vec())];
            assert_eq!(names, if wanted { expected } else { Vec::new() });
            assert_eq!(bytes.get(), if wanted { 2 * (EFFECT_BYTES + 1) } else { 0 });
        }
    }
}
