//! Messages between drivers, and first frames, made of numbers, names and places that can be and
//! that cannot.

use std::sync::Arc;

use muesli_cluster::spaces::parts::{MapParts, SpaceParts, TreeParts};
use muesli_cluster::wire::challenge::Challenge;
use muesli_cluster::wire::control::Control;
use muesli_cluster::wire::frame::FrameKind;
use muesli_cluster::wire::hello::{Hello, ProcessKind, Welcome};
use muesli_cluster::wire::progress::{Alive, Reached};
use muesli_cluster::wire::proof::SecretProof;
use muesli_cluster::wire::refusal::{ConnectionRefusal, Reason};
use muesli_cluster::{ClusterId, DataId};
use muesli_core::catalog::{Hierarchy, InnerNode};
use muesli_core::recorder::accesses::{AccessPage, AccessSample, LoadPage};
use muesli_core::recorder::partition_sizes::{SizeCursor, SizePage};
use muesli_core::{
    Lag, NodeId, Partitioning, ReplicaRole, RepositoryId, SmallBytes, Tag, UnitMap, UnitPart,
    Units, Wire,
};

/// Kinds of messages between drivers, in the order in which they are said.
pub const KINDS: [&str; 16] = [
    "create-space",
    "space-created",
    "map",
    "ask-status",
    "status",
    "ask-members",
    "members",
    "place",
    "spaces-made",
    "ask-accesses",
    "accesses",
    "ask-loads",
    "loads",
    "ask-sizes",
    "sizes",
    "sample-accesses",
];

/// The place of a message's kind among [`KINDS`]. A kind that is new has to be given one here.
pub fn kind_of(control: &Control) -> usize {
    match control {
        Control::CreateSpace { .. } => 0,
        Control::SpaceCreated { .. } => 1,
        Control::Map(_) => 2,
        Control::AskStatus => 3,
        Control::Status(_) => 4,
        Control::AskMembers => 5,
        Control::Members { .. } => 6,
        Control::Place(_) => 7,
        Control::SpacesMade(_) => 8,
        Control::AskAccesses(_) => 9,
        Control::Accesses(_) => 10,
        Control::AskLoads(_) => 11,
        Control::Loads(_) => 12,
        Control::AskSizes(_) => 13,
        Control::Sizes(_) => 14,
        Control::SampleAccesses(_) => 15,
    }
}

/// So many spaces may be made by those who make some up.
const SPACES_MOST: usize = 40;

/// Somebody who says anything.
pub struct Drawing(fastrand::Rng);

impl Drawing {
    pub fn new(seed: u64) -> Drawing {
        Drawing(fastrand::Rng::with_seed(seed))
    }

    /// A message of the kind whose turn it is, to a server that has this map.
    pub fn control(&mut self, round: usize, map: &MapParts, is_member: bool) -> Control {
        match KINDS[round % KINDS.len()] {
            "create-space" => {
                Control::CreateSpace { request: self.number(1), space: self.space(map) }
            }
            "space-created" => {
                let refused = self.0.bool().then(|| self.text());
                Control::SpaceCreated { request: self.number(1), refused }
            }
            "map" => Control::Map(self.map(map, is_member)),
            "ask-status" => Control::AskStatus,
            "status" => {
                let lines = (0..self.0.usize(..9)).map(|_| (self.text(), self.0.u64(..)));
                Control::Status(lines.collect())
            }
            "ask-members" => Control::AskMembers,
            "members" => {
                let member = RepositoryId(self.0.u16(..));
                let replica_roles = [
                    ReplicaRole::Leads,
                    ReplicaRole::Follows,
                    ReplicaRole::Joins,
                    ReplicaRole::Lost,
                ];
                let role = self.0.choice(replica_roles).expect("there are some");
                let placement = self.number(map.placement);
                let lags = vec![(member, Lag::default())];
                Control::Members { placement, members: vec![(member, role)], lags }
            }
            "place" => Control::Place(self.map(map, false)),
            "spaces-made" => Control::SpacesMade(self.number(map.epoch)),
            "ask-accesses" => Control::AskAccesses(self.number(9)),
            "accesses" => Control::Accesses(AccessPage {
                next: self.number(9),
                samples: vec![AccessSample::default(); self.0.usize(..9)],
                ..AccessPage::default()
            }),
            "ask-loads" => Control::AskLoads(self.number(9) as u16),
            "loads" => Control::Loads(LoadPage {
                loads: vec![(self.0.u16(..), self.0.u64(..))],
                ..LoadPage::default()
            }),
            "ask-sizes" => Control::AskSizes(self.size_cursor()),
            "sizes" => {
                let (sizes, next) = (Vec::new(), Some(self.size_cursor()));
                Control::Sizes(SizePage { sizes, next })
            }
            "sample-accesses" => Control::SampleAccesses(self.0.u32(..)),
            other => unreachable!("{other} is no kind"),
        }
    }

