//! What goes into a loop's node and out of it: messages of other loops, what is asked of it seldom,
//! its log, and work that is left over.
//!
//! Whoever is in the loop's state does this, the loop's thread in its ticks and others as they
//! enter and leave.

use std::sync::atomic::{Ordering, fence};

use muesli_core::operations::SLICE;
use muesli_core::{Nanos, Protocol};

use super::state::{EmbeddedEngine, LoopState, Mailboxes};

/// So many messages from one loop are taken in one tick.
const MESSAGES_PER_TICK: usize = 256;
/// A thread goes to other loops so often for one thing, before it leaves the rest to their threads.
const EXCHANGES_MOST: u32 = 16;
/// How long a visit takes is looked at once in so many.
const VISITS_BETWEEN_LOOKS: u32 = 8;
/// With so many messages waiting for a full ring, no new work is taken on.
const BACKLOG_MAX: usize = 4096;

impl<P: Protocol> EmbeddedEngine<P> {
    /// A thread that is not the loop's is about to work with the node.
    pub fn begin_visit(&self) {
        self.begins.set(0);
        self.in_visit.set(true);
        let inbox = self.loops.inbox();
        let now = self.read_clock();
        self.visit_began.set(now);
        if inbox.signal.has_mail() {
            self.take_messages(now, true);
        } else {
            let inner = &mut *self.inner.borrow_mut();
            inner.machine.effects.now = now;
            self.take_attention(inner);
        }
    }

    /// A thread that is not the loop's has worked with the node: what came of that goes on its way,
    /// and the loop's thread is called for what is left.
    pub fn end_visit(&self) {
        let has_outgoing = self.inner.borrow().outside.has_outgoing;
        if has_outgoing && self.exchanges_now() {
            self.exchange();
        }
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
        let calls =
            next < inner.wakes_at || !self.spawned.borrow().is_empty() || inner.backlog() > 0;
        if calls {
            inner.wakes_at = next.min(inner.wakes_at);
            self.loops.inbox().signal.call();
        }
        if inner.has_messages() {
            self.loops.inbox().signal.mark_mail(); // Who leaves takes it, or calls the thread.
        }
    }

    /// Whether new work may be taken on.
    pub fn takes_work(&self) -> bool {
        let inner = self.inner.borrow();
        inner.backlog() < BACKLOG_MAX && !inner.is_congested()
    }

    /// Does at other loops what was said to them, where nobody is in their state, and takes what
    /// they answer: then nobody is woken for that, and nobody waits.
    ///
    /// A thread is in two states at once meanwhile. It waits for neither, so that two that want to
    /// each other's both go on without. For threads that block only: a loop's own thread and
    /// another one do what each has beside each other.
    #[cold]
    pub fn exchange(&self) {
        // Who runs what a panic leaves is not to meet another one.
        if std::thread::panicking() {
            return;
        }
        let began = self.read_clock();
        for _ in 0..EXCHANGES_MOST {
            if !self.visit_others(began) {
                break;
            }
            let now = self.read_clock();
            self.take_messages(now, false);
            if !self.inner.borrow().outside.has_outgoing || now - began > SLICE {
                break;
            }
        }
    }

    /// Whether what is said to other loops may be done there by this thread.
    #[inline]
    pub fn exchanges_now(&self) -> bool {
        self.exchanges && self.in_visit.get() && self.entered_from.get().is_none()
    }

    /// Whether it is looked at how long a thread has been in the state: to do that each time would
    /// cost a tenth of what two threads do.
    #[inline]
    pub fn looks_at_time(&self) -> bool {
        let visits = self.visits.get().wrapping_add(1);
        self.visits.set(visits);
        visits.is_multiple_of(VISITS_BETWEEN_LOOKS)
    }

    /// Whether the thread that is in the state has been there for so long that others come first.
    pub fn has_visited_for_long(&self) -> bool {
        self.read_clock() - self.visit_began.get() > SLICE
    }

    /// Visits the loops to which something was said; whether there was one to be visited.
    fn visit_others(&self, began: Nanos) -> bool {
        let mut any = false;
        for (to, inbox) in self.loops.inboxes.iter().enumerate() {
            let has_some = !self.inner.borrow().outside.out[to].is_empty();
            // What takes long at one loop is done beside that at the others, by their threads.
            if !has_some || !inbox.access.may_be_free() || self.read_clock() - began > SLICE {
                continue;
            }
            let sent = hand_over(&mut self.inner.borrow_mut(), to);
            if sent && inbox.access.visit_from(self.loops.at) {
                any = true;
            } else {
                self.notify(to);
            }
        }
        let outside = &mut self.inner.borrow_mut().outside;
        outside.has_outgoing = outside.out.iter().any(|out| !out.is_empty());
        self.count_sent(outside);
        any
    }

    /// What was sent to this loop is done, by a thread that is in the state of loop `from` as well.
    pub fn visit_from(&self, from: usize) {
        self.entered_from.set(Some(from));
        self.begins.set(0);
        self.take_messages(self.read_clock(), true);
        self.end_visit();
        self.entered_from.set(None);
    }

    /// Another loop has something to take: it is woken, unless somebody is in its state, who looks
    /// for that.
    fn notify(&self, to: usize) {
        let signal = &self.loops.inboxes[to].signal;
        signal.mark_mail();
        fence(Ordering::SeqCst);
        if self.entered_from.get() != Some(to) && self.loops.inboxes[to].access.may_be_free() {
            signal.wake_after_fence();
        }
    }

    fn count_sent(&self, outside: &Mailboxes<P::Message>) {
        let sent = &self.loops.inbox().sent;
        sent.messages.store(outside.messages, Ordering::Relaxed);
        sent.packets.store(outside.packets, Ordering::Relaxed);
    }

    /// Takes what other loops have sent, and hands over what comes of it if it `publishes`; whether
    /// there was anything.
    pub fn take_messages(&self, now: Nanos, publishes: bool) -> bool {
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
                if publishes && inner.outside.has_outgoing {
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
        let mut any = false;
        inner.outside.has_outgoing = false;
        for to in 0..inner.outside.out.len() {
            if !inner.outside.out[to].is_empty() && hand_over(inner, to) {
                any = true;
                self.notify(to);
            }
        }
        self.count_sent(&inner.outside);
        any
    }
}

/// Puts what goes to a loop into the ring, as far as there is place; whether something went.
fn hand_over<P: Protocol>(inner: &mut LoopState<P>, to: usize) -> bool {
    let LoopState { outside, links, .. } = inner;
    let link = links.to[to].as_mut().expect("what a node says to itself does not leave it");
    let (mut sent, out) = (false, &mut outside.out[to]);
    while let Some(envelope) = out.pop_front() {
        if let Err(rtrb::PushError::Full(envelope)) = link.push(envelope) {
            out.push_front(envelope);
            break;
        }
        sent = true;
    }
    outside.packets += u64::from(sent);
    sent
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
