//! What was found of the places of a workload that run transactions with parts.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use muesli::Db;
use muesli::nesting_choice::{CallSites, NestingChoice};
use muesli_core::NodeId;

use crate::loading;

/// The sites of each node: clients on different nodes are different processes, which choose
/// together by rows in the space that all workloads have.
#[derive(Debug, Default)]
pub(super) struct NodeChoices {
    nodes: Mutex<BTreeMap<NodeId, CallSites>>,
}

impl NodeChoices {
    fn nodes(&self) -> MutexGuard<'_, BTreeMap<NodeId, CallSites>> {
        self.nodes.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// That of a place and a node.
    pub fn of(&self, place: &'static str, node: NodeId, db: &Db) -> NestingChoice {
        let mut nodes = self.nodes();
        let sites = nodes.entry(node).or_insert_with(|| match db.space(loading::SPACE) {
            Ok(space) => CallSites::pooled(space),
            Err(_) => CallSites::new(),
        });
        sites.at(place)
    }

    /// What was chosen, and why: a line for each place and node.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for (node, sites) in self.nodes().iter() {
            notes.extend(sites.all().into_iter().map(|(place, choice)| {
                let (decisions, made) = choice.decisions();
                let last = decisions.last().map_or("nothing yet".to_owned(), ToString::to_string);
                format!("{place} on n{}: {last}, decision {made}", node.0)
            }));
        }
        notes.sort();
        notes
    }
}
