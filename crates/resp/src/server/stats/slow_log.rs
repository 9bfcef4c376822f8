//! `SLOWLOG`: the newest commands that took long.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

use crate::commands::spec::Spec;
use crate::protocol::request::RespCommand;

/// So many words of a command are kept, each of so many bytes, as by Redis.
const ARGUMENTS_MAX: usize = 32;
const ARGUMENT_BYTES_MAX: usize = 128;

/// A command that took long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::server) struct SlowCommand {
    /// Counted up from the start of the server.
    pub number: u64,
    /// When it was done, in seconds since 1970.
    pub at: u64,
    pub took: Duration,
    pub words: Vec<Vec<u8>>,
    /// Of the client.
    pub address: String,
    pub name: Vec<u8>,
}

/// What is kept, and which commands are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) struct SlowLogLimits {
    /// Those that took at least so long; `None`: none are.
    pub slower_than: Option<Duration>,
    /// So many, the newest ones.
    pub kept: usize,
}

/// The newest commands that took long.
#[derive(Default)]
pub(in crate::server) struct SlowLog {
    slower_than: Cell<Option<Duration>>,
    kept: Cell<usize>,
    next: Cell<u64>,
    /// The newest one first.
    all: RefCell<VecDeque<SlowCommand>>,
}

impl SlowLog {
    /// Keeps so many of those that took so long from now on.
    pub fn limit(&self, limits: SlowLogLimits) {
        self.slower_than.set(limits.slower_than);
        self.kept.set(limits.kept);
        self.all.borrow_mut().truncate(limits.kept);
    }

    /// Whether a command is kept that took so long.
    pub fn takes(&self, took: Duration) -> bool {
        self.kept.get() > 0 && self.slower_than.get().is_some_and(|least| took >= least)
    }

    /// Keeps the first command of a transaction of so many others, unless it is left out: what took
    /// `took` until now, `at` such a second, for a client at this address, with this name.
    pub fn note(
        &self,
        (command, spec, others): (&RespCommand, &Spec, usize),
        (took, at): (Duration, u64),
        (address, name): (&str, &str),
    ) {
        if LEFT_OUT.contains(&spec.name) {
            return;
        }
        let number = self.next.replace(self.next.get() + 1);
        let words = shortened(command, spec, others);
        let (address, name) = (address.to_owned(), short(name.as_bytes()));
        let mut all = self.all.borrow_mut();
        all.push_front(SlowCommand { number, at, took, words, address, name });
        all.truncate(self.kept.get());
    }

    /// So many, the newest first.
    pub fn newest(&self, count: usize) -> Vec<SlowCommand> {
        self.all.borrow().iter().take(count).cloned().collect()
    }

    pub fn len(&self) -> usize {
        self.all.borrow().len()
    }

    pub fn reset(&self) {
        self.all.borrow_mut().clear();
    }
}

/// Commands that are left out: `EXEC`, whose commands are there, and those that wait for a password
/// to be checked, which everybody can give.
const LEFT_OUT: [&str; 3] = ["auth", "exec", "hello"];

/// Settings of Redis that are passwords.
const SECRET_SETTINGS: [&[u8]; 5] = [
    b"masterauth",
    b"masteruser",
    b"requirepass",
    b"tls-client-key-file-pass",
    b"tls-key-file-pass",
];

/// A word, cut where it is too long.
fn short(word: &[u8]) -> Vec<u8> {
    match word.len().checked_sub(ARGUMENT_BYTES_MAX) {
        None | Some(0) => word.to_vec(),
        Some(more) => {
            let begin = &word[..ARGUMENT_BYTES_MAX];
            [begin, format!("... ({more} more bytes)").as_bytes()].concat()
        }
    }
}

/// The words of a command, without those that are too many or too long, and without passwords; and
/// how many others were one transaction with it.
fn shortened(command: &RespCommand, spec: &Spec, others: usize) -> Vec<Vec<u8>> {
    let kept = if command.len() > ARGUMENTS_MAX { ARGUMENTS_MAX - 1 } else { command.len() };
    let shown = |at: usize| match is_secret(command, spec, at) {
        true => b"(redacted)".to_vec(),
        false => short(command.word(at)),
    };
    let mut words: Vec<_> = (0..kept).map(shown).collect();
    if command.len() > kept {
        words.push(format!("... ({} more arguments)", command.len() - kept).into_bytes());
    }
    if others > 0 {
        words.push(format!("... (and {others} more commands)").into_bytes());
    }
    words
}

/// Whether a word of a command may be a password.
fn is_secret(command: &RespCommand, spec: &Spec, at: usize) -> bool {
    let second = |word: &[u8]| command.len() > 1 && command.word(1).eq_ignore_ascii_case(word);
    match spec.name {
        "acl" => at > 2 && second(b"setuser"),
        "auth" => at > 0,
        "config" if at > 2 && second(b"set") => {
            let name = command.word(at - 1);
            SECRET_SETTINGS.iter().any(|it| name.eq_ignore_ascii_case(it))
        }
        "hello" => at > 1,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::table::find;

    fn words(all: &[&[u8]]) -> Vec<String> {
        let command = RespCommand::of(all);
        let short = shortened(&command, find(all[0]).unwrap(), 0);
        short.into_iter().map(|it| String::from_utf8(it).unwrap()).collect()
    }

    #[test]
    fn words_are_shortened_and_passwords_left_out() {
        assert_eq!(words(&[b"AUTH", b"me", b"secret"]), ["AUTH", "(redacted)", "(redacted)"]);
        assert_eq!(words(&[b"HELLO", b"3", b"AUTH"]), ["HELLO", "3", "(redacted)"]);
        let set = words(&[b"config", b"SET", b"timeout", b"5", b"RequirePass", b"secret"]);
        assert_eq!(set[2..], ["timeout", "5", "RequirePass", "(redacted)"]);
        let user = words(&[b"acl", b"setuser", b"bob", b"on", b">secret"]);
        assert_eq!(user[2..], ["bob", "(redacted)", "(redacted)"]);
        assert_eq!(words(&[b"get", b"a"]), ["get", "a"]);
        let long = words(&[b"set", b"a", &[b'v'; 130]]);
        assert!(long[2].ends_with("v... (2 more bytes)"), "{long:?}");
        let many = words(&[&b"del"[..]; 40]);
        assert_eq!((many.len(), &*many[31]), (32, "... (9 more arguments)"));
        let several = shortened(&RespCommand::of([b"ping"]), find(b"ping").unwrap(), 4);
        assert_eq!(several[1], b"... (and 4 more commands)");
    }

    #[test]
    fn the_newest_slow_ones_are_kept() {
        let log = SlowLog::default();
        assert!(!log.takes(Duration::from_secs(9)));
        let slower_than = Some(Duration::from_millis(5));
        log.limit(SlowLogLimits { slower_than, kept: 2 });
        assert!(log.takes(Duration::from_millis(5)) && !log.takes(Duration::from_millis(4)));
        for at in 0..3 {
            let (command, spec) = (RespCommand::of([b"ping"]), find(b"ping").unwrap());
            log.note((&command, spec, 0), (Duration::ZERO, at), ("address", "name"));
        }
        assert_eq!(
            log.newest(9).iter().map(|it| (it.number, it.at)).collect::<Vec<_>>(),
            [(2, 2), (1, 1)]
        );
        assert_eq!((log.newest(1).len(), log.len()), (1, 2));
        log.reset();
        assert_eq!(log.len(), 0);
    }
}
