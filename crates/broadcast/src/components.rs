//! Commands that come before each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::command::CommandId;

/// Sets of commands that come before each other, each set after those that come before it; `before`
/// gives the commands right before one, among these (Tarjan 1972, without recursion).
pub(crate) fn components(
    all: &BTreeSet<CommandId>,
    before: impl Fn(CommandId) -> Vec<CommandId>,
) -> Vec<BTreeSet<CommandId>> {
    let mut search = DeliverySearch::default();
    for id in all {
        if search.numbers.contains_key(id) {
            continue;
        }
        let mut calls = vec![search.enter(*id, before(*id))];
        while let Some((id, mut rest)) = calls.pop() {
            let Some(next) = rest.pop() else {
                search.leave(id);
                if let Some((caller, _)) = calls.last() {
                    search.lower(*caller, search.lows[&id]);
                }
                continue;
            };
            calls.push((id, rest));
            match search.numbers.get(&next).copied() {
                None => calls.push(search.enter(next, before(next))),
                Some(number) if search.on_stack.contains(&next) => search.lower(id, number),
                Some(_) => {}
            }
        }
    }
    search.components
}

/// A search for components.
#[derive(Default)]
struct DeliverySearch {
    numbers: BTreeMap<CommandId, usize>,
    lows: BTreeMap<CommandId, usize>,
    stack: Vec<CommandId>,
    on_stack: BTreeSet<CommandId>,
    components: Vec<BTreeSet<CommandId>>,
}

impl DeliverySearch {
    fn enter(&mut self, id: CommandId, before: Vec<CommandId>) -> (CommandId, Vec<CommandId>) {
        let number = self.numbers.len();
        self.numbers.insert(id, number);
        self.lows.insert(id, number);
        self.stack.push(id);
        self.on_stack.insert(id);
        (id, before)
    }

    fn lower(&mut self, id: CommandId, low: usize) {
        let known = self.lows.get_mut(&id).expect("it was entered");
        *known = low.min(*known);
    }

    fn leave(&mut self, id: CommandId) {
        if self.lows[&id] != self.numbers[&id] {
            return;
        }
        let at = self.stack.iter().rposition(|it| *it == id).expect("it was entered");
        let component: BTreeSet<CommandId> = self.stack.drain(at..).collect();
        component.iter().for_each(|id| _ = self.on_stack.remove(id));
        self.components.push(component);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::MemberId;

    fn id(sequence: u64) -> CommandId {
        CommandId { leader: MemberId(0), sequence }
    }

    /// 1 and 2 come before each other, 3 comes after both, and 4 before all.
    #[test]
    fn those_that_come_before_each_other_are_together_and_after_what_is_before_them() {
        let before = |it: CommandId| match it.sequence {
            1 => vec![id(2), id(4)],
            2 => vec![id(1)],
            3 => vec![id(2)],
            _ => Vec::new(),
        };
        let all = (1..5).map(id).collect();
        let sets = [vec![4], vec![1, 2], vec![3]];
        let sets = sets.map(|set| set.into_iter().map(id).collect::<BTreeSet<_>>());
        assert_eq!(components(&all, before), sets);
    }
}