    /// A place in the data of a server, whether there is one or not.
    fn size_cursor(&mut self) -> SizeCursor {
        let (repository, space) = (self.number(1) as u16, self.number(1) as u16);
        SizeCursor { repository, space, slot: self.number(9) as u32 }
    }

    /// A number near this one, at an end of what there is, or any.
    fn number(&mut self, near: u64) -> u64 {
        match self.0.u8(..10) {
            0 => 0,
            1 => u64::MAX,
            2 => u64::MAX - 1,
            3 => self.0.u64(..),
            4 => near.saturating_add(1 << 16),
            5 => near.saturating_add(1),
            6 => near.saturating_sub(1),
            _ => near,
        }
    }

    fn text(&mut self) -> String {
        let length = if self.0.u8(..8) == 0 { 300 } else { self.0.usize(..20) };
        (0..length).map(|_| self.0.alphanumeric()).collect()
    }

    fn space(&mut self, map: &MapParts) -> SpaceParts {
        let known = map.spaces.get(self.0.usize(..map.spaces.len().max(1))).cloned();
        let split = |drawing: &mut Drawing| SmallBytes::from(drawing.text().into_bytes());
        let few = map.spaces.len() < SPACES_MOST;
        match self.0.u8(..6) {
            0 => known.unwrap_or_default(),
            1 => {
                let known = known.unwrap_or_default();
                SpaceParts { ordered: !known.ordered, ..known }
            }
            2 => SpaceParts { name: "n".repeat(256 + self.0.usize(..9)), ..SpaceParts::default() },
            3 => {
                let partitioning = match self.0.u8(..3) {
                    0 => Partitioning::Everywhere,
                    1 => self.units(),
                    _ => {
                        let splits = (0..self.0.usize(..40)).map(|_| split(self)).collect();
                        Partitioning::Range(splits)
                    }
                };
                SpaceParts { name: self.text(), partitioning, ordered: false }
            }
            _ if few => {
                SpaceParts { name: format!("made-up-{}", self.0.u8(..20)), ..SpaceParts::default() }
            }
            _ => known.unwrap_or_default(),
        }
    }

    /// Units of one of few domains, whose maps may be sound.
    fn units(&mut self) -> Partitioning {
        let unit = |drawing: &mut Drawing| {
            (SmallBytes::from(drawing.text().into_bytes()), drawing.0.u16(..4))
        };
        let named: Vec<_> = (0..self.0.usize(..9)).map(|_| unit(self)).collect();
        let parts = [UnitPart::Text, UnitPart::Fixed(4)];
        let units =
            Units::new(if self.0.bool() { "user" } else { "item" }, &parts[..self.0.usize(..3)]);
        Partitioning::Unit(units.placed(Arc::new(UnitMap::of_units(self.0.u64(..), named))))
    }

    /// The map as it is, but for something. A member may say that there are more spaces.
    fn map(&mut self, known: &MapParts, is_member: bool) -> MapParts {
        let mut map = known.clone();
        match self.0.u8(..16) {
            0 | 1 => {}
            2 => map.epoch = self.number(known.epoch),
            3 => map.spaces.truncate(1),
            4 => {
                (map.epoch, map.placement) = (0, 0);
                map.homes.iter_mut().for_each(|(_, since)| *since = 0);
            }
            5 => {
                let space = self.space(known);
                let is_known = map.spaces.iter().any(|it| it.name == space.name);
                if !is_member || is_known || map.spaces.len() >= SPACES_MOST {
                    map.epoch = self.number(u64::MAX);
                } else {
                    map.spaces.push(space);
                    map.epoch += 1;
                }
            }
            6 => {
                map.spaces = vec![self.space(known), self.space(known)];
                map.epoch = map.epoch.max(3) + 1;
            }
            7 => map.servers.truncate(self.0.usize(..4)),
            8 => map.servers.reverse(),
            9 => self.bend_numbers(&mut map),
            10 => map.tree = Some(self.tree(known)),
            _ => self.bend_placement(&mut map),
        }
        map
    }

    fn bend_numbers(&mut self, map: &mut MapParts) {
        let number = self.number(1) as u16;
        let field = match self.0.u8(..5) {
            0 => &mut map.group,
            1 => &mut map.loops,
            2 => &mut map.replicas,
            3 => &mut map.partitions_per_repository,
            _ => return map.masters.push(NodeId(number.into())),
        };
        *field = if *field == number { number.wrapping_add(1) } else { number };
        // The highest bit of this one says that there is a tree.
        map.group = map.group.min((1 << 15) - 1);
    }

