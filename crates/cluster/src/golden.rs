//! Golden bytes of the handshake, of what drivers say to each other, of a folder's files, and of a
//! client's timestamp lease.
//!
//! If this fails, bytes have changed under the same version: raise `WIRE`, `FOLDER` or `LEASE` in
//! [`formats`](crate::formats), say so in `docs/running/compatibility.md`, and write the new
//! version's file with `UPDATE_GOLDENFILES=1 cargo test -p muesli-cluster --lib golden`.

use std::path::Path;

use muesli_core::catalog::{Hierarchy, InnerNode};
use muesli_core::issuance::{self, Issuer};
use muesli_core::recorder::accesses::{AccessCounts, AccessPage, AccessSample, LoadPage};
use muesli_core::recorder::partition_sizes::{PartitionSize, SizeCursor, SizePage};
use muesli_core::{
    Lag, NodeId, Partitioning, ReplicaRole, RepositoryId, Role, SmallBytes, Tag, Timestamp, TxnId,
    Wire,
};

use crate::formats;
use crate::mailbox::outgoing::{Proves, SendBuffer};
use crate::spaces::parts::{MapParts, SpaceParts, TreeParts};
use crate::spaces::register::Register;
use crate::storage::folder::{FolderOwner, StoredIdentity};
use crate::wire::challenge::Challenge;
use crate::wire::control::Control;
use crate::wire::frame::{self, FrameKind};
use crate::wire::hello::{Hello, ProcessKind, Welcome};
use crate::wire::ids::{ClusterId, DataId};
use crate::wire::progress::{Alive, Reached};
use crate::wire::proof::SecretProof;
use crate::wire::refusal::{ConnectionRefusal, REASONS, Reason};

fn map() -> MapParts {
    MapParts {
        servers: vec![(NodeId(0), "a:1".to_owned()), (NodeId(1), "b:2".to_owned())],
        group: 3,
        loops: 2,
        left: vec![NodeId(1)],
        epoch: 4,
        placement: 5,
        homes: vec![(NodeId(0), 6)],
        leaving: vec![RepositoryId(7)],
        begun: vec![8],
        replicas: 9,
        partitions_per_repository: 10,
        masters: vec![NodeId(11)],
        sites: Default::default(),
        spaces: vec![space()],
        tree: None,
    }
}

/// The same with a tree.
fn map_with_tree() -> MapParts {
    let homes = vec![NodeId(12), NodeId(13)];
    let inner = vec![InnerNode { homes, parent: None }, InnerNode::new(NodeId(14), Some(0))];
    let tree = Hierarchy::new(inner, vec![1, 0]).unwrap();
    MapParts { tree: Some(TreeParts { epoch: 15, tree: Some(tree) }), ..map() }
}

fn space() -> SpaceParts {
    let partitioning = Partitioning::Range(vec![SmallBytes::new(b"m")]);
    SpaceParts { name: "s".to_owned(), ordered: true, partitioning }
}

fn reached() -> Reached {
    Reached { node: NodeId(3), data_id: DataId(4), begun: 5, process: 6, record: 7 }
}

fn hello(process_kind: ProcessKind) -> Hello {
    Hello {
        cluster: ClusterId(1),
        protocol: "score".to_owned(),
        process_kind,
        node: NodeId(2),
        data_id: DataId(3),
        data_ids: vec![(NodeId(4), DataId(5))],
        heights: vec![reached()],
        proves: true,
        challenge: Challenge([6; 16]),
    }
}

fn framed(kind: FrameKind, body: &impl Wire) -> Vec<u8> {
    let mut encoded = Vec::new();
    body.encode(&mut encoded);
    frame::framed(kind, &encoded)
}

/// What is said before messages pass.
fn handshakes() -> Vec<(String, Vec<u8>)> {
    let process_kinds =
        [ProcessKind::Server, ProcessKind::Client, ProcessKind::Probe, ProcessKind::Admin];
    let mut all: Vec<_> = process_kinds
        .map(|process_kind| {
            (format!("hello {process_kind:?}"), framed(FrameKind::Hello, &hello(process_kind)))
        })
        .into();
    let proof = Some(Tag([7; 16]));
    let welcome = Welcome {
        cluster: ClusterId(1),
        node: NodeId(2),
        data_id: DataId(3),
        data_ids: vec![(NodeId(4), DataId(5))],
        heights: vec![reached()],
        map: map(),
        proof,
    };
    all.push(("welcome".to_owned(), framed(FrameKind::Welcome, &welcome)));
    all.push(("challenge".to_owned(), framed(FrameKind::Challenge, &Challenge([8; 16]))));
    all.push(("proof".to_owned(), framed(FrameKind::Proof, &SecretProof { tag: Tag([9; 16]) })));
    for reason in REASONS.into_iter().chain([Reason::Older(Some(9))]) {
        let refusal = ConnectionRefusal { reason, text: "why".to_owned(), proof: None };
        all.push((format!("refusal {reason:?}"), framed(FrameKind::Refusal, &refusal)));
    }
    all
}

