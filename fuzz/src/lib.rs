//! What the fuzz targets do: bytes in, no panic, no memory out of proportion, and whatever was
//! decoded comes back the same from its encoding.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use muesli_cluster::wire::control::Control;
use muesli_cluster::wire::frame::{self, FrameKind};
use muesli_cluster::wire::hello::{Hello, Welcome};
use muesli_cluster::wire::refusal::ConnectionRefusal;
use muesli_cluster::spaces::map::Map;
use muesli_cluster::spaces::parts::MapParts;
use muesli_core::{Catalog, NodeId, Protocol, SpaceOptions, Wire};
use muesli_group::agreement::configuration::Configuration;
use muesli_group::agreement::consensus::Consensus;
use muesli_group::agreement::ledger::Ledger;
use muesli_group::placement::PlacementRow;
use muesli_group::{Grouped, layout};
use muesli_log::{MemoryDisk, Options, Replay, Sequence};
use muesli_placement::suggestion::SuggestionError;
use muesli_placement::{AccessTrace, Terms, suggest};
use muesli_protocols::{Choice, NAMES, choose};
use muesli_rdb::RdbReader;
use muesli_resp::protocol::limits::RequestLimits;
use muesli_resp::protocol::request::{Requests, RespCommand};
use muesli_sim::plan::Plan;
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::world::Strangers;
use muesli_workloads::available;
use muesli_workloads::embedded::Length;
use muesli_workloads::simulated::{self, Simulated, Upkeep, is_guaranteed, guarantee};
use muesli_workloads::tally::Tallies;

#[expect(dead_code, reason = "commands need more of it")]
#[path = "../../crates/cli/src/names.rs"]
mod names;
#[path = "../../crates/cli/src/config/mod.rs"]
#[allow(dead_code, unused_imports)]
mod configuration;

const FRAME_MOST: usize = 1 << 16;

/// What a Redis client sends, in pieces of the length that the first byte says.
pub fn resp(data: &[u8]) {
    let Some((length, stream)) = data.split_first() else { return };
    let limits = RequestLimits {
        bulk_bytes: 1 << 12,
        buffer_bytes: 1 << 16,
        ..RequestLimits::default()
    };
    let mut requests = Requests::new(limits);
    for piece in stream.chunks(usize::from(*length).max(1)) {
        requests.feed(piece);
        loop {
            match requests.next_command() {
                Ok(Some(command)) => {
                    assert!(command.size() <= data.len());
                    assert_eq!(command, RespCommand::of(command.iter()));
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
        assert!(requests.waiting() <= data.len());
    }
}

/// A file of Redis, of the version that the first byte says.
pub fn rdb(data: &[u8]) {
    let Some((version, rest)) = data.split_first() else { return };
    let file = [format!("REDIS{:04}", version % 14).as_bytes(), rest].concat();
    let mut reader = match RdbReader::open(&*file) {
        Ok(reader) => reader,
        Err(error) => return assert!(!(1..=12).contains(&(version % 14)), "{error}"),
    };
    loop {
        match reader.next_event() {
            Ok(Some(_)) => {}
            Ok(None) => return assert_eq!(reader.offset(), file.len() as u64),
            Err(error) => return assert!(error.offset <= file.len() as u64, "{error}"),
        }
    }
}

/// The stream of a connection.
pub fn frames(data: &[u8]) {
    let mut rest = data;
    while let Ok(Some(found)) = frame::next(rest, FRAME_MOST) {
        rest = &rest[found.bytes()..];
    }
    let mut whole = Vec::new();
    let start = frame::begin(FrameKind::Messages, &mut whole);
    whole.extend_from_slice(data);
    frame::end(start, &mut whole);
    match frame::next(&whole, FRAME_MOST) {
        Ok(Some(found)) => assert_eq!(found.body, data),
        other => assert!(data.len() > FRAME_MOST, "{other:?}"),
    }
}

/// The first frames of a connection, and what drivers say to each other.
pub fn handshake(data: &[u8]) {
    let Some((&which, data)) = data.split_first() else { return };
    match which % 5 {
        0 => comes_back::<Hello>(data),
        1 => {
            comes_back::<Welcome>(data);
            if let Ok(welcome) = Welcome::decode_all(data) {
                makes_sense_or_not(welcome.map);
            }
        }
        2 => comes_back::<ConnectionRefusal>(data),
        3 => comes_back::<Control>(data),
        _ => {
            comes_back::<MapParts>(data);
            if let Ok(parts) = MapParts::decode_all(data) {
                makes_sense_or_not(parts);
            }
        }
    }
}

fn makes_sense_or_not(parts: MapParts) {
    if let Ok(map) = Map::try_from(parts) {
        assert!(map.map_server().is_none_or(|server| map.address_of(server).is_some()));
        assert_eq!(Map::try_from(MapParts::from(&map)), Ok(map));
    }
}

fn comes_back<T: Wire + PartialEq + Debug>(data: &[u8]) {
    let Ok(value) = T::decode_all(data) else { return };
    let mut again = Vec::new();
    value.encode(&mut again);
    assert_eq!(T::decode_all(&again), Ok(value));
}

/// The messages of the protocol that the first byte names.
pub fn messages(data: &[u8]) {
    struct Messages<'a>(&'a [u8]);
    impl Choice for Messages<'_> {
        type Output = ();

        fn chosen<P: Protocol>(self, _: P::Switches) {
            messages_of::<P>(self.0, &catalog());
        }
    }
    by_first_byte(data, Messages);
}

fn messages_of<P: Protocol>(data: &[u8], catalog: &Catalog) {
    let Ok(message) = P::Message::decode_all(data) else { return };
    let mut again = Vec::new();
    message.encode(&mut again);
    // Messages need not be comparable: their bytes are.
    let back = P::Message::decode_all(&again).expect("it was just encoded");
    let mut twice = Vec::new();
    back.encode(&mut twice);
    assert_eq!(again, twice);
    let _ = P::is_about(&message, catalog);
    let _ = (P::wire_bytes(&message), P::message_name(&message));
}

/// The records of the protocol that the first byte names.
pub fn records(data: &[u8]) {
    struct Records<'a>(&'a [u8]);
    impl Choice for Records<'_> {
        type Output = ();

        fn chosen<P: Protocol>(self, _: P::Switches) {
            let Ok(record) = P::Record::decode_all(self.0) else { return };
            let mut again = Vec::new();
            record.encode(&mut again);
            let back = P::Record::decode_all(&again).expect("it was just encoded");
            let mut twice = Vec::new();
            back.encode(&mut twice);
            assert_eq!(again, twice);
            let _ = P::record_bytes(&record);
        }
    }
    by_first_byte(data, Records);
}

