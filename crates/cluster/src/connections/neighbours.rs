//! The other loops of a process, as far as they are there: whom a pipe leads to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use muesli_core::NodeId;

use crate::mailbox::entry_point::EntryPoint;
use crate::mailbox::pipe::PipeEnd;

/// The loops of one process, which know each other by it.
#[derive(Clone, Default)]
pub(crate) struct Neighbours(Arc<Mutex<BTreeMap<NodeId, Arc<EntryPoint>>>>);

/// A loop is there as long as this is; then it is told to stop, if it was not, and pipes that it
/// has not opened are closed.
pub(crate) struct Presence {
    neighbours: Neighbours,
    node: NodeId,
    entry_point: Arc<EntryPoint>,
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.entry_point.stop();
        self.neighbours.all().remove(&self.node);
        // Nobody finds it any more, so these are the last ones.
        drop(self.entry_point.take_pipes());
    }
}

impl Neighbours {
    /// A loop of the process is there.
    pub fn join(&self, node: NodeId, entry_point: Arc<EntryPoint>) -> Presence {
        self.all().insert(node, Arc::clone(&entry_point));
        Presence { neighbours: self.clone(), node, entry_point }
    }

    /// A pipe to another loop, which is given its end; `None`: it is of another process, or not
    /// there yet, or no more.
    pub fn pipe(&self, from: &EntryPoint, to: NodeId) -> Option<PipeEnd> {
        let all = self.all();
        let there = all.get(&to).filter(|there| !there.is_stopping())?;
        let (ours, theirs) = PipeEnd::pair(&from.signal, &there.signal);
        there.hand_over(theirs);
        Some(ours)
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<NodeId, Arc<EntryPoint>>> {
        self.0.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use crate::mailbox::signal::Signal;

    #[test]
    fn a_pipe_leads_to_a_loop_of_the_process_while_it_runs() {
        let entry_point = || {
            let poll = mio::Poll::new().unwrap();
            let waker = mio::Waker::new(poll.registry(), mio::Token(0)).unwrap();
            Arc::new(EntryPoint::new(Arc::new(Signal::new(waker))))
        };
        let (here, there, neighbours) = (entry_point(), entry_point(), Neighbours::default());
        assert!(neighbours.pipe(&here, NodeId(1)).is_none(), "it is not there yet");
        let presence = neighbours.join(NodeId(1), there.clone());
        let mut ours = neighbours.pipe(&here, NodeId(1)).unwrap();
        ours.write_all(b"hello").unwrap();
        let mut theirs = there.take_pipes().pop().expect("it is given its end");
        assert!(there.signal.is_raised() && theirs.take_readable());
        let mut bytes = [0; 9];
        assert_eq!(theirs.read(&mut bytes).unwrap(), 5);
        assert!(neighbours.pipe(&here, NodeId(2)).is_none(), "that is another process");
        let mut unopened = neighbours.pipe(&here, NodeId(1)).unwrap();
        there.stop();
        assert!(neighbours.pipe(&here, NodeId(1)).is_none(), "it is stopping");
        drop(presence);
        assert_eq!(unopened.read(&mut bytes).unwrap(), 0, "it has ended");
    }
}
