//! Golden files of formats: samples of every message and record, as bytes with what they mean, in a
//! folder for each version. Most are those that the transcripts lead to; the others are made up.
//! Those of checkpoints are beside them (`checkpoint_samples`).
//!
//! Bytes that mean something else now, or nothing, are another format: raise
//! `muesli_core::formats::WIRE` (messages) or `DATA` (records, checkpoints), say so in
//! `docs/running/compatibility.md`, and write new files with
//! `UPDATE_GOLDENFILES=1 cargo test -p muesli-protocols samples`.
//! Between two published versions the files of the coming one may be written anew.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use muesli_core::wire::WireError;
use muesli_core::{Protocol, Wire, formats};

use super::scripted::Script;
use super::scripted::clusters::Clusters;

/// So many samples are kept of each variant: the shortest ones that differ in length.
const SAMPLES: usize = 3;
/// Longer ones say no more about a layout.
const SAMPLE_BYTES_MAX: usize = 400;
/// What every protocol with two phases sends and logs when nothing special happens; few scripts are
/// those of one baseline alone.
const COMMON: &str = "
begin t1 n0
get t1 b1
deliver
scan t1 c d
deliver
put t1 b1=1 c1=1
commit t1
deliver
wait 200ms
deliver
begin t2 n2
put t2 b1=2 a1=2
commit t2
deliver n2 n1
deliver
restart n1
wait 200ms
deliver
---
";

