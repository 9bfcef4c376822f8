use muesli_core::recorder::RecordedOperations;
use muesli_core::{Nanos, NodeId, Recorder, SpaceOptions};

use super::*;

#[derive(Default)]
pub(super) struct Left {
    pub recorder: Recorder,
    pub chains: Vec<(RepositoryId, Vec<Chain>)>,
    pub crashed: bool,
}

impl Remains for Left {
    fn level_of(&self, txn: muesli_core::TxnId) -> TxnLevel {
        self.recorder.level_of(txn)
    }

    fn reported(&self) -> impl Iterator<Item = ReportedTransaction> {
        let reported = self.recorder.transactions().map(ReportedTransaction::as_recorded);
        reported.map(|reported| ReportedTransaction { crashed: self.crashed, ..reported })
    }

    fn applied_at(&self, txn: muesli_core::TxnId) -> Option<Timestamp> {
        self.recorder.applied_at(txn)
    }

    fn executed(&self, txn: muesli_core::TxnId) -> Vec<Vec<RecordedOperation>> {
        self.recorder.executed_for(txn).collect()
    }

    fn ran(&self, txn: muesli_core::TxnId) -> Vec<PartRan> {
        self.recorder.ran_for(txn).collect()
    }

    fn sampling(&self) -> Sampling {
        self.recorder.share()
    }

    fn chains(&self) -> &[(RepositoryId, Vec<Chain>)] {
        &self.chains
    }
}

pub(super) fn catalog() -> Catalog {
    let catalog = Catalog::new(&[NodeId(0)], 1, &[NodeId(0)]).unwrap();
    catalog.with_space("s", SpaceOptions::default()).unwrap()
}

pub(super) fn id(node: u32, sequence: u64) -> muesli_core::TxnId {
    muesli_core::TxnId { node: NodeId(node), incarnation: 1, sequence }
}

