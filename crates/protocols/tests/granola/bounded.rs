//! What procedures give and write in a repository fits into one record and one message; what is
//! remembered of them goes in pieces.

use std::sync::Arc;

use muesli_core::{
    Address, Catalog, Effect, Effects, Envelope, Limits, Node, NodeId, Procedure, ProcedureId,
    Procedures, RepositoryId, Settings, SmallBytes, SpaceOptions, Stop, Store, TxnId,
};
use muesli_protocols::granola::message::{Part, Refusal, ReplyOutcome, Request, Task};
use muesli_protocols::granola::{Granola, Message, Record};

const HERE: RepositoryId = RepositoryId(0);
const NODE: NodeId = NodeId(0);
/// Where the coordinator would be.
const ELSEWHERE: NodeId = NodeId(1);
const LIMIT: usize = 5_000;

/// A repository of some partitions, alone on its node.
struct Lone {
    node: Node<Granola>,
    effects: Effects<Granola>,
    records: Vec<Record>,
    ends: Vec<ReplyOutcome>,
}

/// Gives as many bytes as it is told.
fn give(_: &mut dyn Store, size: &SmallBytes) -> Result<SmallBytes, Stop> {
    let size = String::from_utf8_lossy(size.as_slice()).parse().unwrap_or(0);
    Ok(vec![7; size].into())
}

impl Lone {
    fn new() -> Lone {
        let catalog = Catalog::new(&[NODE], 1, &[NODE, ELSEWHERE])
            .unwrap()
            .with_partitions_per_repository(8)
            .unwrap();
        let catalog = catalog.with_space("keys", SpaceOptions::default()).unwrap();
        let defaults = Limits::default();
        let limits = Limits { value_bytes: 1_000, transaction_bytes: LIMIT, ..defaults };
        let settings = Settings {
            logging: true,
            limits,
            procedures: Procedures::default().with("give", 1, Procedure::new(give)),
            ..Settings::default()
        };
        let node = Node::new(NODE, 1, Arc::new(catalog), Arc::new(settings), &Default::default());
        Lone { node, effects: Effects::default(), records: Vec::new(), ends: Vec::new() }
    }

    /// Parts of so many bytes each, all of one transaction.
    fn call(&mut self, sequence: u64, sizes: &[usize]) -> ReplyOutcome {
        let part = |(partition, size): (u16, &usize)| {
            let procedure = ProcedureId { name: "give".into(), version: 1 };
            let arguments = size.to_string().as_str().into();
            let task = Task::Call { procedure, arguments, shares: false, spaces: 1 };
            Part { partition, owners: None, task }
        };
        let request = Request {
            settled_below: 0,
            ..Request::new(
                TxnId { node: ELSEWHERE, incarnation: 1, sequence },
                [HERE].into_iter().collect(),
                (0..).zip(sizes).map(part).collect(),
            )
        };
        let (from, to) = (Address::coordinator(ELSEWHERE), Address::repository(NODE, HERE));
        let message = Message::Request(Arc::new(request));
        self.node.deliver(Envelope { from, to, message }, &mut self.effects);
        for effect in std::mem::take(&mut self.effects.list) {
            match effect {
                Effect::Log { record, .. } => self.records.push(record),
                Effect::Send { envelope, .. } => {
                    if let Message::Reply { end, .. } = envelope.message {
                        self.ends.push(end);
                    }
                }
                Effect::Complete { .. } | Effect::SetTimer { .. } => {}
            }
        }
        self.ends.last().expect("it is answered").clone()
    }

    fn pieces(&self) -> Vec<Vec<u8>> {
        let mut checkpoint = self.node.begin_checkpoint(&self.effects).expect("it has them");
        let mut pieces = vec![Vec::new()];
        while self.node.checkpoint_piece(&mut checkpoint, 1_000, pieces.last_mut().unwrap()) {
            pieces.push(Vec::new());
        }
        pieces.pop();
        pieces
    }
}

#[test]
fn results_that_are_too_much_together_are_refused() {
    let mut lone = Lone::new();
    assert!(matches!(lone.call(1, &[1_000; 4]), ReplyOutcome::Done { .. }));
    let ReplyOutcome::Refused { refusal: Refusal::Faulty(why), .. } = lone.call(2, &[1_000; 5])
    else {
        panic!("{:?}", lone.ends)
    };
    let expected = "what a call gives and writes is 5080 bytes, over the limit of 5000 bytes \
                (`transaction_bytes_max`)";
    assert_eq!(why, expected);
    assert!(lone.records.iter().all(|record| record.bytes() < LIMIT + 400));
}

#[test]
fn what_is_remembered_is_cut_by_its_bytes() {
    let mut lone = Lone::new();
    let ends: Vec<ReplyOutcome> =
        (1..=300).map(|sequence| lone.call(sequence, &[900, 900, 900])).collect();
    let pieces = lone.pieces();
    assert!(pieces.iter().map(Vec::len).sum::<usize>() > 300 * 2_700);
    let longest = pieces.iter().map(Vec::len).max().unwrap_or(0);
    assert!(longest < (32 << 10) + 3_000, "{longest}");
    // All of it is known again: who asks once more is told the same.
    let mut restored = Lone::new();
    for piece in &pieces {
        restored.node.restore(piece, &mut restored.effects).expect("its own piece");
    }
    for (sequence, end) in (1..).zip(ends) {
        assert_eq!(restored.call(sequence, &[1]), end, "{sequence}");
    }
    assert!(restored.records.is_empty(), "nothing is done a second time");
}
