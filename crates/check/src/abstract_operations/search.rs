//! The search for an order of transactions that have to do with each other: depth first, without
//! recursion, as histories are long.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};

use super::SerialOrder;
use super::footprint::{AbstractFootprint, AbstractObject, Contents};

/// A member, by its place among those that are searched.
type Member = u32;
/// What a member needs an object to hold, or by how much it changes it.
type PerObject = Vec<(u32, i128)>;

/// What is searched, and how far the search is.
pub(super) struct OrderSearch<'a> {
    /// The names of the members.
    members: &'a [usize],
    needs: Vec<PerObject>,
    changes: Vec<PerObject>,
    required: Vec<bool>,
    /// Those that come after a member, if they come.
    successors: Vec<Vec<Member>>,
    /// Those that come before a member, if they come, and need not.
    overtakes: Vec<Vec<Member>>,
    /// Members that change nothing, by what they need.
    watchers: HashMap<(u32, i128), Vec<Member>>,
    state: SearchState,
    /// Sets of transactions that were come to, from which nothing was found.
    tried: HashSet<Box<[u64]>>,
    longest: Vec<Member>,
}

/// What depends on which transactions are done, and not on their order.
struct SearchState {
    order: Vec<Member>,
    done: Box<[u64]>,
    contents: Vec<i128>,
    /// By how much at most those that are left raise an object, and lower it.
    may_rise: Vec<i128>,
    may_fall: Vec<i128>,
    /// What those that are left and must come need an object to hold, and how many of them.
    wanted: Vec<BTreeMap<i128, u32>>,
    /// How many that must come before a member are left.
    earlier: Vec<u32>,
    /// How many that come after a member are done: then it cannot come any more.
    overtaken: Vec<u32>,
    required_left: usize,
    left: LinkedMembers,
}

/// Members that are left and are tried one after the other, in their order: those that change
/// something, and those that keep others, which need not come, from coming after them.
#[derive(Default)]
struct LinkedMembers {
    next: Vec<Member>,
    previous: Vec<Member>,
}

/// A set of transactions that the search goes on from.
struct SearchFrame {
    /// How many were done before the one that led here.
    mark: usize,
    /// The one that was tried last.
    at: Member,
}

