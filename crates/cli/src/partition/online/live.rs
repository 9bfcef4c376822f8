//! What the servers of a cluster say: samples, counters, and how much partitions hold. What they
//! say is believed as far as it can be, and no further: answers have bounds, and numbers of
//! partitions that there are not are left out.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context, bail};
use muesli::{Connect, Db, PlacedPartition, RepositoryId};
use muesli_cluster::lifecycle::visit::Visit;
use muesli_cluster::wire::control::Control;
use muesli_core::NodeId;
use muesli_core::recorder::accesses::{
    AccessCounts, AccessPage, AccessSample, LoadPage, PAGE_SAMPLES_MAX, SAMPLE_PARTITIONS_MAX,
    SAMPLES_KEPT_MAX,
};
use muesli_core::recorder::partition_sizes::{PartitionSize, SizeCursor, SizePage};
use muesli_placement::online::{LivePartition, LivePlacement, PeriodShares, ServerSamples, merged};

use super::options::LiveTerms;
use crate::options;
use crate::reach::{self, WITHIN};

/// A server that counts rows is asked for so many steps at most: 4,096 slots each.
const SIZE_STEPS_MAX: usize = 1 << 20;

/// A cluster whose partitions may move.
pub struct LiveCluster {
    addresses: Vec<String>,
    /// Servers that are reached elsewhere than the map says.
    dial: Vec<(u32, String)>,
    servers: Vec<(NodeId, String)>,
    db: Db,
}

/// What all servers had counted at a moment.
#[derive(Clone, Debug)]
pub struct LiveCounters {
    at: Instant,
    servers: BTreeMap<NodeId, (AccessCounts, BTreeMap<u16, u64>)>,
    /// One transaction in so many is sampled.
    one_in: BTreeMap<NodeId, u32>,
}

/// What was counted between two moments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LivePeriod {
    /// How many seconds that was.
    pub seconds: f64,
    /// Transactions, and how many of them were distributed.
    pub transactions: u64,
    pub distributed: u64,
    /// What was done at each partition.
    loads: BTreeMap<u16, u64>,
}

impl LivePeriod {
    /// Transactions a second.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.transactions as f64 / self.seconds } else { 0.0 }
    }

    /// The shares of the period, with partitions where they are.
    pub fn shares(&self, placement: &LivePlacement) -> PeriodShares {
        let fragments = placement.fragments(&placement.labels());
        PeriodShares::of(self.transactions, self.distributed, &fragments)
    }
}

impl LiveCounters {
    /// Looks whether all servers sample the same share of transactions: else those of some would
    /// count for more than others'.
    ///
    /// # Errors
    /// They do not.
    pub fn check_sampled(&self) -> anyhow::Result<()> {
        const HOW: &str = "`muesli admin sample 16` changes that at all servers";
        if let Some((node, _)) = self.one_in.iter().find(|(_, one_in)| **one_in == 0) {
            bail!("server {} samples no transactions (`sample_one_in` = 0); {HOW}", node.0);
        }
        let mut all = self.one_in.iter();
        let Some((first, share)) = all.next() else { return Ok(()) };
        if let Some((other, different)) = all.find(|(_, one_in)| *one_in != share) {
            bail!(
                "server {} samples one transaction in {share}, and server {} one in {different}; \
                 {HOW}",
                first.0,
                other.0
            );
        }
        Ok(())
    }

    /// What was counted since earlier counters. A server that has started since counts anew.
    pub fn since(&self, before: &LiveCounters) -> LivePeriod {
        let seconds = self.at.saturating_duration_since(before.at).as_secs_f64();
        let mut period = LivePeriod { seconds, ..LivePeriod::default() };
        let more = |now: u64, was: u64| if now >= was { now - was } else { now };
        for (node, (counts, loads)) in &self.servers {
            let nothing = Default::default();
            let (counts_before, loads_before) = before.servers.get(node).unwrap_or(&nothing);
            let transactions = more(counts.transactions, counts_before.transactions);
            let distributed = more(counts.distributed, counts_before.distributed);
            period.transactions = period.transactions.saturating_add(transactions);
            period.distributed = period.distributed.saturating_add(distributed);
            for (partition, load) in loads {
                let was = loads_before.get(partition).copied().unwrap_or(0);
                let all = period.loads.entry(*partition).or_default();
                *all = all.saturating_add(more(*load, was));
            }
        }
        period.distributed = period.distributed.min(period.transactions);
        period
    }
}

impl LiveCluster {
    /// Connects to the cluster that these addresses belong to.
    ///
    /// # Errors
    /// It does not answer, or wants a secret that is not this one.
    pub fn connect(addresses: &str, terms: &LiveTerms) -> anyhow::Result<LiveCluster> {
        let (addresses, protocol) = (reach::addresses(addresses), terms.protocol.clone());
        let secret = options::secret(terms.secret_file.as_deref())?;
        LiveCluster::with(Connect { addresses, protocol, secret, ..Connect::default() })
    }