/// What groups say and keep, and the row of the placement, around the protocol that the second byte
/// names.
pub fn groups(data: &[u8]) {
    let Some((&which, data)) = data.split_first() else { return };
    match which % 4 {
        0 => by_first_byte(data, Groups),
        1 => comes_back::<muesli_group::Record<u64>>(data),
        2 => comes_back::<PlacementRow>(data),
        _ => {
            // From a member that has nothing to say: only what is no message can come.
            let configuration = Configuration::first(vec![0, 1, 2]);
            let mut consensus = Consensus::new(0, &configuration, Ledger::default(), 1 << 20);
            assert!(!consensus.receive(0, data, |_| true), "a member does not speak to itself");
        }
    }
}

struct Groups<'a>(&'a [u8]);

impl Choice for Groups<'_> {
    type Output = ();

    fn chosen<P: Protocol>(self, _: P::Switches) {
        messages_of::<Grouped<P>>(self.0, &grouped_catalog());
    }
}

fn grouped_catalog() -> Catalog {
    let homes = layout::homes(2, 3, 3).expect("they fit");
    let catalog = Catalog::new(&homes, 2, &[NodeId(0), NodeId(1), NodeId(2)]).expect("it can be");
    catalog.with_space("space", SpaceOptions::default()).expect("it can be")
}

fn by_first_byte<'a, C: Choice<Output = ()>>(data: &'a [u8], choice: impl Fn(&'a [u8]) -> C) {
    let Some((&which, data)) = data.split_first() else { return };
    let name = NAMES[usize::from(which) % NAMES.len()];
    choose(name, choice(data)).ok().expect("the name is one of the table");
}

fn catalog() -> Catalog {
    let homes = [NodeId(0), NodeId(1), NodeId(0)];
    let catalog = Catalog::new(&homes, 2, &[NodeId(0), NodeId(1)]).expect("it can be");
    catalog.with_space("space", SpaceOptions::default()).expect("it can be")
}

/// What a replay saw.
#[derive(Default)]
struct Seen {
    pieces: usize,
    records: Vec<(u64, Vec<u8>)>,
}

impl Replay for Seen {
    fn piece(&mut self, _: &[u8]) -> Result<(), String> {
        self.pieces += 1;
        Ok(())
    }

    fn record(&mut self, at: Sequence, _: u8, payload: &[u8]) -> Result<(), String> {
        self.records.push((at.0, payload.to_vec()));
        Ok(())
    }
}

const OWNER: u64 = 7;

fn options() -> Options {
    Options { owner: OWNER, segment_bytes: 400, preallocate_bytes: 0, ..Options::default() }
}

/// A trace of transactions: what is read comes back the same, and whatever it says, a placement can
/// be suggested from it.
pub fn trace(data: &[u8]) {
    let Ok(trace) = AccessTrace::from_bytes(data) else { return };
    assert_eq!(trace.to_bytes(), data, "a trace that was read is written otherwise");
    match suggest(&trace, &Terms::default()) {
        Ok(suggestion) => {
            let placed = suggestion.proposed.scheme.tables.len();
            assert_eq!(placed, trace.tables.len(), "each table is placed");
        }
        Err(SuggestionError::Short(_)) => {}
        Err(error) => panic!("a trace that was read is refused: {error}"),
    }
}