/// What was seen of one protocol: kind and variant, and samples by their length.
type Seen = BTreeMap<(&'static str, u8), BTreeMap<usize, (Vec<u8>, String)>>;

thread_local! {
    /// What the scripts of this thread have sent and logged, by protocol; `None`: nobody gathers.
    static GATHERED: RefCell<Option<BTreeMap<&'static str, Seen>>> = const { RefCell::new(None) };
}

/// A message was sent, or a record logged.
pub fn note<P: Protocol, T: Wire + std::fmt::Debug>(kind: &'static str, value: &T) {
    GATHERED.with_borrow_mut(|gathered| {
        let Some(gathered) = gathered else { return };
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        if bytes.len() > SAMPLE_BYTES_MAX {
            return;
        }
        let seen = gathered.entry(P::NAME).or_default().entry((kind, bytes[0])).or_default();
        seen.entry(bytes.len()).or_insert_with(|| {
            // Two values may have the same bytes: the one that is read counts.
            let meaning = means::<T>(&bytes).unwrap_or_else(|_| format!("{value:?}"));
            (bytes, meaning)
        });
    });
}

/// All that the scripts send and log; what they do not, is made up.
fn gather<P: Protocol>(clusters: Clusters, scripts: &[String]) -> Seen {
    GATHERED.set(Some(BTreeMap::new()));
    for text in scripts {
        goldenscript::generate(&mut Script::new(clusters), text).expect("it runs");
    }
    let mut all = GATHERED.take().expect("set above");
    let mut seen = all.remove(P::NAME).expect("scripts of the protocol");
    assert!(all.is_empty(), "scripts of one protocol: {:?}", all.keys());
    for number in 0..=u8::MAX {
        let message = made_up::<P::Message>(number).map(|sample| ("message", sample));
        let record = made_up::<P::Record>(number).map(|sample| ("record", sample));
        for (kind, (bytes, meaning)) in message.into_iter().chain(record) {
            let samples = seen.entry((kind, number)).or_default();
            if samples.is_empty() {
                samples.insert(bytes.len(), (bytes, meaning));
            }
        }
    }
    seen
}

/// The shortest bytes of a variant, with as many different ones as it takes in places.
fn made_up<T: Wire + std::fmt::Debug>(number: u8) -> Option<(Vec<u8>, String)> {
    let blank = |length: usize| {
        let mut bytes = vec![0; length];
        bytes[0] = number;
        bytes
    };
    let mut bytes = (1..SAMPLE_BYTES_MAX).map(blank).find(|bytes| means::<T>(bytes).is_ok())?;
    for at in 1..bytes.len() {
        let before = std::mem::replace(&mut bytes[at], at as u8);
        if means::<T>(&bytes).is_err() {
            bytes[at] = before;
        }
    }
    let meaning = means::<T>(&bytes).ok()?;
    Some((bytes, meaning))
}

/// The samples of this version.
pub fn folder() -> PathBuf {
    let versions = format!("wire-{}-data-{}", formats::WIRE, formats::DATA);
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats").join(versions)
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn unhex(text: &str) -> Vec<u8> {
    let digits = (0..text.len()).step_by(2);
    digits.map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal")).collect()
}

fn page(seen: &Seen) -> String {
    let mut page = String::new();
    for ((kind, _), samples) in seen {
        for (bytes, text) in samples.values().take(SAMPLES) {
            page += &format!("{kind} {}\n  {text}\n", hex(bytes));
        }
    }
    page
}

/// Reads a protocol's page, and says what does not mean what it says; with the variants that have
/// a sample.
pub fn reading<P: Protocol>(page: &str) -> (Vec<String>, BTreeSet<(String, u8)>) {
    let (mut wrong, mut variants) = (Vec::new(), BTreeSet::new());
    let lines: Vec<_> = page.lines().collect();
    for pair in lines.chunks(2) {
        let [head, text] = pair else { panic!("a line of bytes without their meaning") };
        let (kind, bytes) = head.split_once(' ').expect("a kind and bytes");
        let bytes = unhex(bytes);
        variants.insert((kind.to_owned(), bytes[0]));
        let read = match kind {
            "message" => means::<P::Message>(&bytes),
            "record" => means::<P::Record>(&bytes),
            other => panic!("a kind {other}"),
        };
        if read.as_deref() != Ok(text.trim()) {
            wrong.push(format!("{head}\n  was {}\n  is  {read:?}", text.trim()));
        }
    }
    for number in 0..=u8::MAX {
        let unread = [
            ("message", P::Message::decode_all(&[number]).err()),
            ("record", P::Record::decode_all(&[number]).err()),
        ];
        for (kind, error) in unread {
            let known = !matches!(error, Some(WireError::Variant { at: 0, .. }));
            if known && !variants.contains(&(kind.to_owned(), number)) {
                wrong.push(format!("{kind} {number} has no sample"));
            }
        }
    }
    (wrong, variants)
}

/// What bytes mean, if the same bytes come of it.
fn means<T: Wire + std::fmt::Debug>(bytes: &[u8]) -> Result<String, String> {
    let value = T::decode_all(bytes).map_err(|error| error.to_string())?;
    let mut again = Vec::new();
    value.encode(&mut again);
    if again == bytes { Ok(format!("{value:?}")) } else { Err(format!("{value:?}, other bytes")) }
}

/// The page of a protocol's samples.
pub fn page_of(protocol: &str) -> String {
    fs::read_to_string(folder().join(format!("{protocol}.txt"))).unwrap_or_default()
}

/// Looks whether the samples of a protocol mean what they meant, and whether what its scripts send
/// and log has samples. `folder` has the scripts; `alias` is what a protocol is called that has few
/// of them.
pub fn bytes_mean_what_they_meant<P: Protocol>(
    clusters: Clusters,
    scripts: &str,
    alias: Option<&str>,
) {
    let mut texts: Vec<_> =
        super::transcripts::scripts(scripts).into_iter().map(|it| it.1).collect();
    texts.extend(alias.map(|it| format!("cluster protocol={it} log=yes in_doubt=100ms{COMMON}")));
    let (seen, folder) = (gather::<P>(clusters, &texts), folder());
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        fs::create_dir_all(&folder).expect("a folder for the version");
        fs::write(folder.join(format!("{}.txt", P::NAME)), page(&seen)).expect("a page");
    }
    let (mut wrong, variants) = reading::<P>(&page_of(P::NAME));
    let new = seen.keys().filter(|(kind, it)| !variants.contains(&((*kind).to_owned(), *it)));
    wrong.extend(new.map(|(kind, it)| format!("{kind} {it} has no sample")));
    assert!(
        wrong.is_empty(),
        "{}: the bytes of formats WIRE {} and DATA {} have changed: raise the version and write \
         its files (see the top of this file)\n{}",
        P::NAME,
        formats::WIRE,
        formats::DATA,
        wrong.join("\n")
    );
}
