//! Keys that are absent when a transaction reads them, come and go, and are absent when it ends: it
//! commits, and its history has what it ended with, also where its client is no server, or has
//! given up before it learned of the end.

use muesli_core::recorder::{RecordedOperation, Recorder};
use muesli_core::{Answer, Failure, Nanos, Scan, Settings, SmallBytes, Timestamp, TxnId};

use super::pages::{CLIENT, Pair, SERVER, SPACE, key, waits};

/// The server writes a key, or deletes it.
fn change(pair: &mut Pair, value: Option<SmallBytes>) {
    let txn = pair.begin(SERVER);
    pair.on(SERVER, |node, effects| node.put(txn, SPACE, key(0), value, effects)).unwrap();
    assert_eq!(pair.commit(SERVER, txn), Ok(()));
}

/// The deletion of key 0 that the client's last transaction has read, as it recorded that itself,
/// and as the server said in the end.
fn found(pair: &Pair) -> (Timestamp, Option<Timestamp>) {
    let recorder = pair.effects[1].recorder.as_ref().expect("it records");
    let (record, operations) = recorder.transactions().last().expect("a transaction");
    let read = operations.filter_map(|operation| match operation {
        RecordedOperation::Read { key: read, version, .. } if read == key(0) => Some(version),
        RecordedOperation::Scan { rows, .. } => {
            rows.iter().find(|row| row.0 == key(0)).map(|row| row.1)
        }
        _ => None,
    });
    (read.last().expect("it was read"), committed_at(recorder, record.id))
}

fn committed_at(recorder: &Recorder, txn: TxnId) -> Option<Timestamp> {
    let committed_at =
        recorder.ran_for(txn).filter(|ran| ran.shared).flat_map(|ran| ran.operations);
    let of_key = committed_at.filter_map(|operation| match operation {
        RecordedOperation::Read { key: read, version, hash: None, .. } if read == key(0) => {
            Some(version)
        }
        _ => None,
    });
    of_key.last()
}

#[test]
fn what_came_and_went_is_recorded_as_it_was_in_the_end() {
    for (scans, gives_up) in [(false, false), (true, false), (false, true), (true, true)] {
        let settings = Settings { record_collected: true, ..Settings::default() };
        let mut pair = Pair::empty(1, 1, settings);
        pair.effects[1].recorder = Some(Box::default());
        change(&mut pair, Some("first".into()));
        change(&mut pair, None);
        let txn = pair.begin(CLIENT);
        let op = pair.begins(|node, effects| match scans {
            false => waits(node.get(txn, SPACE, &key(0), effects)),
            true => {
                let (lo, hi) = (SmallBytes::EMPTY, None);
                let scan = Scan { space: SPACE, lo, hi, reverse: false, limit: usize::MAX };
                waits(node.scan(txn, scan, effects))
            }
        });
        let nothing = if scans { Ok(Answer::Rows(Vec::new())) } else { Ok(Answer::Value(None)) };
        assert_eq!(pair.answer(CLIENT, op), nothing);
        change(&mut pair, Some("second".into()));
        change(&mut pair, None);
        let value = Some("written".into());
        pair.on(CLIENT, |node, effects| node.put(txn, SPACE, key(1), value, effects)).unwrap();
        if gives_up {
            let op = pair.begins(|node, effects| waits(node.commit(txn, effects)));
            pair.time_passes(CLIENT, Nanos::from_millis(60_000));
            let given_up = pair.answer(CLIENT, op);
            assert!(matches!(given_up, Err(Failure::Unknown { .. })), "{given_up:?}");
        } else {
            assert_eq!(pair.commit(CLIENT, txn), Ok(()), "the key is as it was");
        }
        let (first, last) = found(&pair);
        assert!(first > Timestamp::ZERO && last > Some(first), "{first} and then {last:?}");
    }
}