impl<'a> OrderSearch<'a> {
    /// Of these members with their footprints, which must come or may, among whom there are these
    /// pairs, as far as they name members.
    pub fn new(
        members: &'a [usize],
        footprints: Vec<(&AbstractFootprint, bool)>,
        pairs: &[(usize, usize)],
        start: &Contents,
    ) -> OrderSearch<'a> {
        let objects =
            footprints.iter().flat_map(|(it, _)| it.needs.keys().chain(it.changes.keys()));
        let mut numbers: BTreeMap<AbstractObject, u32> = objects.map(|it| (*it, 0)).collect();
        numbers.values_mut().zip(0..).for_each(|(number, next)| *number = next);
        let numbered = |contents: &Contents| -> PerObject {
            contents.iter().map(|(object, holds)| (numbers[object], *holds)).collect()
        };
        let needs: Vec<_> = footprints.iter().map(|(it, _)| numbered(&it.needs)).collect();
        let changes: Vec<_> = footprints.iter().map(|(it, _)| numbered(&it.changes)).collect();
        let required: Vec<bool> = footprints.iter().map(|(_, required)| *required).collect();
        let mut watchers: HashMap<(u32, i128), Vec<Member>> = HashMap::new();
        for (member, needs) in (0..).zip(&needs).filter(|(at, _)| changes[*at as usize].is_empty())
        {
            needs.iter().for_each(|need| watchers.entry(*need).or_default().push(member));
        }
        let places: HashMap<usize, Member> = members.iter().copied().zip(0..).collect();
        let (mut successors, mut overtakes) =
            (vec![Vec::new(); members.len()], vec![Vec::new(); members.len()]);
        let mut state = SearchState {
            order: Vec::new(),
            done: vec![0; members.len().div_ceil(64)].into(),
            contents: numbers.keys().map(|it| start.get(it).copied().unwrap_or(0)).collect(),
            may_rise: vec![0; numbers.len()],
            may_fall: vec![0; numbers.len()],
            wanted: vec![BTreeMap::new(); numbers.len()],
            earlier: vec![0; members.len()],
            overtaken: vec![0; members.len()],
            required_left: required.iter().filter(|required| **required).count(),
            left: LinkedMembers::default(),
        };
        for (first, second) in pairs {
            let (Some(first), Some(second)) = (places.get(first), places.get(second)) else {
                continue;
            };
            successors[*first as usize].push(*second);
            match required[*first as usize] {
                true => state.earlier[*second as usize] += 1,
                false => overtakes[*second as usize].push(*first),
            }
        }
        for (member, changes) in changes.iter().enumerate() {
            changes.iter().for_each(|(object, by)| state.count_change(*object, *by, 1));
            for (object, need) in needs[member].iter().filter(|_| required[member]) {
                *state.wanted[*object as usize].entry(*need).or_default() += 1;
            }
        }
        state.left = LinkedMembers::of(members.len(), |at| {
            !changes[at].is_empty() || !overtakes[at].is_empty()
        });
        let (tried, longest) = (HashSet::new(), Vec::new());
        OrderSearch {
            members,
            needs,
            changes,
            required,
            successors,
            overtakes,
            watchers,
            state,
            tried,
            longest,
        }
    }

    /// Looks for an order; each look whether a member may come takes one of `steps`.
    pub fn run(mut self, steps: &mut u64) -> SerialOrder {
        let idle: Vec<Member> = self.unchanging().collect();
        let all_objects: Vec<u32> = (0..self.state.contents.len() as u32).collect();
        if !self.do_what_changes_nothing(idle, steps) {
            return SerialOrder::Undecided;
        }
        if self.state.required_left == 0 {
            return SerialOrder::Found(self.named(&self.state.order));
        }
        if all_objects.iter().any(|object| self.state.is_dead_end(*object)) {
            self.note_longest();
            return self.none();
        }
        let mut frames = vec![SearchFrame { mark: 0, at: self.head() }];
        while let Some(frame) = frames.last_mut() {
            let (mark, at) = (self.state.order.len(), frame.at);
            match self.next_candidate(at, steps) {
                Err(OutOfSteps) => return SerialOrder::Undecided,
                Ok(None) => {
                    self.note_longest();
                    self.tried.insert(self.state.done.clone());
                    self.undo_to(frame.mark);
                    frames.pop();
                }
                Ok(Some(candidate)) => {
                    frame.at = candidate;
                    let ready = self.apply(candidate);
                    if !self.do_what_changes_nothing(ready, steps) {
                        return SerialOrder::Undecided;
                    }
                    if self.state.required_left == 0 {
                        return SerialOrder::Found(self.named(&self.state.order));
                    }
                    if self.leads_nowhere(candidate) {
                        self.note_longest();
                        self.undo_to(mark);
                    } else {
                        frames.push(SearchFrame { mark, at: self.head() });
                    }
                }
            }
        }
        self.none()
    }

    fn head(&self) -> Member {
        self.members.len() as Member
    }

    fn unchanging(&self) -> impl Iterator<Item = Member> {
        (0..).zip(&self.changes).filter(|(_, changes)| changes.is_empty()).map(|(at, _)| at)
    }

    /// The first member after this one that may come.
    fn next_candidate(&self, at: Member, steps: &mut u64) -> Result<Option<Member>, OutOfSteps> {
        let mut at = self.state.left.next[at as usize];
        while at != self.head() {
            *steps = steps.checked_sub(1).ok_or(OutOfSteps)?;
            if self.may_come(at) {
                return Ok(Some(at));
            }
            at = self.state.left.next[at as usize];
        }
        Ok(None)
    }

    fn may_come(&self, member: Member) -> bool {
        let at = member as usize;
        let state = &self.state;
        let fits = |(object, need): &(u32, i128)| state.contents[*object as usize] == *need;
        !state.is_done(member)
            && state.earlier[at] == 0
            && state.overtaken[at] == 0
            && self.needs[at].iter().all(fits)
    }

    /// Whether nothing can be found after this member, which came last and changed something.
    fn leads_nowhere(&self, member: Member) -> bool {
        let mut changed = self.changes[member as usize].iter();
        changed.any(|(object, _)| self.state.is_dead_end(*object))
            || self.tried.contains(&self.state.done)
    }

    /// Whether nobody is kept from coming by a member that comes now.
    fn overtakes_nobody(&self, member: Member) -> bool {
        let state = &self.state;
        let is_out = |at: &Member| state.is_done(*at) || state.overtaken[*at as usize] > 0;
        self.overtakes[member as usize].iter().all(is_out)
    }

    /// Does all that may come now of these, change nothing and overtake nobody, which cannot make
    /// anything else impossible, and what may come after that; whether there were steps enough.
    fn do_what_changes_nothing(&mut self, mut ready: Vec<Member>, steps: &mut u64) -> bool {
        while let Some(member) = ready.pop() {
            let Some(left) = steps.checked_sub(1) else { return false };
            *steps = left;
            if self.may_come(member) && self.overtakes_nobody(member) {
                ready.extend(self.apply(member));
            }
        }
        true
    }

    /// Does a member as the next one; those that change nothing and may perhaps come now.
    fn apply(&mut self, member: Member) -> Vec<Member> {
        self.step(member, true);
        self.state.order.push(member);
        let mut ready = Vec::new();
        for (object, _) in &self.changes[member as usize] {
            let holds = self.state.contents[*object as usize];
            ready.extend(self.watchers.get(&(*object, holds)).into_iter().flatten());
        }
        let successors = self.successors[member as usize].iter();
        ready.extend(successors.filter(|at| self.changes[**at as usize].is_empty()));
        ready
    }

    fn undo_to(&mut self, mark: usize) {
        while self.state.order.len() > mark {
            let member = self.state.order.pop().expect("it is longer than before");
            self.step(member, false);
        }
    }

    /// Does a member, or undoes it as the last one.
    fn step(&mut self, member: Member, forward: bool) {
        let (at, state) = (member as usize, &mut self.state);
        let sign = if forward { 1 } else { -1 };
        assert_ne!(state.is_done(member), forward, "each is done once");
        state.done[at / 64] ^= 1 << (at % 64);
        for (object, by) in &self.changes[at] {
            state.contents[*object as usize] += sign * by;
            state.count_change(*object, *by, -sign);
        }
        for before in &self.overtakes[at] {
            move_by_one(&mut state.overtaken[*before as usize], forward);
        }
        if self.required[at] {
            for next in &self.successors[at] {
                move_by_one(&mut state.earlier[*next as usize], !forward);
            }
            state.required_left = match forward {
                true => state.required_left - 1,
                false => state.required_left + 1,
            };
            for (object, need) in &self.needs[at] {
                let wanted = &mut state.wanted[*object as usize];
                let count = wanted.entry(*need).or_default();
                move_by_one(count, !forward);
                if *count == 0 {
                    wanted.remove(need);
                }
            }
        }
        if !self.changes[at].is_empty() || !self.overtakes[at].is_empty() {
            match forward {
                true => state.left.remove(member),
                false => state.left.put_back(member),
            }
        }
    }

    fn note_longest(&mut self) {
        if self.state.order.len() > self.longest.len() {
            self.longest.clone_from(&self.state.order);
        }
    }

    fn named(&self, order: &[Member]) -> Vec<usize> {
        order.iter().map(|member| self.members[*member as usize]).collect()
    }

    /// There is no order; how far it went.
    fn none(mut self) -> SerialOrder {
        self.undo_to(0);
        let longest = std::mem::take(&mut self.longest);
        longest.iter().for_each(|member| self.step(*member, true));
        let waits = |at: &Member| {
            let place = *at as usize;
            self.required[place] && !self.state.is_done(*at) && self.state.earlier[place] == 0
        };
        let stuck: Vec<Member> = (0..self.head()).filter(waits).collect();
        SerialOrder::None { longest: self.named(&longest), stuck: self.named(&stuck) }
    }
}

