//! What a process says to others and asks of its system: the costs of transactions that are shared
//! between them, and so are seen in sums only.

/// Counted by a driver from its start on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages sent to other nodes.
    pub messages: u64,
    /// Bytes written to connections, frames and what else drivers say to each other included.
    pub bytes: u64,
    /// Calls of the system that write to a connection.
    pub writes: u64,
    /// Calls that read from one.
    pub reads: u64,
    /// Calls of the poller: looks for something to do, with and without sleeping.
    pub polls: u64,
}

impl Traffic {
    /// What came after `before`, an earlier look at the same counts.
    pub fn since(self, before: Traffic) -> Traffic {
        Traffic {
            messages: self.messages.saturating_sub(before.messages),
            bytes: self.bytes.saturating_sub(before.bytes),
            writes: self.writes.saturating_sub(before.writes),
            reads: self.reads.saturating_sub(before.reads),
            polls: self.polls.saturating_sub(before.polls),
        }
    }
}
