//! What is asked of an answer to a coordinator: it is one to what was asked, at a snapshot that its
//! transaction can have.

use muesli_core::parts::locator::Static;
use muesli_core::{
    Address, Effect, Rejection, Scan, Sender, SmallBytes, Step, Timestamp, Txn, TxnOptions,
};
use muesli_protocols::score::Snapshots;
use muesli_protocols::two_phase::message::{Found, Message, ReadReply, ScanReply};

use crate::two_phase::server::{HERE, OTHER, SPACE, Scored, THERE};

/// A transaction of the node's own client, which reads at the other repository.
struct Reading {
    server: Scored,
    txn: Txn,
    keys: Vec<SmallBytes>,
}

impl Reading {
    fn new() -> Reading {
        let mut server = Scored::new();
        let txn = server.node.begin(TxnOptions::default(), &mut server.effects).unwrap();
        let catalog = server.node.catalog();
        let keys = (0_u32..).map(|number| SmallBytes::new(&number.to_be_bytes()));
        let elsewhere =
            |key: &SmallBytes| !Static.holds(HERE, catalog.partition(SPACE, key), catalog);
        let keys = keys.filter(elsewhere).take(2).collect();
        Reading { server, txn, keys }
    }

    /// The number of the request for a key.
    fn get(&mut self, which: usize) -> u64 {
        let Scored { node, effects } = &mut self.server;
        let step = node.get(self.txn, SPACE, &self.keys[which], effects);
        assert!(matches!(step, Step::Wait(_)), "it is elsewhere");
        self.asked()
    }

    fn scan(&mut self) -> u64 {
        let scan = Scan { space: SPACE, lo: "".into(), hi: None, reverse: false, limit: 9 };
        let Scored { node, effects } = &mut self.server;
        assert!(matches!(node.scan(self.txn, scan, effects), Step::Wait(_)));
        self.asked()
    }

    fn asked(&mut self) -> u64 {
        let sent = std::mem::take(&mut self.server.effects.list).into_iter();
        let mut requests = sent.filter_map(|effect| match effect {
            Effect::Send { envelope, .. } if envelope.to.node == OTHER => match envelope.message {
                Message::Read(read) => Some(read.request),
                Message::Scan(scan) => Some(scan.request),
                _ => None,
            },
            _ => None,
        });
        requests.next().expect("a request to the other one")
    }

    fn receive(&mut self, message: Message<Snapshots>) -> Result<(), Rejection> {
        let (from, to) = (Address::repository(OTHER, THERE), Address::coordinator(ME));
        let envelope = muesli_core::Envelope { from, to, message };
        self.server.node.receive(Sender::Member, envelope, &mut self.server.effects)
    }
}

const ME: muesli_core::NodeId = muesli_core::NodeId(0);

fn read_reply(request: u64, at: u64, keys: usize) -> Message<Snapshots> {
    let collected = Timestamp::ZERO;
    let found = Found { version: Timestamp::ZERO, value: None, newest: true, collected };
    let (committed, found) = (Timestamp(at), (0..keys).map(|_| found.clone()).collect());
    Message::ReadReply(ReadReply {
        request,
        snapshot: Some(committed),
        committed,
        found,
        moved: Default::default(),
        known: Default::default(),
    })
}

fn scan_reply(request: u64, at: u64) -> Message<Snapshots> {
    let (committed, rows) = (Timestamp(at), Vec::new());
    let (snapshot, seen_to) = (Some(committed), None);
    Message::ScanReply(Box::new(ScanReply {
        request,
        snapshot,
        committed,
        rows,
        seen_to,
        moved: Default::default(),
    }))
}

#[test]
fn a_read_is_answered_with_as_many_keys_as_were_asked_for() {
    let mut reading = Reading::new();
    let request = reading.get(0);
    assert_eq!(reading.receive(read_reply(request, 100, 2)), Err(Rejection::State));
    assert_eq!(reading.receive(read_reply(request, 100, 1)), Ok(()));
    // What nobody asked for any more is taken, and leaves nothing.
    assert_eq!(reading.receive(read_reply(request + 9, 100, 2)), Ok(()));
}

#[test]
fn a_read_is_not_answered_with_rows() {
    let mut reading = Reading::new();
    let request = reading.get(0);
    assert_eq!(reading.receive(scan_reply(request, 100)), Err(Rejection::State));
    let mut reading = Reading::new();
    let request = reading.scan();
    assert_eq!(reading.receive(read_reply(request, 100, 1)), Err(Rejection::State));
    assert_eq!(reading.receive(scan_reply(request, 100)), Ok(()));
}

/// Others were told that nothing below is read.
#[test]
fn an_answer_is_not_below_what_its_transaction_began_with() {
    for scans in [false, true] {
        let mut reading = Reading::new();
        let committed = reading.server.put(&reading.server.key(0), "x").0;
        reading.txn = {
            let Scored { node, effects } = &mut reading.server;
            let options = TxnOptions { lower_bound: Timestamp(committed), ..TxnOptions::default() };
            node.begin(options, effects).unwrap()
        };
        let request = if scans { reading.scan() } else { reading.get(0) };
        let reply = |at| match scans {
            true => scan_reply(request, at),
            false => read_reply(request, at, 1),
        };
        assert_eq!(reading.receive(reply(committed - 1)), Err(Rejection::State), "scans: {scans}");
        assert_eq!(reading.receive(reply(committed)), Ok(()));
    }
}
