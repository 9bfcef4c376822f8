//! A checkpoint taken piece by piece while a repository works, restored, and the log replayed on
//! top, against the repository that went on and against the replay of the whole log.

use std::sync::Arc;

use muesli_core::{
    Cursor, LoggedRole as _, Nanos, Participant as _, Rejection, RepositoryId, SmallBytes,
    Timestamp,
};
use muesli_protocols::granola::message::{
    Agreement, Install, Message, Record, Request, Task, TimestampVote,
};
use muesli_protocols::granola::participant::GranolaParticipantTimer;
use muesli_protocols::granola::{Ordering, Switches};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::procedures::{SPACE, key};
use super::steps::{Harness, txn, vote};

mod false_records;

/// A request says that all are settled that are older by so many.
const SETTLED: u64 = 25;
/// What a piece of a checkpoint begins with: what was voted on, what is remembered, keys.
const KINDS: [u8; 3] = [1, 2, 3];

/// What happens to the repository.
#[derive(Clone, Debug)]
enum Happening {
    /// Numbers are raised, by this repository alone or with another one.
    Bump(Vec<u8>, bool),
    /// An interactive transaction writes or deletes, together with the other repository.
    Install(Vec<(u8, bool)>),
    /// The other repository votes, so far above, or against, on one of the last transactions.
    Vote(u64, Option<u64>),
    /// A request comes once more.
    Again(u64),
    /// Time passes, and timers ring.
    Wait,
    /// A checkpoint is begun, or its next piece of so many bytes taken.
    Piece(usize),
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let keys = || prop::collection::vec(0..6_usize, 1..3);
    let writes = prop::collection::vec((0..6_u8, prop::bool::weighted(0.6)), 1..3);
    let one = prop_oneof![
        5 => (keys(), any::<bool>()).prop_map(|(keys, alone)| {
            Happening::Bump(keys.into_iter().map(|it| it as u8).collect(), alone)
        }),
        4 => writes.prop_map(Happening::Install),
        8 => (0..8_u64, prop::option::weighted(0.8, 0..200_u64))
            .prop_map(|(back, above)| Happening::Vote(back, above)),
        1 => (0..30_u64).prop_map(Happening::Again),
        1 => Just(Happening::Wait),
        4 => (1..200_usize).prop_map(Happening::Piece),
    ];
    (prop::collection::vec(one, 1..120), 0..60_usize).prop_map(|(mut all, before)| {
        let mut place = 0;
        all.retain(|happening| {
            place += 1;
            place > before || !matches!(happening, Happening::Piece(_))
        });
        all
    })
}

/// A repository at work, and the checkpoint that is taken of it.
struct Working {
    harness: Harness,
    requests: Vec<Arc<Request>>,
    /// The keys of this repository: numbers, and those of interactive transactions.
    keys: (Vec<u8>, Vec<u8>),
    /// How much of the log the checkpoint stands for, and how far it has come.
    checkpoint: Option<(usize, Cursor)>,
    pieces: Vec<Vec<u8>>,
}