/// A directory: where the first byte is odd, files of any bytes; else a good log in which the
/// rest of the bytes, three by three, are put over what is there.
pub fn log(data: &[u8]) {
    let Some((&which, data)) = data.split_first() else { return };
    let good = good_log();
    let mut files = good.clone();
    if which % 2 == 1 {
        let middle = data.len() / 2;
        let names: Vec<_> = files.keys().cloned().collect();
        for (name, bytes) in names.iter().zip([&data[..middle], &data[middle..]]) {
            files.insert(name.clone(), bytes.to_vec());
        }
    } else {
        for change in data.chunks_exact(4) {
            let place = usize::from(change[0]) % files.len();
            let bytes = files.values_mut().nth(place).expect("it was counted");
            let at = usize::from(u16::from_le_bytes([change[1], change[2]]));
            match bytes.get_mut(at) {
                Some(byte) => *byte = change[3],
                None => bytes.truncate(bytes.len().saturating_sub(usize::from(change[3]))),
            }
        }
    }
    let disk = MemoryDisk::with_files(1, files);
    let _ = muesli_log::repair::inspect(&disk, OWNER);
    let mut seen = Seen::default();
    if muesli_log::open(disk, options(), &mut seen).is_ok() && which % 2 == 0 {
        // Whatever is read back is what was written, in order and without gaps.
        let mut whole = Seen::default();
        muesli_log::open(MemoryDisk::with_files(1, good), options(), &mut whole)
            .expect("it is a good one");
        assert!(whole.records.starts_with(&seen.records), "{:?}", seen.records);
    }
}

/// The files of a log with a few records in a few segments.
fn good_log() -> BTreeMap<String, Vec<u8>> {
    let disk = MemoryDisk::new(1);
    let opened = muesli_log::open(disk.clone(), options(), &mut Seen::default());
    let (mut writer, _) = opened.expect("an empty one is good");
    for number in 0..12u8 {
        let mut batch = muesli_log::Batch::after(writer.stable());
        for part in 0..=number % 3 {
            batch.append(1, |out| out.extend([number, part].repeat(9))).expect("a short record");
        }
        writer.write(&mut batch).expect("the disk is well");
    }
    drop(writer);
    disk.files()
}

/// Each family of protocols, alone and in groups.
const FAMILIES: [(&str, u16); 12] = [
    ("score", 1),
    ("gmu", 1),
    ("bumper", 1),
    ("bumper-reconciled", 1),
    ("2pc", 1),
    ("rr", 1),
    ("ngm", 1),
    ("granola", 1),
    ("granola-locking", 1),
    ("sinfonia", 1),
    ("score", 3),
    ("granola", 3),
];
const CLIENTS: u32 = 3;

/// A small cluster with honest clients, among strangers who do and say what the bytes say, as
/// clients or as members: nodes live, and what honest clients see holds where no member lies.
pub fn strangers(data: &[u8]) {
    let Some((&[which, how], script)) = data.split_first_chunk::<2>() else { return };
    let (protocol, group) = FAMILIES[usize::from(which) % FAMILIES.len()];
    let as_members = how & 1 == 1;
    let every = Span::from_nanos(100_000);
    let upkeep = Upkeep {
        group,
        checkpoint_every: (how & 2 == 2).then_some(Span::from_millis(5)),
        strangers: Some(Strangers { every, as_members }),
        ..Upkeep::default()
    };
    let seed = u64::from(how >> 4);
    let plan = Simulated {
        replicas: 1 + usize::from(how >> 2 & 1),
        plan: Plan::calm(VirtualTime::ZERO + Span::from_millis(30)),
        transactions_least: if as_members { 0 } else { 20 },
        pause_most: Span::from_millis(2),
        logging: true,
        history: true,
        script: Some(script.into()),
        upkeep,
        ..Simulated::calm(protocol, 3, seed, Length::Time(Duration::ZERO))
    };
    let workload = available::find("bank").expect("it is listed");
    let workload = workload.build(&["objects=12".to_owned()], CLIENTS).expect("it takes objects");
    let tallies = Arc::new(Tallies::new(CLIENTS));
    let outcome = simulated::run(&workload, &plan, &tallies).expect("the world can be");
    if as_members {
        return;
    }
    for check in outcome.checks.iter().filter(|it| is_guaranteed(protocol, it.name)) {
        assert!(check.ok, "{protocol}: {}: {}", check.name, check.details);
    }
    let history = outcome.run.history(serde_json::Map::new()).expect("it was recorded");
    let (level, options) = guarantee(protocol).expect("it is listed");
    let verdict = muesli_check::check(&history, level, &options);
    assert!(verdict.holds(), "{protocol}: {verdict}");
}

/// The file of a server.
pub fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut config = configuration::Config::default();
    let _ = config.read_text(&text, "fuzz.toml");
}

/// A file of the checker.
pub fn history(data: &[u8]) {
    let Ok(history) = muesli_check::History::read(data) else { return };
    for level in [muesli_check::Level::Serializable, muesli_check::Level::Rr] {
        let _ = muesli_check::check(&history, level, &muesli_check::Options::default()).to_string();
    }
}
