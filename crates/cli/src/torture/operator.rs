//! Changes of the placement while clients run: members of groups move to other nodes; servers join,
//! take members over, give them back and leave.
//!
//! Faults are in the way of some changes, which then fail or take long; what they leave half done
//! must harm nobody. When all faults are over, a change must come to its end.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use muesli_core::{NodeId, RepositoryId, Secret};

use super::plan::TortureKind;
use super::roster::Roster;
use crate::admin::change::Admin;
use crate::local::{ClusterPlan, LocalCluster};

/// The pause between two changes.
const PAUSE: Duration = Duration::from_millis(500);
/// When all faults are over, a change must succeed within this.
const CHANGES_WITHIN: Duration = Duration::from_secs(60);
/// A server that left must have ended within this, once it can hear of it.
const ENDS_WITHIN: Duration = Duration::from_secs(20);
/// What a server says that was taken off the list.
const LEFT_MESSAGE: &str = "was taken off its cluster's list";
/// So many servers may join in a round; their numbers are not used again. The last one joins when
/// all faults are over, and one of the first ones leaves.
pub const JOINS: usize = 4;
/// A server that joined takes over so many members.
const MEMBERS: usize = 2;

/// Whoever looks after the cluster of a round.
pub struct Operator<'a> {
    pub cluster: &'a LocalCluster,
    pub roster: &'a Roster,
    /// As the servers of the beginning were started, and how many they are.
    pub plan: &'a ClusterPlan,
    /// Where each server is reached, those included that may join.
    pub addresses: Vec<String>,
    pub secret: Option<Secret>,
    pub seed: u64,
    pub kinds: Vec<TortureKind>,
    pub guests: Mutex<Guests>,
}

/// The servers that join.
#[derive(Debug)]
pub struct Guests {
    /// Who has not come yet.
    waiting: Range<usize>,
    /// Who came last, and what is to be done next.
    at: Option<(usize, ServerStep)>,
}

impl Guests {
    /// Those behind so many servers.
    pub fn behind(nodes: usize) -> Guests {
        Guests { waiting: nodes..nodes + JOINS, at: None }
    }

    /// Who is to be looked after, and how; the last one comes only when it may.
    fn next(&mut self, may_last: bool) -> Option<(usize, ServerStep)> {
        if self.at.is_none() && (may_last || self.waiting.len() > 1) {
            self.at = self.waiting.next().map(|node| (node, ServerStep::Announce));
        }
        self.at
    }
}

/// What becomes of a server, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerStep {
    /// Its name is put on the list.
    Announce,
    /// It is started.
    Start,
    /// It takes over members: so many more.
    Settle(usize),
    /// It gives its members away.
    Drain,
    /// It leaves.
    Leave,
}

/// What became of the changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changed {
    pub tried: u64,
    pub done: u64,
    pub joined: u64,
    pub left: u64,
}

impl Changed {
    /// Both together.
    pub fn and(self, other: Changed) -> Changed {
        Changed {
            tried: self.tried + other.tried,
            done: self.done + other.done,
            joined: self.joined + other.joined,
            left: self.left + other.left,
        }
    }
}

