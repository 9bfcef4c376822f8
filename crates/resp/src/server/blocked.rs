//! Clients that wait until a key has something for them, by order of arrival.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::mem::take;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::client::RespClient;
use crate::keyspace::header::ValueKind;
use crate::keyspace::scope::Ready;

/// A client that waits for keys.
pub(super) struct Waiter {
    pub client: Rc<RespClient>,
    /// It waits for lists or for sorted sets.
    kind: ValueKind,
    keys: Vec<Ready>,
    /// One of its keys may have something.
    pub ready: Cell<bool>,
    /// It looks whether that is so, after it was ready.
    looks: Cell<bool>,
}

impl Waiter {
    /// Whether something may be for it: who has come after it, and who pushes, waits until it has
    /// looked.
    fn is_pending(&self) -> bool {
        self.ready.get() || self.looks.get()
    }
}

/// Who waits for a key.
#[derive(Default)]
struct KeyWaiters {
    for_lists: VecDeque<Rc<Waiter>>,
    for_sorted_sets: VecDeque<Rc<Waiter>>,
}

impl KeyWaiters {
    fn of(&self, kind: ValueKind) -> &VecDeque<Rc<Waiter>> {
        if kind == ValueKind::Sorted { &self.for_sorted_sets } else { &self.for_lists }
    }

    fn of_mut(&mut self, kind: ValueKind) -> &mut VecDeque<Rc<Waiter>> {
        if kind == ValueKind::Sorted { &mut self.for_sorted_sets } else { &mut self.for_lists }
    }

    /// Who has waited for the longest, for a list and for a sorted set.
    fn firsts(&self) -> impl Iterator<Item = &Rc<Waiter>> {
        self.for_lists.front().into_iter().chain(self.for_sorted_sets.front())
    }
}

/// Who waits for which key.
#[derive(Default)]
pub(super) struct WaitingClients {
    by_key: RefCell<HashMap<Ready, KeyWaiters>>,
    count: Cell<usize>,
    /// Those who wait until waiters have looked.
    behind: RefCell<Vec<Waker>>,
}

impl WaitingClients {
    /// How many clients wait.
    pub fn count(&self) -> usize {
        self.count.get()
    }

    /// A client begins to wait, behind those that wait for the same keys.
    pub fn enter(&self, client: &Rc<RespClient>, kind: ValueKind, keys: Vec<Ready>) -> Rc<Waiter> {
        let (ready, looks) = (Cell::new(false), Cell::new(false));
        let waiter = Rc::new(Waiter { client: client.clone(), kind, keys, ready, looks });
        for key in &waiter.keys {
            let by_key = &mut *self.by_key.borrow_mut();
            by_key.entry(key.clone()).or_default().of_mut(kind).push_back(waiter.clone());
        }
        self.count.set(self.count.get() + 1);
        waiter
    }

    /// A client waits no more. Where it has taken something, or something may have been for it that
    /// it has not taken, the next one looks.
    pub fn leave(&self, waiter: &Rc<Waiter>, passes_on: bool) {
        self.count.set(self.count.get() - 1);
        for key in &waiter.keys {
            let by_key = &mut *self.by_key.borrow_mut();
            let Some(waiters) = by_key.get_mut(key) else { continue };
            waiters.of_mut(waiter.kind).retain(|it| !Rc::ptr_eq(it, waiter));
            if waiters.firsts().next().is_none() {
                by_key.remove(key);
            }
        }
        if passes_on || waiter.is_pending() {
            waiter.keys.iter().for_each(|key| self.is_ready(key));
        }
        self.wake_behind();
    }

    /// A client has ended in the midst of a command.
    pub fn forget(&self, client: &Rc<RespClient>) {
        let found = {
            let by_key = self.by_key.borrow();
            let mut all =
                by_key.values().flat_map(|it| it.for_lists.iter().chain(&it.for_sorted_sets));
            all.find(|it| Rc::ptr_eq(&it.client, client)).cloned()
        };
        if let Some(waiter) = found {
            self.leave(&waiter, true);
        }
    }

    /// A key may have something: who has waited for it the longest looks.
    pub fn is_ready(&self, key: &Ready) {
        if let Some(waiters) = self.by_key.borrow().get(key) {
            waiters.firsts().for_each(make_ready);
        }
    }

    /// Any key may have something; those that somebody waits for.
    pub fn all_are_ready(&self) -> Vec<Ready> {
        let by_key = self.by_key.borrow();
        by_key.values().flat_map(KeyWaiters::firsts).for_each(make_ready);
        by_key.keys().cloned().collect()
    }

    /// Whether a waiter has waited the longest for one of its keys.
    pub fn is_first(&self, waiter: &Rc<Waiter>) -> bool {
        self.firsts_of(waiter).iter().any(|it| Rc::ptr_eq(it, waiter))
    }

    /// Whether others have waited longer than a waiter for each of its keys, and it has some.
    pub fn is_behind(&self, waiter: &Rc<Waiter>) -> bool {
        !waiter.keys.is_empty() && !self.is_first(waiter)
    }

