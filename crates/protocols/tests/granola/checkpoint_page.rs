//! The checkpoint of a repository at work, in one fixed state.

use std::sync::Arc;

use muesli_core::Catalog;
use muesli_core::Effects;
use muesli_core::NodeId;
use muesli_core::ProcedureId;
use muesli_core::RepositoryId;
use muesli_core::SmallBytes;
use muesli_core::SpaceId;
use muesli_core::SpaceOptions;
use muesli_core::Timestamp;
use muesli_core::TxnId;
use muesli_core::checkpoint::piece;
use muesli_core::ranges::KeyRange;
use muesli_protocols::granola::Granola;
use muesli_protocols::granola::message as calls;
use muesli_protocols::granola::message::Holding;
use muesli_protocols::granola::message::Owners;

use crate::harness::checkpoint_samples::REST;
use crate::harness::checkpoint_samples::kinds;
use crate::harness::checkpoint_samples::looked_at;
use crate::harness::checkpoint_samples::settings;

const SPACE: SpaceId = SpaceId(0);
const REPOSITORY: RepositoryId = RepositoryId(0);
const HERE: NodeId = NodeId(0);
/// Where the coordinator of the transactions would be.
const ELSEWHERE: NodeId = NodeId(1);

fn key(number: u8) -> SmallBytes {
    SmallBytes::from(format!("key {number:02}").as_str())
}

fn granola() -> muesli_core::Node<Granola> {
    let homes = [HERE, ELSEWHERE];
    let catalog = Catalog::new(&homes, 1, &homes).expect("two repositories");
    let catalog = catalog.with_space("keys", SpaceOptions::default()).expect("a space");
    muesli_core::Node::new(HERE, 1, Arc::new(catalog), settings(), &Default::default())
}

/// A transaction of two repositories.
fn request(sequence: u64, agreement: calls::Agreement, task: calls::Task) -> Arc<calls::Request> {
    let holders = [REPOSITORY].into_iter().collect();
    let owners = Some(Arc::new(Owners { epoch: 1, holders })).filter(|_| sequence == 3);
    let install = calls::Install::default();
    let other = calls::Task::Install(Box::new(install));
    let parts = [(0, owners, task), (1, None, other)];
    let part = |(partition, owners, task)| calls::Part { partition, owners, task };
    Arc::new(calls::Request {
        settled_below: 2,
        lower_bound: Timestamp(7),
        agreement,
        ..calls::Request::new(
            TxnId { node: ELSEWHERE, incarnation: 1, sequence },
            [REPOSITORY, RepositoryId(1)].into_iter().collect(),
            parts.into_iter().map(part).collect(),
        )
    })
}

/// What a repository under Granola has logged.
fn records(keys: &[SmallBytes]) -> Vec<calls::Record> {
    let txn = |sequence| TxnId { node: ELSEWHERE, incarnation: 1, sequence };
    let write = |at: usize, value: Option<&str>| (SPACE, keys[at].clone(), value.map(Into::into));
    let (collected, value) = (Timestamp::ZERO, Some("old".into()));
    let found = calls::FoundVersion { version: Timestamp(64), value, collected };
    let call = calls::Task::Call {
        procedure: ProcedureId { name: "transfer".into(), version: 3 },
        arguments: "17".into(),
        shares: true,
        spaces: 1,
    };
    let range = KeyRange { space: SPACE, lo: keys[0].clone(), hi: None };
    let install = calls::Install {
        reads: vec![(SPACE, keys[0].clone(), Timestamp(64))],
        scans: vec![calls::SeenRange { range, at: Timestamp(65), live: 2 }],
        writes: vec![write(1, Some("new")), write(2, None)],
    };
    let answers = [
        calls::PartAnswer::Given("given".into()),
        calls::PartAnswer::Found(vec![found.clone()]),
        calls::PartAnswer::Rows(vec![(keys[0].clone(), found.clone())], Some(keys[1].clone())),
        calls::PartAnswer::Installed,
    ];
    let done = |sequence: u64, writes| calls::Record::Done {
        txn: txn(sequence),
        at: Timestamp(64 * sequence),
        writes,
        end: calls::ReplyOutcome::Done {
            at: Timestamp(64 * sequence),
            answers: (0..).zip(answers.clone()).collect(),
        },
    };
    let refusal = calls::Refusal::Refused("no money".into());
    let ballot = calls::TimestampVote::Abort(Timestamp(9), refusal.clone());
    let (independent, coordinated) = (calls::Agreement::Independent, calls::Agreement::Coordinated);
    let part_data = (1, vec![(SPACE, keys[0].clone(), found)]);
    let staged = (SPACE, keys[3].clone(), Timestamp(11), Some("staged".into()));
    let at = Timestamp(1 << 20);
    vec![
        done(2, vec![write(0, Some("first")), write(1, Some("second")), write(2, Some("third"))]),
        done(4, vec![write(0, None)]),
        calls::Record::Voted { request: request(3, independent, call), at: Timestamp(300) },
        calls::Record::Voted {
            request: request(5, coordinated, calls::Task::Install(Box::new(install))),
            at: Timestamp(364),
        },
        calls::Record::Against { txn: txn(6), ballot },
        calls::Record::Dropped {
            txn: txn(7),
            end: calls::ReplyOutcome::Refused { at: Timestamp(9), refusal },
        },
        calls::Record::SharedData { txn: txn(3), shared: vec![part_data] },
        calls::Record::Staged { partition: 1, anew: true, keys: vec![staged] },
        calls::Record::UpperBound { at },
    ]
}

#[test]
fn checkpoints_of_granola_are_as_they_were() {
    let (mut node, mut effects) = (granola(), Effects::default());
    let partition = |key: &SmallBytes| node.catalog().partition(SPACE, key);
    let of = |wanted: u16| (0..).map(key).filter(move |key| partition(key) == wanted);
    let keys: Vec<_> = of(0).take(3).chain(of(1).take(1)).collect();
    let more: Vec<_> = of(0).skip(3).take(2).collect();
    let held = Holding { epoch: 1, holds: true, at: Timestamp(12) };
    let holders = [REPOSITORY].into_iter().collect();
    let moves = (vec![(1_u16, held)], vec![(1_u16, Owners { epoch: 1, holders })], vec![1_u16]);
    // Versions that begin with zero are those of collected deletions.
    let value = Some(SmallBytes::from(vec![7; 50]));
    let (some, gone) =
        (vec![(Timestamp(3), value)], vec![(Timestamp::ZERO, None), (Timestamp(5), None)]);
    let chains = (SPACE, vec![(more[0].clone(), some), (more[1].clone(), gone)]);
    let seeds = [
        piece(8, &vec![(NodeId(7), Timestamp(3))]),
        piece(9, &Timestamp(5)),
        piece(5, &moves),
        piece(3, &chains),
    ];
    for seed in seeds {
        let seed = [vec![0, 0], seed].concat();
        node.restore(&seed, &mut effects).expect("a piece of its family");
    }
    for record in records(&keys) {
        node.replay(REPOSITORY, record, &mut effects);
    }
    let mut found = looked_at(&node, granola);
    // A chain of one version, as there are no others, is never cut.
    found.push(REST);
    found.sort_unstable();
    assert_eq!(found, kinds(granola), "each kind has its sample");
}