impl Operator<'_> {
    /// Changes the placement until `stop` is set.
    ///
    /// # Errors
    /// A server that joined ended by itself.
    pub fn change_until(&self, stop: &AtomicBool) -> anyhow::Result<Changed> {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut changed = Changed::default();
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(PAUSE);
            changed.tried += 1;
            let kind = self.kinds[random.usize(..self.kinds.len())];
            let done = match kind {
                TortureKind::Join => self.go_on_with_guest(&mut random, &mut changed, false),
                _ => self.move_one(&mut random),
            };
            changed.done += u64::from(done.is_ok());
            self.look_after_guest()?;
        }
        Ok(changed)
    }

    /// Changes it once more when all faults are over.
    ///
    /// # Errors
    /// It did not succeed in time.
    pub fn change_at_last(&self) -> anyhow::Result<Changed> {
        let mut random = fastrand::Rng::with_seed(self.seed + 1);
        let mut changed = Changed::default();
        if self.kinds.contains(&TortureKind::Move) {
            self.at_last("no member moved", || self.move_one(&mut random))?;
        }
        if !self.kinds.contains(&TortureKind::Join) {
            return Ok(changed);
        }
        while self.guest().is_some() {
            self.at_last("a server that joined did not leave", || {
                self.go_on_with_guest(&mut random, &mut changed, false)
            })?;
        }
        // The last one stays, and one of the first ones leaves instead.
        while !matches!(self.guest(), Some((_, ServerStep::Settle(_)))) {
            self.at_last("no server joined", || {
                self.go_on_with_guest(&mut random, &mut changed, true)
            })?;
        }
        let leaves = (self.seed % self.plan.nodes as u64) as usize;
        let nothing_is_placed_there = || match self.admin()?.drain_one(leaves as u32)? {
            None => Ok(()),
            Some(_) => bail!("there are more members on server {leaves}"),
        };
        self.at_last("a server could not be drained", nothing_is_placed_there)?;
        self.at_last("a server did not leave", || self.leave(leaves))?;
        changed.left += 1;
        self.look_after_guest()?;
        Ok(changed)
    }

    /// Tries until it succeeds.
    fn at_last(
        &self,
        otherwise: &str,
        mut change: impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + CHANGES_WITHIN;
        loop {
            match change() {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > deadline => {
                    let seconds = CHANGES_WITHIN.as_secs();
                    return Err(error.context(format!("{otherwise} within {seconds} s")));
                }
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    fn admin(&self) -> anyhow::Result<Admin> {
        Admin::connect(self.addresses.clone(), &self.plan.protocol, self.secret.clone())
    }

    /// Moves any member to any node that has none of its group.
    fn move_one(&self, random: &mut fastrand::Rng) -> anyhow::Result<()> {
        let admin = self.admin()?;
        let row = admin.row()?;
        let group = random.u16(..self.plan.repositories as u16);
        let members: Vec<RepositoryId> = row.members(group).collect();
        let homes = members.iter().map(|&member| row.home(member));
        let homes: Vec<NodeId> = homes.collect::<Result<_, _>>()?;
        let nodes = self.roster.nodes().into_iter().map(|node| NodeId(node as u32));
        let free: Vec<_> = nodes.filter(|node| !homes.contains(node)).collect();
        let to = *free.get(random.usize(..free.len().max(1))).context("every server has one")?;
        let member = members[random.usize(..members.len())];
        admin.move_member(member, to).map(drop)
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    fn guest(&self) -> Option<(usize, ServerStep)> {
        self.guests().at
    }

    /// Does the next thing with the server that came last; where that has left, another one comes.
    fn go_on_with_guest(
        &self,
        random: &mut fastrand::Rng,
        changed: &mut Changed,
        may_last: bool,
    ) -> anyhow::Result<()> {
        let next = self.guests().next(may_last);
        let (node, step) = next.context("all have come")?;
        let next = self.step(node, step, random)?;
        changed.joined += u64::from(step == ServerStep::Start);
        changed.left += u64::from(step == ServerStep::Leave && next.is_none());
        self.guests().at = next.map(|next| (node, next));
        Ok(())
    }

    /// Does one thing with a server; what is next.
    fn step(
        &self,
        node: usize,
        step: ServerStep,
        random: &mut fastrand::Rng,
    ) -> anyhow::Result<Option<ServerStep>> {
        let cluster = self.cluster;
        Ok(match step {
            ServerStep::Announce => {
                let admin = self.admin()?;
                let known = |(it, _): &(NodeId, String)| it.0 as usize == node;
                let row = admin.row()?;
                // Who was asked before may have done it without an answer.
                if !row.joined.iter().any(known) {
                    admin.join(node as u32, &self.addresses[node])?;
                }
                Some(ServerStep::Start)
            }
            ServerStep::Start => {
                if cluster.process(node).is_none() {
                    cluster.write_config(node, self.plan)?;
                    cluster.start(node)?;
                    self.roster.add(node);
                }
                cluster.wait_until_ready(node)?;
                Some(ServerStep::Settle(MEMBERS))
            }
            ServerStep::Settle(0) => Some(ServerStep::Drain),
            ServerStep::Settle(more) => {
                self.take_over(node, random)?;
                Some(ServerStep::Settle(more - 1))
            }
            ServerStep::Drain => match self.admin()?.drain_one(node as u32)? {
                Some(_) => Some(ServerStep::Drain),
                None => Some(ServerStep::Leave),
            },
            // A member may have moved there since the last one was taken away.
            ServerStep::Leave if self.holds_members(node)? => Some(ServerStep::Drain),
            ServerStep::Leave => self.leave(node).map(|()| None)?,
        })
    }

    /// Any member moves to a server, of whose group none lives there.
    fn take_over(&self, node: usize, random: &mut fastrand::Rng) -> anyhow::Result<()> {
        let admin = self.admin()?;
        let row = admin.row()?;
        let to = NodeId(node as u32);
        let groups = (0..self.plan.repositories as u16)
            .filter(|&group| !row.members(group).any(|member| row.home(member) == Ok(to)));
        let members: Vec<_> = groups.flat_map(|group| row.members(group)).collect();
        let member = members.get(random.usize(..members.len().max(1))).context("it has all")?;
        admin.move_member(*member, to).map(drop)
    }

    /// Whether members live on a server.
    fn holds_members(&self, node: usize) -> anyhow::Result<bool> {
        let row = self.admin()?.row()?;
        let mut members = (0..self.plan.repositories as u16).flat_map(|group| row.members(group));
        Ok(members.any(|member| row.home(member) == Ok(NodeId(node as u32))))
    }

    /// A server leaves that holds nothing any more, and ends when it hears of it.
    fn leave(&self, node: usize) -> anyhow::Result<()> {
        let admin = self.admin()?;
        let has_left = admin.row()?.left.contains(&NodeId(node as u32));
        if !has_left {
            // It ends as soon as it hears of it.
            self.roster.remove(node);
            if let Err(error) = admin.leave(node as u32) {
                // That may have been done without an answer.
                let row = admin.row().inspect_err(|_| self.roster.add(node))?;
                if !row.left.contains(&NodeId(node as u32)) {
                    self.roster.add(node);
                    return Err(error);
                }
            }
        }
        self.roster.remove(node);
        let deadline = Instant::now() + ENDS_WITHIN;
        while self.cluster.process(node).is_some() {
            if Instant::now() > deadline {
                bail!("server {node} has left and runs still: {}", self.cluster.last_output(node));
            }
            std::thread::sleep(PAUSE / 10);
        }
        let printed = self.cluster.last_output(node);
        if !printed.contains(LEFT_MESSAGE) {
            bail!("server {node} ended as it was to leave, but said: {printed}");
        }
        Ok(())
    }

    /// A server that joined does not end before it is to leave.
    fn look_after_guest(&self) -> anyhow::Result<()> {
        let Some((node, ServerStep::Settle(_) | ServerStep::Drain)) = self.guest() else {
            return Ok(());
        };
        if self.cluster.process(node).is_none() {
            bail!("server {node} joined, and ended by itself: {}", self.cluster.last_output(node));
        }
        Ok(())
    }
}