fn text(nodes: &[Left]) -> String {
    let history = by_versions(nodes, &catalog(), Map::new()).unwrap();
    let mut out = Vec::new();
    history.write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn write(key: &str, hash: Option<u64>) -> RecordedOperation {
    RecordedOperation::Write { space: SpaceId(0), key: key.into(), hash }
}

fn left(status: Status, operations: Vec<RecordedOperation>) -> Left {
    left_by(id(1, 1), status, operations)
}

fn left_by(id: muesli_core::TxnId, status: Status, operations: Vec<RecordedOperation>) -> Left {
    let mut recorder = Recorder::new();
    let (end, at) = match status {
        Status::Committed => (Some(Nanos(20)), Some(Timestamp(7))),
        Status::Aborted => (Some(Nanos(20)), None),
        Status::Unknown | Status::Running => (None, None),
    };
    let (session, begin, read_only) = (3, Nanos(10), false);
    let staleness = None;
    let record = TxnRecord { id, session, begin, end, status, read_only, at, staleness };
    recorder.transaction(&record, &RecordedOperations::from(&operations[..]));
    Left { recorder, ..Left::default() }
}

#[test]
fn only_last_writes_of_committed_transactions_have_versions() {
    let writes = || vec![write("a", Some(1)), write("b", None), write("a", Some(2))];
    let committed = text(&[left(Status::Committed, writes())]);
    let operations = r#"[["w","s/a",null,1],["d","s/b",7],["w","s/a",7,2]]"#;
    assert!(committed.contains(operations), "{committed}");
    let aborted = text(&[left(Status::Aborted, writes())]);
    let operations = r#"[["w","s/a",null,1],["d","s/b",null],["w","s/a",null,2]]"#;
    assert!(aborted.contains(operations), "{aborted}");
}

#[test]
fn of_what_a_crash_ended_reads_count_of_versions_that_last() {
    let version = |at| RecordedOperation::Read {
        space: SpaceId(0),
        key: "a".into(),
        version: Timestamp(at),
        hash: (at > 0).then_some(1),
    };
    let reads = vec![version(0), version(7), version(8), version(9)];
    let reported = left(Status::Committed, vec![write("a", Some(1))]);
    let crashed = Left { crashed: true, ..left_by(id(2, 1), Status::Running, reads) };
    let chains = vec![(SpaceId(0), "a".into(), vec![Timestamp(7), Timestamp(9)])];
    let holder = Left { chains: vec![(RepositoryId(0), chains)], ..Left::default() };
    let text = text(&[reported, holder, crashed]);
    for (version, counts) in [(0, true), (7, true), (8, false), (9, true)] {
        assert_eq!(text.contains(&format!(r#"["r","s/a",{version},"#)), counts, "{text}");
    }
}

#[test]
fn unknown_outcomes_are_filled_from_any_participant() {
    let mut participant = Recorder::new();
    participant.applied(id(1, 1), Timestamp(9));
    let participant = Left { recorder: participant, ..Left::default() };
    let unknown = left(Status::Unknown, vec![write("a", Some(1))]);
    assert!(text(&[unknown]).contains(r#"["w","s/a",null,1]"#));
    let unknown = left(Status::Unknown, vec![write("a", Some(1))]);
    assert!(text(&[unknown, participant]).contains(r#"["w","s/a",9,1]"#));
}

#[test]
fn which_deletions_were_found_is_known_only_with_the_outcome() {
    let (space, version) = (SpaceId(0), Timestamp(3));
    let read = |hash| RecordedOperation::Read { space, key: "a".into(), version, hash };
    let rows = |hash| vec![("a".into(), version, hash)];
    let scan = |hash| {
        let (lo, hi) = (SmallBytes::EMPTY, None);
        RecordedOperation::Scan { space, lo, hi, rows: rows(hash) }
    };
    let read_of = |known: bool, operation| {
        let mut participant = Left::default();
        if known {
            participant.recorder.applied(id(1, 1), Timestamp(9));
        }
        text(&[left(Status::Unknown, vec![operation]), participant])
    };
    let is_there = |text: String| text.contains(r#"["s/a",3,"#) || text.contains(r#""s/a",3,"#);
    for (known, hash) in [(true, None), (true, Some(1)), (false, Some(1)), (false, None)] {
        let counts = known || hash.is_some();
        assert_eq!(is_there(read_of(known, read(hash))), counts, "{known}, {hash:?}");
        assert_eq!(is_there(read_of(known, scan(hash))), counts, "{known}, {hash:?}");
    }
}

#[test]
fn a_place_that_a_deposed_leader_found_alone_does_not_count() {
    let participant = |at| {
        let mut recorder = Recorder::new();
        recorder.applied(id(1, 1), Timestamp(at));
        Left { recorder, ..Left::default() }
    };
    let unknown = || left(Status::Unknown, vec![write("a", Some(1))]);
    let most = [unknown(), participant(3), participant(9), participant(9)];
    assert!(text(&most).contains(r#"["w","s/a",9,1]"#));
    let (space, version) = (SpaceId(0), Timestamp(3));
    let read = RecordedOperation::Read { space, key: "a".into(), version, hash: Some(1) };
    let mut reader = Left::default();
    let record = TxnRecord {
        id: id(1, 2),
        session: 3,
        begin: Nanos(30),
        end: Some(Nanos(40)),
        status: Status::Committed,
        read_only: true,
        at: Some(Timestamp(3)),
        staleness: None,
    };
    reader.recorder.transaction(&record, &RecordedOperations::from(&[read][..]));
    let seen = text(&[unknown(), participant(9), participant(9), participant(3), reader]);
    assert!(seen.contains(r#"["w","s/a",3,1]"#), "{seen}");
}

#[test]
fn what_participants_ran_counts_where_the_transaction_lies() {
    let mut first = left(Status::Committed, Vec::new());
    let mut second = Left::default();
    let ran = |left: &mut Left, part, at, keys: &[&str]| {
        let all: Vec<_> = keys.iter().map(|key| write(key, Some(1))).collect();
        let operations = RecordedOperations::from(&all[..]);
        left.recorder.ran(id(1, 1), part, at, operations);
    };
    ran(&mut first, 0, Timestamp(7), &["a"]);
    ran(&mut second, 0, Timestamp(7), &["a"]);
    ran(&mut second, 1, Timestamp(5), &["lost"]);
    ran(&mut second, 1, Timestamp(7), &["b"]);
    ran(&mut second, 2, Timestamp(5), &["lost"]);
    ran(&mut second, 3, Timestamp(7), &["not told"]);
    let reported = RecordedOperations::from(&[write("c", Some(1))][..]);
    first.recorder.shared(id(1, 1), 3, Timestamp(7), reported);
    let text = text(&[first, second]);
    assert!(text.contains(r#"[["w","s/a",7,1],["w","s/b",7,1],["w","s/c",7,1]]"#), "{text}");
}

#[test]
fn a_key_that_came_and_went_is_read_as_it_was_at_the_end() {
    let absent = |key: &str, version| RecordedOperation::Read {
        space: SpaceId(0),
        key: key.into(),
        version: Timestamp(version),
        hash: None,
    };
    let rows = vec![("b".into(), Timestamp(2), None)];
    let scan = RecordedOperation::Scan { space: SpaceId(0), lo: "b".into(), hi: None, rows };
    let operations = vec![absent("a", 1), write("c", Some(1)), scan, write("a", Some(1))];
    let left = left(Status::Committed, operations);
    let mut other = Left::default();
    let found = [absent("a", 5), absent("b", 6), absent("c", 4), absent("d", 3)];
    other.recorder.ran(id(1, 1), 0, Timestamp(7), RecordedOperations::from(&found[..]));
    let text = text(&[left, other]);
    let expected = concat!(
        r#"[["r","s/a",5,null],["w","s/c",7,1],"#,
        r#"["s","s/b","s0",[["s/b",6,null],["s/d",3,null],["s/c","own"]]],["w","s/a",7,1]]"#,
    );
    assert!(text.contains(expected), "{text}");
}

#[test]
fn scans_end_with_their_space_and_chains_begin_after_version_zero() {
    let rows = vec![("b".into(), Timestamp(4), None)];
    let (space, lo) = (SpaceId(0), SmallBytes::EMPTY);
    let scan = RecordedOperation::Scan { space, lo, hi: None, rows };
    let mut left = left(Status::Committed, vec![write("c", Some(1)), scan]);
    let versions = vec![Timestamp::ZERO, Timestamp(4)];
    left.chains = vec![(RepositoryId(2), vec![(space, "\u{e9}".into(), versions)])];
    let text = text(&[left]);
    assert!(text.contains(r#"["s","s/","s0",[["s/b",4,null],["s/c","own"]]]"#), "{text}");
    assert!(text.contains(r#""node":"r2","vs":[4]"#), "{text}");
}