    /// A tree that nobody can have set: over other repositories, of validators on nodes that there
    /// are not, or of an epoch that is not the next one.
    fn tree(&mut self, known: &MapParts) -> TreeParts {
        let repositories = known.homes.len();
        let epoch = known.tree.as_ref().map_or(0, |tree| tree.epoch) + 1;
        let tree = |home: u32, leaves: usize| {
            let root = InnerNode::new(NodeId(home), None);
            Some(Hierarchy::new(vec![root], vec![0; leaves]).expect("a tree"))
        };
        match self.0.u8(..3) {
            0 => TreeParts { epoch, tree: tree(0, repositories + self.0.usize(1..9)) },
            1 => TreeParts { epoch, tree: tree(9, 0) },
            _ => TreeParts { epoch: u64::MAX - self.0.u64(..1 << 20), tree: None },
        }
    }

    /// A placement that nobody can have made: homes change without an epoch of their own.
    fn bend_placement(&mut self, map: &mut MapParts) {
        let member = self.0.usize(..map.homes.len().max(1));
        let next = map.placement + 1;
        match self.0.u8(..7) {
            0 => map.left = vec![NodeId(self.0.u32(..3))],
            1 => map.left = vec![NodeId(self.0.u32(4..))],
            2 => map.begun = vec![self.0.u16(1000..)],
            3 => {
                // Elsewhere, since it came to where it is.
                map.placement = next;
                if let Some((home, _)) = map.homes.get_mut(member) {
                    home.0 = home.0.wrapping_add(1 + self.0.u32(..9));
                }
            }
            4 => {
                map.placement = next;
                if let Some((_, since)) = map.homes.get_mut(member) {
                    *since = next + 1 + self.0.u64(..u64::MAX / 2);
                }
            }
            5 => map.placement = u64::MAX - self.0.u64(..1 << 20),
            _ => map.homes.truncate(member),
        }
    }

    /// A sign of life of somebody who has taken and kept anything.
    pub fn alive(&mut self) -> Option<Alive> {
        let alive = Alive { taken: self.number(1 << 20), record: self.number(1 << 20) };
        (self.0.u8(..4) == 0).then_some(alive)
    }

    /// What somebody says who comes, of each station in turn, without the secret.
    pub fn hello(&mut self, round: usize) -> Hello {
        let process_kinds =
            [ProcessKind::Probe, ProcessKind::Client, ProcessKind::Server, ProcessKind::Admin];
        let node = match self.0.u8(..5) {
            0 => self.0.u32(..5),
            1 => u32::MAX - self.0.u32(..2),
            2 => self.0.u32(..),
            _ => (1 << 31) + self.0.u32(..1 << 20),
        };
        let data_ids =
            |drawing: &mut Drawing| (NodeId(drawing.0.u32(..5)), DataId(drawing.number(1)));
        let heights = |drawing: &mut Drawing| Reached {
            node: NodeId(drawing.0.u32(..5)),
            data_id: DataId(drawing.number(1)),
            begun: drawing.number(1 << 40),
            process: drawing.0.u64(..),
            record: drawing.number(1 << 20),
        };
        let cluster = ClusterId(if self.0.u8(..4) == 0 { self.number(1) } else { 1 });
        Hello {
            cluster,
            protocol: if self.0.u8(..4) == 0 { self.text() } else { "score".to_owned() },
            process_kind: process_kinds[round % process_kinds.len()],
            node: NodeId(node),
            data_id: DataId(self.number(1)),
            data_ids: (0..self.0.usize(..4)).map(|_| data_ids(self)).collect(),
            heights: (0..self.0.usize(..4)).map(|_| heights(self)).collect(),
            proves: self.0.bool(),
            challenge: Challenge([self.0.u8(..); 16]),
        }
    }

    /// A frame of a handshake, whether it belongs there or not.
    pub fn odd_frame(&mut self, round: usize) -> (FrameKind, Vec<u8>) {
        let mut body = Vec::new();
        let tag = Tag([self.0.u8(..); 16]);
        let kinds = [
            FrameKind::Proof,
            FrameKind::Challenge,
            FrameKind::Welcome,
            FrameKind::Refusal,
            FrameKind::Hello,
        ];
        let kind = kinds[round % kinds.len()];
        match kind {
            FrameKind::Proof => SecretProof { tag }.encode(&mut body),
            FrameKind::Challenge => Challenge([self.0.u8(..); 16]).encode(&mut body),
            FrameKind::Welcome => {
                let data_id = DataId(self.number(1));
                let welcome = Welcome { cluster: ClusterId(1), data_id, ..Welcome::default() };
                welcome.encode(&mut body);
            }
            FrameKind::Refusal => {
                let begun = Some(self.number(1));
                let refusal = ConnectionRefusal {
                    reason: Reason::Older(begun),
                    text: self.text(),
                    proof: Some(tag),
                };
                refusal.encode(&mut body);
            }
            _ => self.hello(round).encode(&mut body),
        }
        (kind, body)
    }
}