    /// Connects as is said.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn with(connect: Connect) -> anyhow::Result<LiveCluster> {
        let (addresses, dial) = (connect.addresses.clone(), connect.dial.clone());
        let servers = servers_of(&addresses, &dial)?;
        Ok(LiveCluster { addresses, dial, servers, db: Db::connect_with(connect)? })
    }

    /// Asks which servers there are: some may have come, and others have left.
    ///
    /// # Errors
    /// None of those that were known answers.
    pub fn look_for_servers(&mut self) -> anyhow::Result<()> {
        let known = self.servers.iter().map(|(_, address)| address);
        let all: Vec<String> = known.chain(&self.addresses).cloned().collect();
        self.servers = servers_of(&all, &self.dial)?;
        Ok(())
    }

    /// How many servers there are, each loop counted.
    pub fn servers(&self) -> usize {
        self.servers.len()
    }

    /// Asks all servers, one after the other.
    fn of_all<T>(
        &self,
        ask: impl Fn(&mut Visit) -> anyhow::Result<T>,
    ) -> anyhow::Result<Vec<(NodeId, T)>> {
        let one = |(node, address): &(NodeId, String)| {
            let visit = Visit::begin(address, WITHIN);
            let answer = visit.map_err(anyhow::Error::from).and_then(|mut visit| ask(&mut visit));
            let answer = answer.with_context(|| format!("server {} at {address}", node.0))?;
            Ok((*node, answer))
        };
        self.servers.iter().map(one).collect()
    }

    /// What the servers have counted so far.
    ///
    /// # Errors
    /// One of them does not answer.
    pub fn counters(&self) -> anyhow::Result<LiveCounters> {
        let at = Instant::now();
        let all = self.of_all(loads)?;
        let one_in = all.iter().map(|(node, (one_in, ..))| (*node, *one_in)).collect();
        let servers = all.into_iter().map(|(node, (_, counts, loads))| (node, (counts, loads)));
        Ok(LiveCounters { at, servers: servers.collect(), one_in })
    }

    /// Which repositories hold which partition.
    ///
    /// # Errors
    /// The database does not answer, or its protocol moves no partitions.
    pub fn partitions(&self) -> anyhow::Result<Vec<PlacedPartition>> {
        Ok(muesli::blocking::block_on(self.db.partitions())?)
    }

    /// Where partitions are, what they hold, and what was done there in a period.
    ///
    /// # Errors
    /// A server does not answer, or several repositories hold a partition.
    pub fn placement(&self, period: &LivePeriod) -> anyhow::Result<LivePlacement> {
        let mut held: BTreeMap<u16, PartitionSize> = BTreeMap::new();
        for size in self.of_all(sizes)?.into_iter().flat_map(|(_, sizes)| sizes) {
            // Members of a group count the same rows.
            let known = held.entry(size.partition).or_insert(size);
            if size.rows > known.rows {
                *known = size;
            }
        }
        let placed = self.partitions()?;
        let mut partitions = Vec::new();
        for PlacedPartition { partition, holders, .. } in placed {
            let [RepositoryId(holder)] = holders[..] else {
                bail!(
                    "{} repositories hold partition {partition}: placements are planned where one \
                     holds each (`replicas` = 1)",
                    holders.len()
                );
            };
            let PartitionSize { rows, bytes, .. } =
                held.get(&partition).copied().unwrap_or_default();
            let fragments = period.loads.get(&partition).copied().unwrap_or(0);
            partitions.push(LivePartition { holder, rows, bytes, fragments });
        }
        // In a cluster of groups each group is a repository.
        let repositories = self.db.catalog_of_keys().repositories() as u16;
        let placement = LivePlacement { repositories, partitions };
        if !placement.is_sound() {
            bail!("the servers name repositories that there are not");
        }
        Ok(placement)
    }

    /// The samples of all servers.
    ///
    /// # Errors
    /// One of them does not answer.
    pub fn samples(&self, partitions: usize) -> anyhow::Result<Vec<AccessSample>> {
        let all = self.of_all(samples)?;
        Ok(merged(all.into_iter().map(|(_, samples)| samples).collect(), partitions))
    }

    /// Moves a partition.
    ///
    /// # Errors
    /// As [`Db::move_partition`].
    pub fn relocate(&self, partition: u16, from: u16, to: u16) -> Result<u64, muesli::Error> {
        let (from, to) = (Some(RepositoryId(from)), RepositoryId(to));
        muesli::blocking::block_on(self.db.move_partition(partition, from, to))
    }
}

fn unexpected(answer: &Control) -> anyhow::Error {
    anyhow::anyhow!("it answers with `{}`, which was not asked for", answer.kind())
}

