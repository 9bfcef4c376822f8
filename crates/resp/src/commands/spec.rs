//! What is known of a command: the one source for its dispatch, `COMMAND` and the manual.

use crate::call::Handler;

/// Who carries a command out.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// A handler, in a transaction.
    Data(Handler),
    /// The server itself.
    Server,
}

/// Where the keys of a command are: the first, the last (from the end, if negative), and each how
/// many words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyPositions(pub i32, pub i32, pub i32);

pub(crate) const NO_KEYS: KeyPositions = KeyPositions(0, 0, 0);
pub(crate) const ONE_KEY: KeyPositions = KeyPositions(1, 1, 1);

/// A command.
#[derive(Clone, Copy)]
pub(crate) struct Spec {
    pub name: &'static str,
    /// How many words it has, the name included; if negative, at least so many.
    pub arity: i32,
    /// Redis's flags, apart by blanks.
    pub flags: &'static str,
    pub keys: KeyPositions,
    pub group: &'static str,
    /// The version of Redis that has had it first.
    pub since: &'static str,
    /// What it costs here.
    pub complexity: &'static str,
    /// What it does otherwise than Redis, or nothing.
    pub differs: &'static str,
    pub body: Body,
}

impl Spec {
    pub fn has(&self, flag: &str) -> bool {
        self.flags.split(' ').any(|it| it == flag)
    }

    /// Whether it runs a script, or is about scripts.
    pub fn is_script(&self) -> bool {
        self.group == "scripting"
    }

    /// Whether a transaction with it may write: a script may as well.
    pub fn may_write(&self) -> bool {
        self.writes() || self.has("may_replicate")
    }

    pub fn writes(&self) -> bool {
        self.has("write")
    }

    /// Whether it can have so many words.
    pub fn takes(&self, words: usize) -> bool {
        let words = words as i32;
        if self.arity < 0 { words >= -self.arity } else { words == self.arity }
    }
}

/// A command that works on data, by this handler.
macro_rules! data {
    ($group:literal, $name:literal, $arity:literal, $flags:literal, $keys:expr, $since:literal,
     $complexity:literal, $handler:path) => {
        data!($group, $name, $arity, $flags, $keys, $since, $complexity, $handler, "")
    };
    ($group:literal, $name:literal, $arity:literal, $flags:literal, $keys:expr, $since:literal,
     $complexity:literal, $handler:path, $differs:literal) => {
        $crate::commands::spec::Spec {
            name: $name,
            arity: $arity,
            flags: $flags,
            keys: $keys,
            group: $group,
            since: $since,
            complexity: $complexity,
            differs: $differs,
            body: $crate::commands::spec::Body::Data(|call| Box::pin($handler(call))),
        }
    };
}
pub(crate) use data;
