//! The log of a real node, cut, torn and bent at every place: the node that comes back holds what
//! was acknowledged, and a replay that leaves a record out is found out.

use std::collections::BTreeMap;
use std::sync::Arc;

use muesli_core::{
    Address, Answer, Catalog, Effect, Effects, Envelope, Failure, Index, LogPosition, Machine,
    Nanos, Node, NodeId, Note, Reader, RepositoryId, Role, Settings, SmallBytes, SpaceId,
    SpaceOptions, Step, Timestamp, TxnOptions, Wire,
};
use muesli_log::{Batch, LogError, MemoryDisk};
use muesli_protocols::score::{Score, Switches};
use muesli_protocols::two_phase::Message;

use super::*;
use crate::spaces::map::{Deal, Map};
use crate::spaces::parts::SpaceParts;

const SPACE: SpaceId = SpaceId(0);
const ACCOUNTS: u64 = 6;
const TRANSFERS: u64 = 28;
const OPTIONS: Options = Options {
    owner: 7,
    segment_bytes: 1500,
    preallocate_bytes: 0,
    backlog_bytes: 1 << 20,
    checkpoints: 2,
};

/// The files of a log, and how long they were when something was acknowledged.
type Files = BTreeMap<String, Vec<u8>>;
type Lengths = BTreeMap<String, usize>;

/// Every key with the timestamps of its versions, and the newest value.
type State = BTreeMap<SmallBytes, (Vec<Timestamp>, Option<SmallBytes>)>;

fn catalog() -> Arc<Catalog> {
    let map = Map::deal(vec![(NodeId(0), "a:1".to_owned())], Deal::default()).unwrap();
    let options = SpaceOptions { index: Index::Hash, ..SpaceOptions::default() };
    map.with_space(&SpaceParts::of("accounts", &options)).unwrap().catalog
}

fn node(id: u32, incarnation: u32, logging: bool) -> Node<Score> {
    let settings = Settings { logging, ..Settings::default() };
    Node::new(NodeId(id), incarnation, catalog(), Arc::new(settings), &Switches::default())
}

fn state(node: &Node<Score>) -> State {
    let (repository, chains) = node.chains().remove(0);
    assert_eq!(repository, RepositoryId(0));
    let versions = node.participants()[0].1.versions(SPACE);
    let each = |(_, key, chain): (SpaceId, SmallBytes, Vec<Timestamp>)| {
        let versions = versions.expect("it has chains");
        let newest = versions.find(&key).and_then(|found| versions.newest(found).value.cloned());
        (key, (chain, newest))
    };
    chains.into_iter().map(each).collect()
}

/// A server that logs, and a client that runs its transactions there, one after the other.
struct RecordedRun {
    disk: MemoryDisk,
    writer: Writer<MemoryDisk>,
    batch: Batch,
    server: Machine<Score, Note>,
    client: Node<Score>,
    on_client: Effects<Score>,
    answers: Vec<Result<Answer, Failure>>,
    /// After each transaction: how long each file was when it was acknowledged, and the state.
    acknowledged: Vec<(Lengths, State)>,
}

impl RecordedRun {
    fn new() -> RecordedRun {
        let disk = MemoryDisk::new(1);
        let mut server = Machine::new(node(0, 1, true), Effects::default());
        let mut replaying = Replaying { machine: &mut server, notice: |_| {} };
        let writer = replaying.open(disk.clone(), OPTIONS).unwrap().writer;
        let batch = Batch::after(writer.stable());
        let client = node(1 << 31, 1, false);
        let (on_client, answers, acknowledged) = (Effects::default(), Vec::new(), Vec::new());
        RecordedRun { disk, writer, batch, server, client, on_client, answers, acknowledged }
    }

