//! What goes into a loop's node and out of it: messages of other loops, what is asked of it seldom,
//! its log, and work that is left over.
//!
//! Whoever is in the loop's state does this, the loop's thread in its ticks and others as they
//! enter and leave.

use std::sync::atomic::Ordering;

use muesli_core::operations::SLICE;
use muesli_core::{Nanos, Protocol};

use super::state::{EmbeddedEngine, LoopState};

/// So many messages from one loop are taken in one tick.
const MESSAGES_PER_TICK: usize = 256;
/// With so many messages waiting for a full ring, no new work is taken on.
const BACKLOG_MAX: usize = 4096;

impl<P: Protocol> EmbeddedEngine<P> {
    /// A thread that is not the loop's is about to work with the node.
    pub fn begin_visit(&self) {
        self.begins.set(0);
        let inbox = self.loops.inbox();
        let now = self.read_clock();
        if inbox.signal.has_mail() {
            self.take_messages(now);
        } else {
            let inner = &mut *self.inner.borrow_mut();
            inner.machine.effects.now = now;
            self.take_attention(inner);
        }
    }

    /// A thread that is not the loop's has worked with the node: what came of that goes on its way,
    /// and the loop's thread is called for what is left.
    pub fn end_visit(&self) {
        let inner = &mut *self.inner.borrow_mut();
        if inner.has_log() {
            self.settle(inner);
        }
        if inner.outside.has_outgoing {
            self.publish(inner);
        }
        if inner.machine.has_left_over() {
            self.go_on(inner, self.read_clock());
        }
        let next = inner.next(inner.machine.effects.now).unwrap_or(Nanos(u64::MAX));
        let calls = next < inner.wakes_at
            || !self.spawned.borrow().is_empty()
            || inner.has_messages()
            || inner.backlog() > 0;
        if calls {
            inner.wakes_at = next.min(inner.wakes_at);
            self.loops.inbox().signal.call();
        }
    }

    /// Whether new work may be taken on.
    pub fn takes_work(&self) -> bool {
        let inner = self.inner.borrow();
        inner.backlog() < BACKLOG_MAX && !inner.is_congested()
    }

    /// Takes what other loops have sent; whether there was anything.
    pub fn take_messages(&self, now: Nanos) -> bool {
        let inner = &mut *self.inner.borrow_mut();
        inner.machine.effects.now = now;
        self.loops.inbox().signal.take_mail();
        self.take_attention(inner);
        let mut busy = false;
        for from in 0..inner.links.from.len() {
            for _ in 0..MESSAGES_PER_TICK {
                let link = inner.links.from[from].as_mut();
                let taken = link.and_then(|link| inner.delayed.take(from, link, now));
                let Some(envelope) = taken else { break };
                busy = true;
                inner.machine.node.deliver(envelope, &mut inner.machine.effects);
                inner.perform();
                // At once: else loops that answer each other take turns, and half the time wait.
                if inner.outside.has_outgoing {
                    self.publish(inner);
                }
            }
        }
        busy
    }

    /// Does what is asked of the loop seldom, if something is.
    pub fn take_attention(&self, inner: &mut LoopState<P>) {
        let inbox = self.loops.inbox();
        if inbox.signal.take_attention() {
            let catalog = inbox.catalog.lock().unwrap_or_else(|broken| broken.into_inner()).take();
            if let Some(catalog) = catalog {
                inner.machine.node.reconfigure(catalog);
            }
            inner.compact(inbox);
        }
    }

    /// At the end of a tick: settles with the log, hands over what goes to other loops, and does
    /// what is left over. Whether there was anything.
    pub fn end_tick(&self, began: Nanos) -> bool {
        let inner = &mut *self.inner.borrow_mut();
        let mut busy = inner.has_log() && self.settle(inner);
        busy |= self.publish(inner);
        busy | self.go_on(inner, began)
    }

    /// Settles with the log what was done in this tick; whether anything was let go that waited.
    fn settle(&self, inner: &mut LoopState<P>) -> bool {
        inner.settle().unwrap_or_else(|failure| {
            self.loops.fail(failure.to_string());
            false
        })
    }

    /// Does what is left over, until somebody has said something or it has taken long.
    fn go_on(&self, inner: &mut LoopState<P>, began: Nanos) -> bool {
        let mut any = false;
        while inner.go_on() {
            any = true;
            if inner.outside.has_outgoing {
                self.publish(inner);
            }
            if inner.has_messages() || self.read_clock() - began > SLICE {
                break;
            }
        }
        any
    }

    /// Hands over what goes to other loops, and wakes those that sleep; true if something went.
    fn publish(&self, inner: &mut LoopState<P>) -> bool {
        let (mut any, outside) = (false, &mut inner.outside);
        let sent_counts = &self.loops.inbox().sent;
        outside.has_outgoing = false;
        sent_counts.messages.store(outside.messages, Ordering::Relaxed);
        for (to, out) in outside.out.iter_mut().enumerate() {
            let Some(link) = &mut inner.links.to[to] else {
                assert!(out.is_empty(), "what a node says to itself does not leave it");
                continue;
            };
            let mut sent = false;
            while let Some(envelope) = out.pop_front() {
                if let Err(rtrb::PushError::Full(envelope)) = link.push(envelope) {
                    out.push_front(envelope);
                    break;
                }
                sent = true;
            }
            if sent {
                any = true;
                outside.packets += 1;
                self.loops.inboxes[to].signal.notify();
            }
        }
        sent_counts.packets.store(outside.packets, Ordering::Relaxed);
        any
    }
}

impl<P: Protocol> LoopState<P> {
    /// Whether other loops have sent something.
    pub fn has_messages(&self) -> bool {
        self.links.from.iter().flatten().any(|link| !link.is_empty())
    }

    /// How many messages wait for the fullest ring.
    pub fn backlog(&self) -> usize {
        self.outside.out.iter().map(|out| out.len()).max().unwrap_or(0)
    }
}