/// A frame of two messages between servers, and of a server and a client to each other.
fn messages() -> Vec<(String, Vec<u8>)> {
    let issued = Proves::Issued(Issuer::new([10; 16]), Timestamp(11));
    let shown = Proves::Shown(issuance::Proof { upto: Timestamp(12), tag: 13 });
    let all = [("servers", None), ("a server", Some(issued)), ("a client", Some(shown))];
    let framed = all.map(|(of, proves)| {
        let mut outgoing = SendBuffer::default();
        let to = Role::Repository(RepositoryId(16));
        outgoing.proves = proves;
        for message in [14u64, 15] {
            assert!(outgoing.message(Role::Coordinator, to, &message, 1 << 10));
        }
        (format!("messages of {of}"), outgoing.ready().to_vec())
    });
    framed.into()
}

/// What drivers say to each other, and what they keep.
fn samples() -> Vec<(String, Vec<u8>)> {
    let mut all = handshakes();
    all.extend(messages());
    let alive = Alive { taken: 1, record: 2 };
    all.push(("alive".to_owned(), framed(FrameKind::Alive, &alive)));
    let refused = Some("no".to_owned());
    for control in [
        Control::CreateSpace { request: 1, space: space() },
        Control::SpaceCreated { request: 2, refused },
        Control::Map(map()),
        Control::AskStatus,
        Control::Status(vec![("n".to_owned(), 3)]),
        Control::AskMembers,
        Control::Members {
            placement: 4,
            members: vec![(RepositoryId(5), ReplicaRole::Leads)],
            lags: vec![(RepositoryId(5), Lag { entries: 6, bytes: 7, percent: Some(8) })],
        },
        Control::Place(map()),
        Control::SpacesMade(6),
    ] {
        let name = format!("{control:?}");
        let name = name.split([' ', '(']).next().unwrap_or_default();
        all.push((format!("control {name}"), framed(FrameKind::Control, &control)));
    }
    let owner =
        FolderOwner { cluster: ClusterId(1), node: NodeId(2), protocol: "score".to_owned() };
    let program = "0.0.0".to_owned();
    let identity = StoredIdentity { data: 3, program, owner, data_id: 4, starts: 5, begun: 6 };
    all.push((
        "file identity".to_owned(),
        crate::storage::folder::file(formats::FOLDER, &identity),
    ));
    let all_heights = vec![reached()];
    all.push((
        "file heard".to_owned(),
        crate::storage::folder::file(formats::FOLDER, &all_heights),
    ));
    all.push(("file map".to_owned(), crate::storage::folder::file(formats::FOLDER, &map())));
    let mut row = Vec::new();
    Register { epoch: 1, spaces: vec![space()] }.encode(&mut row);
    all.push(("row of spaces".to_owned(), row));
    let with_tree = Control::Map(map_with_tree());
    all.push(("control Map with a tree".to_owned(), framed(FrameKind::Control, &with_tree)));
    let without = TreeParts { epoch: 16, tree: None };
    let without = MapParts { tree: Some(without), ..map() };
    all.push((
        "file map whose tree is gone".to_owned(),
        crate::storage::folder::file(formats::FOLDER, &without),
    ));
    all.extend(about_accesses());
    all
}

/// What is asked and answered about the partitions that transactions touch.
fn about_accesses() -> Vec<(String, Vec<u8>)> {
    let txn = TxnId { node: NodeId(1), incarnation: 2, sequence: 3 };
    let samples = vec![AccessSample { txn, at: Timestamp(4), partitions: vec![5, 6] }];
    let counts = AccessCounts { transactions: 7, distributed: 8 };
    let from = SizeCursor { repository: 10, space: 11, slot: 12 };
    let sizes = vec![PartitionSize { partition: 13, rows: 14, bytes: 15 }];
    let loads = LoadPage { one_in: 16, at_ms: 17, counts, loads: vec![(18, 19)], next: Some(20) };
    let all = [
        Control::AskAccesses(21),
        Control::Accesses(AccessPage { one_in: 22, oldest: 23, next: 24, samples }),
        Control::AskLoads(25),
        Control::Loads(loads),
        Control::AskSizes(from),
        Control::Sizes(SizePage { sizes, next: Some(from) }),
        Control::SampleAccesses(26),
    ];
    let named = |control: Control| {
        (format!("control {}", control.kind()), framed(FrameKind::Control, &control))
    };
    all.map(named).into()
}

#[test]
fn bytes_of_this_version_are_what_they_were() {
    compare(&format!("wire-{}-folder-{}.txt", formats::WIRE, formats::FOLDER), samples());
}

#[test]
fn bytes_of_a_timestamp_lease_are_what_they_were() {
    let lease = ("file timestamp lease".to_owned(), crate::storage::timestamp_lease::golden());
    compare(&format!("timestamp-lease-{}.txt", formats::LEASE), vec![lease]);
}

fn compare(name: &str, samples: Vec<(String, Vec<u8>)>) {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let lines = samples.into_iter().map(|(name, bytes)| format!("{name}: {}\n", hex(&bytes)));
    let now: String = lines.collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats").join(name);
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &now).unwrap();
    }
    let was = std::fs::read_to_string(&path).unwrap_or_default();
    for (was, now) in was.lines().zip(now.lines()) {
        assert_eq!(was, now, "bytes have changed: see the top of this file");
    }
    assert_eq!(was.lines().count(), now.lines().count(), "{}", path.display());
}