    /// Performs what both asked for, until nothing is left to do. What waits for the log has it
    /// written first.
    fn settle(&mut self) {
        while !self.server.effects.list.is_empty() || !self.on_client.list.is_empty() {
            for effect in std::mem::take(&mut self.server.effects.list) {
                match effect {
                    Effect::Log { role, record } => {
                        let payload = |out: &mut Vec<u8>| {
                            role.encode(out);
                            record.encode(out);
                        };
                        self.batch.append(RECORD, payload).unwrap();
                    }
                    Effect::Send { envelope, after } => {
                        if after > LogPosition(self.writer.stable().0) {
                            self.writer.write(&mut self.batch).unwrap();
                        }
                        self.client.deliver(envelope, &mut self.on_client);
                    }
                    Effect::SetTimer { .. } => {}
                    Effect::Complete { .. } => unreachable!("no client runs here"),
                }
            }
            for effect in std::mem::take(&mut self.on_client.list) {
                match effect {
                    Effect::Send { envelope, .. } => {
                        self.server.node.deliver(envelope, &mut self.server.effects);
                    }
                    Effect::Complete { result, .. } => {
                        self.note_lengths(&result);
                        self.answers.push(result);
                    }
                    Effect::SetTimer { .. } => {}
                    Effect::Log { .. } => unreachable!("a client keeps nothing"),
                }
            }
        }
    }

    /// A commit is acknowledged: what is in the files now must be enough to keep it.
    fn note_lengths(&mut self, answer: &Result<Answer, Failure>) {
        if matches!(answer, Ok(Answer::Committed(_))) {
            let files = self.disk.files();
            let lengths = files.into_iter().map(|(name, bytes)| (name, bytes.len())).collect();
            self.acknowledged.push((lengths, State::new()));
        }
    }

    fn answer(&mut self) -> Result<Answer, Failure> {
        self.settle();
        self.answers.pop().expect("everything is answered at once")
    }

    /// Writes, having read the keys if there is something to add to.
    fn transact(&mut self, accounts: &[u64], amounts: &[i64]) {
        let on_client = &mut self.on_client;
        let txn = self.client.begin(TxnOptions::default(), on_client).unwrap();
        let keys: Vec<_> = accounts.iter().map(|it| SmallBytes::new(&it.to_le_bytes())).collect();
        let read = self.client.get_many(txn, SPACE, keys.clone(), on_client);
        assert!(matches!(read, Step::Wait(_)));
        let Ok(Answer::Values(found)) = self.answer() else { panic!("values were asked for") };
        for ((key, amount), before) in keys.into_iter().zip(amounts).zip(found) {
            let after = before.map_or(0, |before| balance(&before)) + amount;
            let value = Some(SmallBytes::new(&after.to_le_bytes()));
            self.client.put(txn, SPACE, key, value, &mut self.on_client).unwrap();
        }
        let committed = self.client.commit(txn, &mut self.on_client);
        assert!(matches!(committed, Step::Wait(_)));
        assert!(matches!(self.answer(), Ok(Answer::Committed(_))));
    }

    fn transact_and_note(&mut self, accounts: &[u64], amounts: &[i64]) {
        self.transact(accounts, amounts);
        self.acknowledged.last_mut().expect("just told").1 = state(&self.server.node);
    }

    /// A life in which money is loaded and moved; then the log is closed, or the process killed.
    fn recorded(close: bool) -> (Files, Vec<(Lengths, State)>) {
        let mut incarnation = RecordedRun::new();
        incarnation.server.node.start(&mut incarnation.server.effects);
        incarnation.client.start(&mut incarnation.on_client);
        incarnation.settle();
        let all: Vec<_> = (0..ACCOUNTS).collect();
        incarnation.transact_and_note(&all, &[100; ACCOUNTS as usize]);
        for transfer in 0..TRANSFERS {
            let (from, to) =
                (transfer * 7 % ACCOUNTS, (transfer * 7 + 1 + transfer % 3) % ACCOUNTS);
            incarnation.transact_and_note(&[from, to], &[-1, 1]);
        }
        incarnation.writer.write(&mut incarnation.batch).unwrap();
        if close {
            incarnation.writer.close().unwrap();
        }
        (incarnation.disk.files(), incarnation.acknowledged)
    }
}

fn balance(value: &SmallBytes) -> i64 {
    i64::from_le_bytes(value.as_slice().try_into().unwrap())
}