impl Working {
    fn new(switches: Switches) -> Working {
        let harness = Harness::new(switches);
        let space = harness.catalog.space_named(SPACE).unwrap();
        let here = |number: &u8| harness.catalog.partition(space, &key(*number)) == 0;
        let mut here = (0..=255).filter(here);
        let numbers = here.by_ref().take(6).collect();
        let keys = (numbers, here.take(6).collect());
        Working { harness, requests: Vec::new(), keys, checkpoint: None, pieces: Vec::new() }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Bump(keys, alone) => {
                let keys: Vec<_> = keys.iter().map(|&it| self.keys.0[usize::from(it)]).collect();
                let call = self.harness.call(self.next(), "bump", &keys, alone);
                let Message::Request(request) = call else { unreachable!("a call is a request") };
                self.request(Request::clone(&request));
            }
            Happening::Install(writes) => {
                let space = self.harness.catalog.space_named(SPACE).unwrap();
                let mut request =
                    self.harness.request(self.next(), Agreement::Coordinated, &[0, 1]);
                let value = SmallBytes::from(self.next().to_string().as_str());
                let write = |&(at, live): &(u8, bool)| {
                    let key = key(self.keys.1[usize::from(at)]);
                    (space, key, live.then(|| value.clone()))
                };
                let writes = writes.iter().map(write).collect();
                let install = Install { writes, ..Install::default() };
                request.parts[0].task = Task::Install(Box::new(install));
                self.request(request);
            }
            Happening::Vote(back, above) => {
                drop(self.decide(self.next().saturating_sub(1 + back), above));
            }
            Happening::Again(back) => {
                let at = self.requests.len().saturating_sub(1 + back as usize);
                if let Some(request) = self.requests.get(at) {
                    self.harness.receive(Message::Request(request.clone()));
                }
            }
            Happening::Wait => {
                self.harness.now = self.harness.now + Nanos::from_millis(40);
                for timer in [GranolaParticipantTimer::Sweep, GranolaParticipantTimer::Lock] {
                    self.harness.step(|participant, cx| participant.timer(timer, cx));
                }
            }
            Happening::Piece(bytes) => {
                self.piece(bytes);
            }
        }
    }

    /// The number of the next transaction.
    fn next(&self) -> u64 {
        self.requests.len() as u64 + 1
    }

    fn request(&mut self, request: Request) {
        let settled_below = self.next().saturating_sub(SETTLED).max(1);
        let request = Arc::new(Request { settled_below, ..request });
        self.requests.push(request.clone());
        self.harness.receive(Message::Request(request));
    }

    /// What the other repository says of a transaction, or the master.
    fn decide(&mut self, sequence: u64, above: Option<u64>) -> Vec<Message> {
        let at = |above| Timestamp::new(1_000 + 64 * sequence + above, RepositoryId(1));
        let ballot =
            above.map_or(TimestampVote::Conflict, |above| TimestampVote::Commit(at(above)));
        let message = match self.harness.switches.ordering == Ordering::Master {
            true => Message::Decide { txn: txn(sequence), ballot, shown: Vec::new() },
            false => vote(sequence, ballot),
        };
        self.harness.receive(message)
    }

    /// Takes a piece; false: that was all.
    fn piece(&mut self, bytes: usize) -> bool {
        let participant = &self.harness.participant;
        let covers = self.harness.log.len();
        let begin = || (covers, participant.begin_checkpoint().expect("it has checkpoints"));
        let (_, cursor) = self.checkpoint.get_or_insert_with(begin);
        let mut piece = Vec::new();
        let more = participant.checkpoint_piece(cursor, bytes, &mut piece);
        self.pieces.extend(more.then_some(piece));
        more
    }

    /// A repository that begins with the checkpoint without some pieces, and the log after it.
    fn restored(&mut self, left_out: Option<u8>) -> Working {
        while self.piece(64) {}
        let (covers, _) = self.checkpoint.as_ref().expect("just taken");
        let mut restored = self.anew();
        for piece in self.pieces.iter().filter(|piece| Some(piece[0]) != left_out) {
            restored
                .harness
                .step(|participant, cx| participant.restore(piece, cx).expect("its own piece"));
        }
        restored.replay(self, *covers);
        restored
    }

    /// A repository that begins with the whole log.
    fn replayed(&self) -> Working {
        let mut replayed = self.anew();
        replayed.replay(self, 0);
        replayed
    }

    fn anew(&self) -> Working {
        let mut anew = Working::new(self.harness.switches);
        anew.requests = self.requests.clone();
        anew.harness.now = self.harness.now;
        anew
    }

    /// What a member of a group makes of a record.
    fn judge(&self, record: &Record) -> Result<(), Rejection> {
        self.harness.participant.judge_record(record, &self.harness.catalog)
    }

    fn replay(&mut self, other: &Working, from: usize) {
        for record in &other.harness.log[from..] {
            assert_eq!(self.judge(record), Ok(()), "an honest leader's: {record:?}");
            self.harness.step(|participant, cx| participant.replay(record.clone(), cx));
        }
    }

    /// The keys that are there, with their versions.
    fn values(&self) -> Vec<(SmallBytes, Timestamp, SmallBytes)> {
        let mut values = Vec::new();
        for (_, versions) in self.harness.participant.spaces().iter() {
            for (key, _) in versions.chains() {
                let newest = versions.find(key).map(|handle| versions.newest(handle));
                let value = newest.and_then(|it| Some((it.at, it.value?.clone())));
                values.extend(value.map(|(at, value)| (key.clone(), at, value)));
            }
        }
        values.sort();
        values
    }

    /// What it says from its start on, to whoever asks again and to the votes that come.
    fn sent_from_now_on(&mut self) -> Vec<Message> {
        let mut sent = self.harness.step(|participant, cx| participant.start(cx));
        let first = self.requests.len().saturating_sub(SETTLED as usize);
        for request in self.requests[first..].iter().cloned() {
            sent.extend(self.harness.receive(Message::Request(request)));
        }
        for sequence in first as u64 + 1..self.next() {
            sent.extend(self.decide(sequence, Some(7)));
        }
        sent
    }
}

/// What was restored from a checkpoint taken in the middle of a script, and from the log after it,
/// is what is there, and goes on as what was replayed from the whole log.
fn restored_is_the_same(switches: Switches, script: Vec<Happening>) -> Result<(), TestCaseError> {
    let mut live = Working::new(switches);
    script.into_iter().for_each(|happening| live.happen(happening));
    let (mut restored, mut replayed) = (live.restored(None), live.replayed());
    prop_assert_eq!(live.values(), restored.values());
    prop_assert_eq!(live.values(), replayed.values());
    let (one, other) = (restored.sent_from_now_on(), replayed.sent_from_now_on());
    prop_assert_eq!(one, other);
    prop_assert_eq!(restored.values(), replayed.values());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn restore_and_replay_give_the_state(script in happenings()) {
        restored_is_the_same(Switches::default(), script)?;
    }

    #[test]
    fn restore_and_replay_give_the_state_where_some_pass(script in happenings()) {
        restored_is_the_same(Switches::out_of_order(), script)?;
    }

    #[test]
    fn restore_and_replay_give_the_state_of_locks(script in happenings()) {
        restored_is_the_same(Switches::locking(), script.clone())?;
        restored_is_the_same(Switches::sinfonia(), script)?;
    }
}

#[test]
fn a_checkpoint_that_leaves_something_out_is_noticed() {
    let script = [
        Happening::Bump(vec![0], true),
        Happening::Bump(vec![1], false),
        Happening::Vote(0, Some(3)),
        Happening::Bump(vec![2], false),
    ];
    for switches in [Switches::default(), Switches::sinfonia()] {
        let after = |left_out| {
            let mut live = Working::new(switches);
            script.iter().for_each(|happening| live.happen(happening.clone()));
            let mut restored = live.restored(left_out);
            let sent = restored.sent_from_now_on();
            (sent, restored.values())
        };
        let whole = after(None);
        for kind in KINDS {
            assert_ne!(after(Some(kind)), whole, "without the pieces that begin with {kind}");
        }
    }
}
