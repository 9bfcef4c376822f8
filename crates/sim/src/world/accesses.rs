//! What servers sample and count of the partitions that transactions touch, as their drivers would
//! answer it to those who decide where partitions are to be.

use muesli_core::NodeId;
use muesli_core::recorder::accesses::AccessSampler;
use muesli_core::recorder::partition_sizes::{PartitionSize, SizeCursor};

use super::World;

impl World {
    /// Has all nodes keep one transaction in so many from now on, and so many at most. A node that
    /// crashes begins with none.
    pub fn sample_accesses(&mut self, one_in: u32, kept: usize) {
        for engine in &self.engines {
            let sampler = Box::new(AccessSampler::new(one_in, kept));
            engine.host.borrow_mut().environment_mut().accesses = Some(sampler);
        }
    }

    /// What a node keeps and has counted in this life.
    pub fn accesses(&self, node: NodeId) -> AccessSampler {
        let host = self.engines[node.0 as usize].host.borrow();
        host.environment().accesses.as_deref().cloned().unwrap_or_default()
    }

    /// How much the partitions of a node hold; none while it is down.
    pub fn partition_sizes(&self, node: NodeId) -> Vec<PartitionSize> {
        let host = self.engines[node.0 as usize].host.borrow();
        let (mut all, mut next) = (Vec::new(), Some(SizeCursor::default()));
        while let (Some(machine), Some(from)) = (host.machine(), next) {
            let page = machine.partition_sizes(from);
            all.extend(page.sizes);
            next = page.next;
        }
        all
    }
}