/// The state that a log comes back as, once nothing is in doubt any more.
fn restarted(files: Files) -> Result<State, LogError> {
    let mut server: Machine<Score, Note> = Machine::new(node(0, 2, true), Effects::default());
    let mut replaying = Replaying { machine: &mut server, notice: |_| {} };
    replaying.open(MemoryDisk::with_files(1, files), OPTIONS)?;
    Ok(settled(server.node, server.effects))
}

/// The node is not started: as nobody else is there, it would collect what nobody reads any more.
fn settled(mut server: Node<Score>, mut effects: Effects<Score>) -> State {
    while server.unfinished().1 > 0 {
        effects.now = effects.now + Nanos::from_millis(10_000);
        // Its own vote is the only one: it finishes what is in doubt without asking anybody.
        server.timer(Role::Repository(RepositoryId(0)), 2, &mut effects);
    }
    state(&server)
}

/// The log as it was when its files were as long as this; later files are not there.
fn cut(files: &Files, last: &str, length: usize) -> Files {
    let mut files: Files = files.range(..=last.to_owned()).map(own).collect();
    files.get_mut(last).unwrap().truncate(length);
    files
}

fn own((name, bytes): (&String, &Vec<u8>)) -> (String, Vec<u8>) {
    (name.clone(), bytes.clone())
}

fn segments(files: &Files) -> Vec<String> {
    files.keys().filter(|name| name.starts_with("segment-")).cloned().collect()
}

/// The number of transactions that had been acknowledged when the files were so long.
fn acknowledged_in(acknowledged: &[(Lengths, State)], files: &Files) -> usize {
    let there = |name: &String| files.get(name).map_or(0, Vec::len);
    let fits = |lengths: &Lengths| lengths.iter().all(|(name, length)| *length <= there(name));
    acknowledged.iter().take_while(|(lengths, _)| fits(lengths)).count()
}

#[test]
fn every_prefix_of_the_log_comes_back_as_a_state_that_holds_what_was_acknowledged() {
    let (files, acknowledged) = RecordedRun::recorded(false);
    let names = segments(&files);
    assert!(names.len() > 3 && acknowledged.len() as u64 == TRANSFERS + 1);
    let mut states = 0;
    for name in &names {
        for length in 0..=files[name].len() {
            let prefix = cut(&files, name, length);
            let least = acknowledged_in(&acknowledged, &prefix);
            let state = restarted(prefix).unwrap();
            // One that was logged whole and not acknowledged yet may be there too.
            let found = (0..=acknowledged.len()).find(|&count| match count {
                0 => state.is_empty(),
                _ => acknowledged[count - 1].1 == state,
            });
            let count = found.unwrap_or_else(|| panic!("{name}, {length}: torn: {state:?}"));
            assert!((least..=least + 1).contains(&count), "{name}, {length}: {count} of {least}");
            states = states.max(count);
        }
    }
    assert_eq!(states, acknowledged.len());
}

#[test]
fn every_torn_last_block_leaves_what_was_acknowledged_before_it() {
    let (files, acknowledged) = RecordedRun::recorded(false);
    let last = segments(&files).pop().unwrap();
    let lengths = acknowledged.iter().rev().filter_map(|(lengths, _)| lengths.get(&last));
    // Up to there the last batch but one was synced.
    let synced = lengths.copied().find(|length| *length < files[&last].len());
    let synced = synced.unwrap_or(muesli_log::format::segment::HEADER_BYTES);
    let before = acknowledged_in(&acknowledged, &cut(&files, &last, synced));
    for from in synced..files[&last].len() {
        for fill in [0, 0xff] {
            let mut torn = files.clone();
            let bytes = torn.get_mut(&last).unwrap();
            let to = (from + 64).min(bytes.len());
            bytes[from..to].fill(fill);
            let state = restarted(torn).unwrap();
            assert!(
                acknowledged[before - 1..].iter().any(|(_, it)| *it == state),
                "torn at {from}"
            );
        }
    }
}

