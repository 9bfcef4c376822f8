//! WorldClient tasks of the simulated world, polled in the order in which they were woken.
//!
//! A task is an ordinary future. Wakers put its name at the end of one list of the whole world, a
//! name at most once; the order of polling is therefore a function of the run alone. A task that
//! wakes itself while it is polled lets others run: it waits for the next turn.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use muesli_core::client::Task;

/// A task of one node; a name is never used twice in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskId {
    /// The place of the node in the world.
    pub(super) place: u32,
    slot: u32,
    number: u64,
}

/// The names of woken tasks, over all nodes, in the order of waking.
#[derive(Clone, Debug, Default)]
pub(super) struct Woken(Arc<WokenNames>);

#[derive(Debug, Default)]
struct WokenNames {
    names: Mutex<Vec<TaskId>>,
    /// Whether there may be names: looking costs less than locking, and is done after every poll.
    any: AtomicBool,
}

/// The tasks of one node.
pub(super) struct WorldTasks {
    place: u32,
    woken: Woken,
    slots: Vec<Option<WorldTaskSlot>>,
    free: Vec<u32>,
    ready: VecDeque<TaskId>,
    /// Those that let others run.
    next_tick: VecDeque<TaskId>,
    spawned: u64,
}

struct WorldTaskSlot {
    id: TaskId,
    /// Whether it woke itself when it was last polled.
    yielded: bool,
    /// Taken out while it is polled.
    task: Option<Task>,
    waking: Arc<Waking>,
    waker: Waker,
}

struct Waking {
    id: TaskId,
    woken: Woken,
    /// Whether the name stands in a list already.
    listed: AtomicBool,
}

impl Wake for Waking {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.listed.swap(true, Ordering::Relaxed) {
            let woken = &self.woken.0;
            woken.names.lock().unwrap_or_else(PoisonError::into_inner).push(self.id);
            woken.any.store(true, Ordering::Release);
        }
    }
}

