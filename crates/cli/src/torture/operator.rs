//! Changes of the placement while clients run: members of groups move to other nodes.
//!
//! Faults are in the way of some changes, which then fail or take long; what they leave half done
//! must harm nobody. When all faults are over, a change must come to its end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use muesli_core::{NodeId, RepositoryId, Secret};

use crate::admin::change::Admin;
use crate::local::LocalCluster;

/// The pause between two changes.
const PAUSE: Duration = Duration::from_millis(500);
/// When all faults are over, a move must succeed within this.
const MOVES_WITHIN: Duration = Duration::from_secs(60);

/// Whoever looks after the cluster of a round.
pub struct Operator {
    addresses: Vec<String>,
    protocol: String,
    secret: Option<Secret>,
    nodes: usize,
    seed: u64,
}

/// What became of the changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changed {
    pub tried: u64,
    pub done: u64,
}

impl Operator {
    /// # Errors
    /// The cluster's secret cannot be read.
    pub fn new(
        cluster: &LocalCluster,
        addresses: &[String],
        protocol: &str,
        seed: u64,
    ) -> anyhow::Result<Operator> {
        Ok(Operator {
            addresses: addresses.to_vec(),
            protocol: protocol.to_owned(),
            secret: cluster.secret()?,
            nodes: addresses.len(),
            seed,
        })
    }

    /// Moves members until `stop` is set.
    pub fn move_until(&self, stop: &AtomicBool) -> Changed {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut changed = Changed::default();
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(PAUSE);
            changed.tried += 1;
            changed.done += u64::from(self.move_one(&mut random).is_ok());
        }
        changed
    }

    /// Moves a member when all faults are over.
    ///
    /// # Errors
    /// None moved in time.
    pub fn move_at_last(&self) -> anyhow::Result<()> {
        let mut random = fastrand::Rng::with_seed(self.seed + 1);
        let deadline = Instant::now() + MOVES_WITHIN;
        loop {
            match self.move_one(&mut random) {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > deadline => {
                    let seconds = MOVES_WITHIN.as_secs();
                    return Err(error.context(format!("no member moved within {seconds} s")));
                }
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    /// Moves any member to any node that has none of its group.
    fn move_one(&self, random: &mut fastrand::Rng) -> anyhow::Result<()> {
        let admin = Admin::connect(self.addresses.clone(), &self.protocol, self.secret.clone())?;
        let row = admin.row()?;
        let groups = self.nodes as u16;
        let group = random.u16(..groups);
        let members: Vec<RepositoryId> = row.members(group).collect();
        let homes = members.iter().map(|&member| row.home(member));
        let homes: Vec<NodeId> = homes.collect::<Result<_, _>>()?;
        let free = (0..self.nodes as u32).map(NodeId).filter(|node| !homes.contains(node));
        let free: Vec<_> = free.collect();
        let to = *free.get(random.usize(..free.len().max(1))).context("every node has one")?;
        let member = members[random.usize(..members.len())];
        admin.move_member(member, to).map(drop)
    }
}
