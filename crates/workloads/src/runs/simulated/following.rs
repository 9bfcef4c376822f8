//! A run whose partitions follow what clients do: period after period samples are read, moves are
//! planned and made, and what did not help is taken back, while the clients go on.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use muesli::{Db, Error, PlacedPartition, RepositoryId};
use muesli_core::NodeId;
use muesli_core::recorder::accesses::{AccessCounts, AccessSample};
use muesli_placement::online::{
    FollowDecision, LivePartition, LivePlacement, MoveTerms, PeriodShares, PlacementFollower,
    PlannedMove, ServerSamples, merged, plan_moves,
};
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::world::{ClientBody, World};

/// What becomes of samples before anything is planned by them, to see that wrong ones do no harm;
/// it is given the number of the period, and how many partitions there are.
pub type BendsSamples = fn(&mut Vec<AccessSample>, u64, u16);

/// How partitions follow the load.
#[derive(Clone, Copy, Debug)]
pub struct Following {
    /// How long a period is.
    pub every: Span,
    /// One transaction in so many is sampled.
    pub one_in: u32,
    /// So many samples are kept by each node.
    pub kept: usize,
    /// What moves are judged by.
    pub terms: MoveTerms,
    /// What becomes of samples before they are used.
    pub bends: Option<BendsSamples>,
}

/// What came of a period.
#[derive(Clone, Debug)]
pub struct FollowedPeriod {
    /// What was measured.
    pub measured: PeriodShares,
    /// What was decided.
    pub decision: FollowDecision,
    /// How many partitions were moved.
    pub moved: usize,
}

/// How long an answer is waited for.
const PATIENCE: Span = Span::from_millis(400);
/// How often it is looked whether there is one.
const LOOK_EVERY: Span = Span::from_micros(200);

/// Lets the world run until a moment; partitions follow the load, if there is how.
pub(super) fn run_until(
    world: &mut World,
    db: &Db,
    nodes: usize,
    following: Option<&Following>,
    until: VirtualTime,
) -> Vec<FollowedPeriod> {
    let Some(following) = following else {
        world.run_until(until);
        return Vec::new();
    };
    world.sample_accesses(following.one_in, following.kept);
    let mut run = FollowingRun {
        world,
        db,
        nodes: (0..nodes as u32).map(NodeId).collect(),
        following,
        follower: PlacementFollower::default(),
        counted: CountedAccesses::default(),
        until,
    };
    let mut all = Vec::new();
    while run.world.now() < until {
        let next = run.world.now() + following.every;
        run.world.run_until(next.min(until));
        all.extend(run.period(all.len() as u64));
    }
    all
}

/// What nodes have counted so far, all together.
#[derive(Clone, Debug, Default)]
struct CountedAccesses {
    counts: AccessCounts,
    loads: BTreeMap<u16, u64>,
}

struct FollowingRun<'a> {
    world: &'a mut World,
    db: &'a Db,
    nodes: Vec<NodeId>,
    following: &'a Following,
    follower: PlacementFollower,
    counted: CountedAccesses,
    until: VirtualTime,
}