impl Woken {
    /// Moves all names to the end of `names`.
    pub(super) fn drain_into(&self, names: &mut Vec<TaskId>) {
        if self.0.any.load(Ordering::Acquire) {
            self.0.any.store(false, Ordering::Release);
            names.append(&mut self.0.names.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl WorldTasks {
    pub(super) fn new(place: u32, woken: Woken) -> Self {
        let (slots, free) = (Vec::new(), Vec::new());
        let (ready, next_tick) = (VecDeque::new(), VecDeque::new());
        WorldTasks { place, woken, slots, free, ready, next_tick, spawned: 0 }
    }

    /// Adds a task, woken.
    pub(super) fn spawn(&mut self, task: Task) -> TaskId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.spawned += 1;
        let id = TaskId { place: self.place, slot, number: self.spawned };
        let waking = Waking { id, woken: self.woken.clone(), listed: AtomicBool::new(true) };
        let waking = Arc::new(waking);
        let waker = Waker::from(Arc::clone(&waking));
        let slot_of = WorldTaskSlot { id, yielded: false, task: Some(task), waking, waker };
        self.slots[slot as usize] = Some(slot_of);
        self.ready.push_back(id);
        id
    }

    /// A task of this node was woken.
    pub(super) fn make_ready(&mut self, id: TaskId) {
        let Some(slot) = self.slot(id) else { return };
        if std::mem::take(&mut slot.yielded) {
            self.next_tick.push_back(id);
        } else {
            self.ready.push_back(id);
        }
    }

    /// A turn begins: those that had let others run are ready.
    pub(super) fn begin_tick(&mut self) {
        self.ready.append(&mut self.next_tick);
    }

    /// Whether a task waits to be polled, in this turn or in the next.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty() || !self.next_tick.is_empty()
    }

    /// Whether a task has not ended.
    pub(super) fn is_alive(&self, id: TaskId) -> bool {
        let slot = self.slots.get(id.slot as usize).and_then(Option::as_ref);
        slot.is_some_and(|slot| slot.id == id)
    }

    /// Polls the next task that is ready, if any.
    pub(super) fn poll_next(&mut self) -> Polled {
        let Some(id) = self.ready.pop_front() else { return Polled::Nothing };
        let Some(WorldTaskSlot { task, waking, waker, .. }) = self.slot(id) else {
            return Polled::Goes(id);
        };
        waking.listed.store(false, Ordering::Relaxed);
        let (Some(mut polled), waker) = (task.take(), waker.clone()) else {
            return Polled::Goes(id);
        };
        match polled.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(()) => {
                self.remove(id);
                Polled::Ended(id)
            }
            Poll::Pending => {
                if let Some(slot) = self.slot(id) {
                    slot.yielded = slot.waking.listed.load(Ordering::Relaxed);
                    slot.task = Some(polled);
                }
                Polled::Goes(id)
            }
        }
    }

    /// Takes a task out, to be dropped by the caller.
    pub(super) fn remove(&mut self, id: TaskId) -> Option<Task> {
        self.slot(id)?;
        self.free.push(id.slot);
        self.slots[id.slot as usize].take().and_then(|slot| slot.task)
    }

    /// Takes all tasks out, to be dropped by the caller.
    pub(super) fn remove_all(&mut self) -> Vec<Task> {
        self.ready.clear();
        self.next_tick.clear();
        self.free.clear();
        self.slots.drain(..).filter_map(|slot| slot.and_then(|slot| slot.task)).collect()
    }

    /// How many tasks have not ended.
    pub(super) fn alive(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn slot(&mut self, id: TaskId) -> Option<&mut WorldTaskSlot> {
        let slot = self.slots.get_mut(id.slot as usize)?.as_mut()?;
        (slot.id == id).then_some(slot)
    }
}

/// What came of a poll.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Polled {
    /// No task was ready.
    Nothing,
    /// The task goes on, or had been removed.
    Goes(TaskId),
    /// The task has ended.
    Ended(TaskId),
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::poll_fn;
    use std::rc::Rc;

    use super::*;

    /// Wakes what was polled last, once, from outside.
    type Last = Rc<RefCell<Option<Waker>>>;

    fn sleeper(polls: &Rc<RefCell<u32>>, last: &Last, rounds: u32) -> Task {
        let (polls, last) = (Rc::clone(polls), Rc::clone(last));
        Box::pin(poll_fn(move |cx| {
            *polls.borrow_mut() += 1;
            *last.borrow_mut() = Some(cx.waker().clone());
            if *polls.borrow() == rounds { Poll::Ready(()) } else { Poll::Pending }
        }))
    }

    fn distribute(tasks: &mut WorldTasks, woken: &Woken) -> usize {
        let mut names = Vec::new();
        woken.drain_into(&mut names);
        names.iter().for_each(|name| tasks.make_ready(*name));
        names.len()
    }

    #[test]
    fn a_task_is_polled_once_for_many_wakes_and_ends() {
        let (woken, polls, last) = (Woken::default(), Rc::default(), Last::default());
        let mut tasks = WorldTasks::new(0, woken.clone());
        let id = tasks.spawn(sleeper(&polls, &last, 2));
        assert_eq!(tasks.poll_next(), Polled::Goes(id));
        assert_eq!(tasks.poll_next(), Polled::Nothing);
        let waker = last.borrow().clone().expect("it was polled");
        waker.wake_by_ref();
        waker.wake();
        assert_eq!(distribute(&mut tasks, &woken), 1);
        assert_eq!(tasks.poll_next(), Polled::Ended(id));
        assert_eq!((tasks.alive(), tasks.has_ready()), (0, false));
    }

    #[test]
    fn a_task_that_wakes_itself_waits_for_the_next_turn() {
        let woken = Woken::default();
        let mut tasks = WorldTasks::new(0, woken.clone());
        let id = tasks.spawn(Box::pin(poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::Pending
        })));
        assert_eq!(tasks.poll_next(), Polled::Goes(id));
        assert_eq!(distribute(&mut tasks, &woken), 1);
        assert_eq!(tasks.poll_next(), Polled::Nothing);
        assert!(tasks.has_ready());
        tasks.begin_tick();
        assert_eq!(tasks.poll_next(), Polled::Goes(id));
    }

    #[test]
    fn the_place_of_a_task_that_is_gone_is_not_woken_by_its_waker() {
        let (woken, last) = (Woken::default(), Last::default());
        let mut tasks = WorldTasks::new(0, woken.clone());
        let first = tasks.spawn(sleeper(&Rc::default(), &last, 9));
        tasks.poll_next();
        assert!(tasks.remove(first).is_some());
        let polls = Rc::default();
        let second = tasks.spawn(sleeper(&polls, &Last::default(), 9));
        assert!(first != second && !tasks.is_alive(first) && tasks.is_alive(second));
        assert_eq!(tasks.poll_next(), Polled::Goes(second));
        last.borrow_mut().take().expect("it was polled").wake();
        distribute(&mut tasks, &woken);
        assert_eq!(tasks.poll_next(), Polled::Nothing);
        assert_eq!(*polls.borrow(), 1);
    }
}
