//! What a node has sent: messages, and the packets that they left in.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use muesli_core::BatchCounts;

/// What a node, or several, have sent to others, over all lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeTraffic {
    /// Messages.
    pub messages: u64,
    /// Packets: all that left for one node of another machine at the end of one turn is one.
    pub packets: u64,
    /// Bytes of the messages.
    pub bytes: u64,
    /// Messages by the name of their kind.
    pub kinds: BTreeMap<&'static str, u64>,
    /// What became of those that were held back for batches.
    pub batches: BatchCounts,
}

impl NodeTraffic {
    /// What was sent after `before`, an earlier look at the same counts.
    pub fn since(&self, before: &NodeTraffic) -> NodeTraffic {
        let kinds = self.kinds.iter().map(|(name, count)| {
            let earlier = before.kinds.get(name).copied().unwrap_or(0);
            (*name, count.saturating_sub(earlier))
        });
        NodeTraffic {
            messages: self.messages.saturating_sub(before.messages),
            packets: self.packets.saturating_sub(before.packets),
            bytes: self.bytes.saturating_sub(before.bytes),
            kinds: kinds.filter(|(_, count)| *count > 0).collect(),
            batches: self.batches.since(before.batches),
        }
    }

    /// A message leaves, in a packet of its own or not: behind others of the turn, or to
    /// another core.
    pub(in crate::world) fn note(&mut self, name: &'static str, bytes: u64, in_packet: bool) {
        self.messages += 1;
        self.packets += u64::from(in_packet);
        self.bytes += bytes;
        *self.kinds.entry(name).or_default() += 1;
    }
}

impl AddAssign<&NodeTraffic> for NodeTraffic {
    fn add_assign(&mut self, more: &NodeTraffic) {
        self.messages += more.messages;
        self.packets += more.packets;
        self.bytes += more.bytes;
        self.batches += more.batches;
        for (name, count) in &more.kinds {
            *self.kinds.entry(name).or_default() += count;
        }
    }
}