impl FollowingRun<'_> {
    /// What came of a period; none where it is not known where partitions are.
    fn period(&mut self, number: u64) -> Option<FollowedPeriod> {
        let holders = self.ask(|db| async move { db.partitions().await })?.ok()?;
        let (transactions, distributed, placement) = self.count(&holders);
        let labels = placement.labels();
        let fragments = placement.fragments(&labels);
        let measured = PeriodShares::of(transactions, distributed, &fragments);
        let mut samples = merged(self.samples(), placement.partitions.len());
        if let Some(bend) = self.following.bends {
            bend(&mut samples, number, placement.partitions.len() as u16);
        }
        let seconds = self.following.every.as_nanos() as f64 / 1e9;
        let rate = transactions as f64 / seconds;
        let plan = plan_moves(&placement, &samples, (seconds, rate), &self.following.terms);
        let decision = self.follower.decide(measured, &plan);
        let moved = match &decision {
            FollowDecision::Apply { moves } => {
                let moved = self.relocate(moves);
                self.follower.note_applied(moved.clone());
                moved.len()
            }
            FollowDecision::Undo { moves, .. } => {
                let moved = self.relocate(moves);
                let is_there = |it: &&PlannedMove| {
                    let holder = placement.partitions[usize::from(it.partition)].holder;
                    holder == it.from && moved.iter().all(|made| made.partition != it.partition)
                };
                let settled = moves.iter().filter(|it| !is_there(it)).map(|it| it.partition);
                self.follower.note_undone(&settled.collect::<Vec<_>>());
                moved.len()
            }
            _ => 0,
        };
        Some(FollowedPeriod { measured, decision, moved })
    }

    fn samples(&self) -> Vec<ServerSamples> {
        let of = |node: &NodeId| {
            let (sampler, mut samples, mut from) = (self.world.accesses(*node), Vec::new(), 0);
            loop {
                let page = sampler.page(from);
                if page.samples.is_empty() {
                    return ServerSamples { samples, has_dropped: page.oldest > 0 };
                }
                samples.extend(page.samples);
                from = page.next;
            }
        };
        self.nodes.iter().map(of).collect()
    }

    /// What was done since the last period, and where. A node that has crashed begins to count
    /// anew.
    fn count(&mut self, holders: &[PlacedPartition]) -> (u64, u64, LivePlacement) {
        let (mut now, mut sizes) = (CountedAccesses::default(), BTreeMap::new());
        for node in &self.nodes {
            let (sampler, mut next) = (self.world.accesses(*node), Some(0));
            now.counts.transactions += sampler.loads(0, 0).counts.transactions;
            now.counts.distributed += sampler.loads(0, 0).counts.distributed;
            while let Some(from) = next {
                let page = sampler.loads(from, 0);
                page.loads.iter().for_each(|(it, load)| *now.loads.entry(*it).or_default() += load);
                next = page.next;
            }
            let held = self.world.partition_sizes(*node);
            sizes.extend(held.into_iter().map(|it| (it.partition, it)));
        }
        let before = std::mem::replace(&mut self.counted, now.clone());
        let of = |loads: &BTreeMap<u16, u64>, at: u16| loads.get(&at).copied().unwrap_or(0);
        let partition = |placed: &PlacedPartition| {
            let at = placed.partition;
            let size = sizes.get(&at).copied().unwrap_or_default();
            LivePartition {
                holder: placed.holders.first().map_or(0, |holder| holder.0),
                rows: size.rows,
                bytes: size.bytes,
                fragments: of(&now.loads, at).saturating_sub(of(&before.loads, at)),
            }
        };
        let partitions = holders.iter().map(partition).collect();
        let repositories = self.db.catalog_of_keys().repositories() as u16;
        let since = |now: u64, before: u64| now.saturating_sub(before);
        (
            since(now.counts.transactions, before.counts.transactions),
            since(now.counts.distributed, before.counts.distributed),
            LivePlacement { repositories, partitions },
        )
    }

    /// Makes moves one after the other, up to one that fails; those that were made.
    fn relocate(&mut self, moves: &[PlannedMove]) -> Vec<PlannedMove> {
        let mut made = Vec::new();
        for planned in moves {
            let (partition, from) = (planned.partition, Some(RepositoryId(planned.from)));
            let to = RepositoryId(planned.to);
            let done =
                self.ask(move |db| async move { db.move_partition(partition, from, to).await });
            if !matches!(done, Some(Ok(_))) {
                break;
            }
            made.push(*planned);
        }
        made
    }

    /// Asks the database something, by a client of its own; none where there is no answer in time.
    fn ask<T: Clone + 'static, F: Future<Output = Result<T, Error>> + 'static>(
        &mut self,
        question: impl Fn(Db) -> F + 'static,
    ) -> Option<Result<T, Error>> {
        let answer: Rc<RefCell<Option<Result<T, Error>>>> = Rc::default();
        let (db, given, question) = (self.db.clone(), answer.clone(), Rc::new(question));
        let body: ClientBody = Rc::new(move |_| {
            let (db, given, question) = (db.independent(), given.clone(), question.clone());
            Box::pin(async move {
                // A node that restarts begins its clients anew.
                if given.borrow().is_none() {
                    let found = question(db).await;
                    *given.borrow_mut() = Some(found);
                }
            })
        });
        self.world.add_client(self.nodes[0], body);
        let limit = (self.world.now() + PATIENCE).min(self.until);
        while answer.borrow().is_none() && self.world.now() < limit {
            self.world.run_until((self.world.now() + LOOK_EVERY).min(limit));
        }
        answer.borrow().clone()
    }
}