fn move_by_one(count: &mut u32, up: bool) {
    *count = if up { *count + 1 } else { *count - 1 };
}

/// More steps would be needed than are allowed.
struct OutOfSteps;

impl SearchState {
    fn is_done(&self, member: Member) -> bool {
        let at = member as usize;
        self.done[at / 64] & (1 << (at % 64)) != 0
    }

    /// A change is among those that are left (1), or no more (-1).
    fn count_change(&mut self, object: u32, by: i128, sign: i128) {
        let of = if by > 0 { &mut self.may_rise } else { &mut self.may_fall };
        of[object as usize] += sign * by;
    }

    /// Whether somebody needs an object to hold what it cannot come to hold any more.
    fn is_dead_end(&self, object: u32) -> bool {
        let at = object as usize;
        let holds = self.contents[at];
        let (least, most) = (holds + self.may_fall[at], holds + self.may_rise[at]);
        let mut wanted = self.wanted[at].keys();
        wanted.next().is_some_and(|first| *first < least)
            || self.wanted[at].keys().next_back().is_some_and(|last| *last > most)
    }
}

impl LinkedMembers {
    /// Those of so many that are tried. Behind the last one comes the head, which is no member.
    fn of(count: usize, is_tried: impl Fn(usize) -> bool) -> LinkedMembers {
        let head = count as Member;
        let (mut next, mut previous) = (vec![head; count + 1], vec![head; count + 1]);
        let mut last = head;
        for member in (0..head).filter(|at| is_tried(*at as usize)) {
            next[last as usize] = member;
            previous[member as usize] = last;
            last = member;
        }
        next[last as usize] = head;
        previous[head as usize] = last;
        LinkedMembers { next, previous }
    }

    fn remove(&mut self, member: Member) {
        let (before, after) = (self.previous[member as usize], self.next[member as usize]);
        self.next[before as usize] = after;
        self.previous[after as usize] = before;
    }

    /// Undoes the last removal that is not undone yet.
    fn put_back(&mut self, member: Member) {
        let (before, after) = (self.previous[member as usize], self.next[member as usize]);
        self.next[before as usize] = member;
        self.previous[after as usize] = member;
    }
}