    /// Those who have waited the longest for the keys of a waiter, as it does.
    fn firsts_of(&self, waiter: &Waiter) -> Vec<Rc<Waiter>> {
        let by_key = self.by_key.borrow();
        let waiters = waiter.keys.iter().filter_map(|key| by_key.get(key));
        waiters.filter_map(|it| it.of(waiter.kind).front()).cloned().collect()
    }

    /// Has those look who have waited longer for keys of this waiter: something may have come that
    /// this server does not know of.
    pub fn let_others_look(&self, waiter: &Rc<Waiter>) {
        self.firsts_of(waiter).iter().filter(|it| !Rc::ptr_eq(it, waiter)).for_each(make_ready);
    }

    /// A waiter looks, once those have looked for whom something may be and who have waited longer;
    /// whether its client is still there.
    pub async fn look(&self, waiter: &Rc<Waiter>) -> bool {
        poll_fn(|cx| {
            if waiter.client.is_closing() {
                return Poll::Ready(false);
            }
            let firsts = self.firsts_of(waiter);
            if firsts.iter().any(|it| !Rc::ptr_eq(it, waiter) && it.is_pending()) {
                waiter.client.wait(cx);
                return self.stay_behind(cx);
            }
            waiter.looks.set(waiter.ready.replace(false));
            Poll::Ready(true)
        })
        .await
    }

    /// A waiter has looked.
    pub fn has_looked(&self, waiter: &Waiter) {
        waiter.looks.set(false);
        self.wake_behind();
    }

    /// Waits until those have looked for whom something may be at one of these keys.
    pub async fn until_looked(&self, keys: &[Ready]) {
        poll_fn(|cx| {
            let is_pending = |key: &Ready| {
                let by_key = self.by_key.borrow();
                by_key.get(key).is_some_and(|it| it.firsts().any(|it| it.is_pending()))
            };
            if keys.iter().any(is_pending) { self.stay_behind(cx) } else { Poll::Ready(()) }
        })
        .await;
    }

    fn stay_behind<T>(&self, cx: &Context<'_>) -> Poll<T> {
        self.behind.borrow_mut().push(cx.waker().clone());
        Poll::Pending
    }

    fn wake_behind(&self) {
        take(&mut *self.behind.borrow_mut()).into_iter().for_each(Waker::wake);
    }
}

fn make_ready(waiter: &Rc<Waiter>) {
    waiter.ready.set(true);
    waiter.client.wake();
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;

    use super::*;
    use crate::protocol::limits::RequestLimits;

    fn client(id: u64) -> Rc<RespClient> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = mio::net::TcpStream::from_std(socket);
        Rc::new(RespClient::new(id, socket, RequestLimits::default()))
    }

    fn key(name: &str) -> Ready {
        (0, name.as_bytes().to_vec())
    }

    fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn who_comes_looks_after_those_for_whom_something_may_be() {
        let (all, kind) = (WaitingClients::default(), ValueKind::List);
        let first = all.enter(&client(1), kind, vec![key("a")]);
        assert_eq!(poll(all.look(&first)), Poll::Ready(true));
        all.has_looked(&first);
        all.is_ready(&key("a"));
        let second = all.enter(&client(2), kind, vec![key("b"), key("a")]);
        let other = all.enter(&client(3), ValueKind::Sorted, vec![key("a")]);
        for looks in [false, true] {
            assert!(!looks || poll(all.look(&first)) == Poll::Ready(true));
            assert_eq!(poll(all.look(&second)), Poll::Pending);
            assert_eq!(poll(all.until_looked(&[key("b"), key("a")])), Poll::Pending);
            assert_eq!(poll(all.until_looked(&[key("b")])), Poll::Ready(()));
            assert_eq!(poll(all.look(&other)), Poll::Ready(true));
        }
        all.has_looked(&first);
        assert_eq!(poll(all.until_looked(&[key("a")])), Poll::Ready(()));
        assert_eq!(poll(all.look(&second)), Poll::Ready(true));
    }

    #[test]
    fn who_has_waited_longer_is_before_others_for_the_same_keys() {
        let (all, kind) = (WaitingClients::default(), ValueKind::List);
        let wait = |id, keys| all.enter(&client(id), kind, keys);
        let (first, second) = (wait(1, vec![key("a")]), wait(2, vec![key("a")]));
        let (other, none) = (wait(3, vec![key("a"), key("b")]), wait(4, Vec::new()));
        let behind = [&first, &second, &other, &none].map(|it| all.is_behind(it));
        assert_eq!(behind, [false, true, false, false]);
        all.leave(&first, false);
        assert!(!all.is_behind(&second));
    }

    #[test]
    fn who_leaves_without_what_may_be_there_wakes_the_next_one() {
        for (passes_on, ready) in [(true, false), (false, true), (false, false)] {
            let all = WaitingClients::default();
            let waiters: Vec<_> = (1..4)
                .map(|id| all.enter(&client(id), ValueKind::Sorted, vec![key("a")]))
                .collect();
            waiters[0].ready.set(ready);
            all.leave(&waiters[0], passes_on);
            let found: Vec<_> = waiters[1..].iter().map(|it| it.ready.get()).collect();
            assert_eq!(found, [passes_on || ready, false]);
            waiters[1..].iter().for_each(|it| all.leave(it, false));
            assert_eq!((all.count(), all.by_key.borrow().len()), (0, 0));
        }
    }
}
