//! What was found of the places of a workload that run transactions with parts.

use std::collections::BTreeMap;
use std::sync::Mutex;

use muesli::nesting_choice::NestingChoice;
use muesli_core::NodeId;

/// A choice for each place and each node: clients on different nodes are different processes, and
/// know nothing of each other.
#[derive(Debug, Default)]
pub(super) struct NodeChoices {
    all: Mutex<BTreeMap<(&'static str, NodeId), NestingChoice>>,
}

impl NodeChoices {
    /// That of a place and a node.
    pub fn of(&self, place: &'static str, node: NodeId) -> NestingChoice {
        let mut all = self.all.lock().unwrap_or_else(|broken| broken.into_inner());
        all.entry((place, node)).or_default().clone()
    }

    /// What was chosen, and why: a line for each place and node.
    pub fn notes(&self) -> Vec<String> {
        let all = self.all.lock().unwrap_or_else(|broken| broken.into_inner());
        let note = |((place, node), choice): (&(&'static str, NodeId), &NestingChoice)| {
            let (decisions, made) = choice.decisions();
            let last = decisions.last().map_or("nothing yet".to_owned(), ToString::to_string);
            format!("{place} on n{}: {last}, decision {made}", node.0)
        };
        all.iter().map(note).collect()
    }
}
