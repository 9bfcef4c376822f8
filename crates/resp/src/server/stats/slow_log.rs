//! `SLOWLOG`: the newest commands that took long.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

use crate::commands::spec::Spec;
use crate::protocol::request::RespCommand;

/// So many words of a command are kept, each of so many bytes, as by Redis.
const WORDS_MAX: usize = 32;
const WORD_BYTES_MAX: usize = 128;

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
    pub name: String,
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

    /// Keeps a command, with the next number.
    pub fn note(&self, command: SlowCommand) {
        let number = self.next.replace(self.next.get() + 1);
        let mut all = self.all.borrow_mut();
        all.push_front(SlowCommand { number, ..command });
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

/// The words of a command, without those that are too many or too long, and without passwords.
pub(super) fn shortened(command: &RespCommand, spec: &Spec) -> Vec<Vec<u8>> {
    if matches!(spec.name, "auth" | "hello") {
        return vec![spec.name.as_bytes().to_vec(), b"(redacted)".to_vec()];
    }
    let short = |word: &[u8]| match word.len().checked_sub(WORD_BYTES_MAX) {
        None | Some(0) => word.to_vec(),
        Some(more) => {
            let begin = &word[..WORD_BYTES_MAX];
            [begin, format!("... ({more} more bytes)").as_bytes()].concat()
        }
    };
    let kept = if command.len() > WORDS_MAX { WORDS_MAX - 1 } else { command.len() };
    let mut words: Vec<_> = command.iter().take(kept).map(short).collect();
    if command.len() > kept {
        words.push(format!("... ({} more arguments)", command.len() - kept).into_bytes());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::table::find;

    fn words(all: &[&[u8]]) -> Vec<String> {
        let command = RespCommand::of(all);
        let short = shortened(&command, find(all[0]).unwrap());
        short.into_iter().map(|it| String::from_utf8(it).unwrap()).collect()
    }

    #[test]
    fn words_are_shortened_and_passwords_left_out() {
        assert_eq!(words(&[b"AUTH", b"me", b"secret"]), ["auth", "(redacted)"]);
        assert_eq!(words(&[b"get", b"a"]), ["get", "a"]);
        let long = words(&[b"set", b"a", &[b'v'; 130]]);
        assert!(long[2].ends_with("v... (2 more bytes)"), "{long:?}");
        let many = words(&[&b"del"[..]; 40]);
        assert_eq!((many.len(), &*many[31]), (32, "... (9 more arguments)"));
    }

    #[test]
    fn the_newest_slow_ones_are_kept() {
        let log = SlowLog::default();
        assert!(!log.takes(Duration::from_secs(9)));
        let slower_than = Some(Duration::from_millis(5));
        log.limit(SlowLogLimits { slower_than, kept: 2 });
        assert!(log.takes(Duration::from_millis(5)) && !log.takes(Duration::from_millis(4)));
        for at in 0..3 {
            let (address, name, words) = (String::new(), String::new(), Vec::new());
            log.note(SlowCommand { number: 0, at, took: Duration::ZERO, words, address, name });
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