/// The servers of the cluster of which one is at one of these addresses, with where they are
/// reached: those that have not left, by their numbers.
///
/// # Errors
/// None of them answers.
pub fn servers_of(
    addresses: &[String],
    dial: &[(u32, String)],
) -> anyhow::Result<Vec<(NodeId, String)>> {
    let map = reach::first(addresses)?.welcome.map;
    let mut servers: Vec<_> =
        map.servers.into_iter().filter(|(node, _)| !map.left.contains(node)).collect();
    servers.sort_unstable();
    for (node, address) in &mut servers {
        if let Some((_, elsewhere)) = dial.iter().find(|(it, _)| *it == node.0) {
            address.clone_from(elsewhere);
        }
    }
    Ok(servers)
}

type AskedLoads = (u32, AccessCounts, BTreeMap<u16, u64>);

fn loads(visit: &mut Visit) -> anyhow::Result<AskedLoads> {
    let (mut all, mut from) = (BTreeMap::new(), 0);
    loop {
        let answer = visit.ask(&Control::AskLoads(from))?;
        let Control::Loads(LoadPage { one_in, counts, loads, next, .. }) = answer else {
            return Err(unexpected(&answer));
        };
        all.extend(loads);
        match next {
            None => return Ok((one_in, counts, all)),
            Some(next) if next > from => from = next,
            Some(next) => bail!("it goes on with partition {next} behind {from}"),
        }
    }
}

fn samples(visit: &mut Visit) -> anyhow::Result<ServerSamples> {
    let (mut samples, mut from, mut has_dropped) = (Vec::new(), 0, false);
    loop {
        let answer = visit.ask(&Control::AskAccesses(from))?;
        let Control::Accesses(AccessPage { oldest, next, samples: more, .. }) = answer else {
            return Err(unexpected(&answer));
        };
        has_dropped |= oldest > 0;
        // A page that is not full is the last one, though more may have come meanwhile.
        let is_last = more.len() < PAGE_SAMPLES_MAX || next <= from;
        let fits = |it: &AccessSample| it.partitions.len() <= SAMPLE_PARTITIONS_MAX;
        samples.extend(more.into_iter().filter(fits));
        if is_last || samples.len() >= SAMPLES_KEPT_MAX {
            return Ok(ServerSamples { samples, has_dropped });
        }
        from = next;
    }
}

fn sizes(visit: &mut Visit) -> anyhow::Result<Vec<PartitionSize>> {
    let mut all: BTreeMap<u16, PartitionSize> = BTreeMap::new();
    let mut from = SizeCursor::default();
    for _ in 0..SIZE_STEPS_MAX {
        let answer = visit.ask(&Control::AskSizes(from))?;
        let Control::Sizes(SizePage { sizes, next }) = answer else {
            return Err(unexpected(&answer));
        };
        for size in sizes {
            let empty = PartitionSize { partition: size.partition, ..PartitionSize::default() };
            let known = all.entry(size.partition).or_insert(empty);
            known.rows = known.rows.saturating_add(size.rows);
            known.bytes = known.bytes.saturating_add(size.bytes);
        }
        match next {
            None => return Ok(all.into_values().collect()),
            Some(next) => from = next,
        }
    }
    bail!("its rows are not counted after {SIZE_STEPS_MAX} steps")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(at: Instant, transactions: u64, distributed: u64, load: u64) -> LiveCounters {
        let counts = AccessCounts { transactions, distributed };
        let servers = [(NodeId(3), (counts, BTreeMap::from([(7, load)])))];
        LiveCounters { at, servers: servers.into(), one_in: [(NodeId(3), 16)].into() }
    }

    #[test]
    fn all_servers_are_to_sample_the_same() {
        let mut all = counters(Instant::now(), 1, 0, 1);
        assert!(all.check_sampled().is_ok());
        all.one_in.insert(NodeId(4), 4);
        let error = all.check_sampled().unwrap_err().to_string();
        assert!(error.contains("server 3 samples one transaction in 16"), "{error}");
        all.one_in.insert(NodeId(4), 0);
        let error = all.check_sampled().unwrap_err().to_string();
        assert!(error.contains("server 4 samples no transactions"), "{error}");
    }

    #[test]
    fn what_was_counted_since_is_what_counts() {
        let begun = Instant::now();
        let then = begun + std::time::Duration::from_secs(2);
        let (before, after) = (counters(begun, 100, 50, 9), counters(then, 160, 70, 12));
        let period = after.since(&before);
        assert_eq!((period.transactions, period.distributed, period.rate()), (60, 20, 30.0));
        assert_eq!(period.loads, BTreeMap::from([(7, 3)]));
        // A server that has started again has counted what it says since then.
        let anew = counters(then, 40, 60, 2).since(&before);
        assert_eq!((anew.transactions, anew.distributed), (40, 10));
        assert_eq!(anew.loads, BTreeMap::from([(7, 2)]));
        let placement = LivePlacement {
            repositories: 2,
            partitions: vec![LivePartition { fragments: 4, ..LivePartition::default() }],
        };
        assert_eq!(period.shares(&placement).load, 2.0);
    }
}