#[test]
fn flipped_bits_of_a_closed_log_are_refused_or_cost_nothing() {
    let (files, acknowledged) = RecordedRun::recorded(true);
    let (mut refused, mut harmless) = (0, 0);
    for name in segments(&files) {
        for bit in (0..files[&name].len() * 8).step_by(11) {
            let mut bent = files.clone();
            bent.get_mut(&name).unwrap()[bit / 8] ^= 1 << (bit % 8);
            match restarted(bent) {
                Err(LogError::Damaged { .. }) => refused += 1,
                Err(error) => panic!("bit {bit} of {name}: {error}"),
                Ok(state) => {
                    assert!(state == acknowledged.last().unwrap().1, "bit {bit} of {name}");
                    harmless += 1;
                }
            }
        }
    }
    // The closing mark has 29 bytes, and claims what is there.
    assert!(harmless <= 29 * 8 / 11 + 1 && refused > 1000, "{harmless}, {refused}");
}

/// A record that is there, kept for a replay by hand.
#[derive(Default)]
struct Kept(Vec<Vec<u8>>);

impl Replay for Kept {
    fn piece(&mut self, _: &[u8]) -> Result<(), String> {
        Err("no checkpoint was taken".to_owned())
    }

    fn record(&mut self, _: Sequence, _: u8, payload: &[u8]) -> Result<(), String> {
        self.0.push(payload.to_vec());
        Ok(())
    }
}

/// The mutation of the replay: leaves out one record. `None`: an assertion noticed it.
fn without(records: &[Vec<u8>], left_out: Option<usize>) -> Option<State> {
    let (mut server, mut effects) = (node(0, 2, true), Effects::default());
    for (_, bytes) in records.iter().enumerate().filter(|(at, _)| Some(*at) != left_out) {
        let mut input = Reader::new(bytes);
        let repository = RepositoryId::decode(&mut input).unwrap();
        let record = Wire::decode(&mut input).unwrap();
        let replay = std::panic::AssertUnwindSafe(|| {
            server.replay(repository, record, &mut effects);
        });
        std::panic::catch_unwind(replay).ok()?;
        effects.list.clear();
    }
    Some(settled(server, effects))
}

#[test]
fn a_replay_that_leaves_out_a_record_of_a_commit_is_noticed() {
    let (files, acknowledged) = RecordedRun::recorded(true);
    let mut kept = Kept::default();
    muesli_log::open(MemoryDisk::with_files(1, files), OPTIONS, &mut kept).unwrap();
    let whole = &acknowledged.last().unwrap().1;
    assert_eq!(without(&kept.0, None).as_ref(), Some(whole), "none was left out");
    let noticed = |at: &usize| without(&kept.0, Some(*at)).as_ref() != Some(whole);
    let noticed = (0..kept.0.len()).filter(noticed).count();
    // Each transaction was prepared by one record. What else there is can be found out again: the
    // end of a transaction whose votes are all here, and bounds on what was read.
    assert!(noticed as u64 > TRANSFERS, "{noticed} of {} records", kept.0.len());
}

#[test]
fn a_replay_drops_the_versions_that_nobody_reads_any_more() {
    let (mut incarnation, repository) = (RecordedRun::new(), RepositoryId(0));
    incarnation.server.node.start(&mut incarnation.server.effects);
    for _ in 0..1100 {
        incarnation.transact(&[0], &[1]);
    }
    let chain = |state: State| state[&SmallBytes::new(&[0; 8])].0.clone();
    incarnation.writer.write(&mut incarnation.batch).unwrap();
    let all = chain(state(&incarnation.server.node));
    assert_eq!(
        (all.len(), chain(restarted(incarnation.disk.files()).unwrap())),
        (1100, all.clone())
    );
    let low = *all.last().unwrap();
    let to = Address::repository(NodeId(0), repository);
    let message = Message::Watermark { low, newest: low };
    let from = Address::coordinator(NodeId(1 << 31));
    incarnation
        .server
        .node
        .deliver(Envelope { from, to, message }, &mut incarnation.server.effects);
    incarnation.settle();
    incarnation.writer.write(&mut incarnation.batch).unwrap();
    assert_eq!(chain(state(&incarnation.server.node)), [low]);
    assert_eq!(chain(restarted(incarnation.disk.files()).unwrap()), [low]);
}
