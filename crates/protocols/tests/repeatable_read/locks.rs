//! Locks of running transactions: limits of what a repository keeps of them.

use muesli_core::memory::Held;
use muesli_core::memory::Memory;
use muesli_core::{Abort, Effect, Limits, Settings};
use muesli_protocols::repeatable_read::NewestVersions;
use muesli_protocols::two_phase::message::{LockRequest, Message, Vote};
use muesli_protocols::two_phase::{Reader, ReaderBounds as _};

use crate::two_phase::server::{CLIENT, SPACE, Server, asked, prepare, txn};

/// Under encounter-time locking a delete needs its lock first, too.
#[test]
fn at_the_limit_of_memory_a_delete_has_its_lock_and_commits() {
    let memory = Memory::new(0, u64::MAX >> 1);
    memory.report(Held::default(), Held { all: 1, old: 0 });
    let mut server = Server::<NewestVersions>::with(Settings { memory, ..Settings::default() });
    let reader =
        Reader::new(CLIENT, 1, muesli_core::Txn { slot: 1, generation: 1 }, muesli_core::Nanos(0));
    for (number, value, is_refused) in [(0, None, false), (1, Some("new".into()), true)] {
        let key = server.key(number);
        let (request, space) = (u64::from(number), SPACE);
        server.effects.list.clear();
        server
            .client(Message::Lock(LockRequest { request, reader, space, key: key.clone() }))
            .unwrap();
        let given = server.effects.list.iter().any(|effect| match effect {
            Effect::Send { envelope, .. } => {
                matches!(envelope.message, Message::Locked { refused: None, .. })
            }
            _ => false,
        });
        assert!(given, "key {number}");
        let of = txn(CLIENT, u64::from(number) + 1);
        let mut prepare = prepare(of, &[key]);
        prepare.writes[0].2 = value;
        server.client(asked(prepare)).unwrap();
        let out_of_memory = server.ballot().vote == Vote::No(Abort::OutOfMemory);
        assert_eq!(out_of_memory, is_refused, "key {number}");
    }
}

#[test]
fn locks_of_a_running_transaction_have_an_end() {
    let limits = Limits { transaction_bytes: 400, ..Limits::default() };
    let mut server = Server::<NewestVersions>::with(Settings { limits, ..Settings::default() });
    let reader =
        Reader::new(CLIENT, 1, muesli_core::Txn { slot: 1, generation: 1 }, muesli_core::Nanos(0));
    for number in 0..100 {
        let (request, key) = (u64::from(number), server.key(number));
        let asked = LockRequest { request, reader, space: SPACE, key };
        server.client(Message::Lock(asked)).unwrap();
    }
    let refused = server.effects.list.iter().filter_map(|effect| match effect {
        Effect::Send { envelope, .. } => match &envelope.message {
            Message::Locked { refused, .. } => *refused,
            _ => None,
        },
        _ => None,
    });
    // Keys of four bytes, which count 20.
    assert_eq!(refused.collect::<Vec<_>>(), [Abort::TransactionTooLarge; 80]);
}

/// Requests that wait for a lock count by their keys.
#[test]
fn requests_that_wait_for_a_lock_have_an_end() {
    let limits = Limits { transaction_bytes: 400, ..Limits::default() };
    let mut server = Server::<NewestVersions>::with(Settings { limits, ..Settings::default() });
    let key = server.key(0);
    for number in 0..100 {
        let slot = muesli_core::Txn { slot: number, generation: 1 };
        let (request, reader) =
            (u64::from(number), Reader::new(CLIENT, 1, slot, muesli_core::Nanos(0)));
        let asked = LockRequest { request, reader, space: SPACE, key: key.clone() };
        server.client(Message::Lock(asked)).unwrap();
    }
    // The first one has it, and 20 of 20 bytes wait.
    let waiting = server.node.participants()[0].1.encounter_locks();
    assert_eq!(waiting, (1, 20));
    let refused = server.effects.list.iter().filter_map(|effect| match effect {
        Effect::Send { envelope, .. } => match &envelope.message {
            Message::Locked { refused, .. } => *refused,
            _ => None,
        },
        _ => None,
    });
    assert_eq!(refused.collect::<Vec<_>>(), [Abort::Overloaded; 79]);
}
