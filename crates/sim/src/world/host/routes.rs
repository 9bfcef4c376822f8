//! Which kinds of messages nodes have sent to each other, between which roles.

use std::collections::BTreeSet;

use muesli_core::{OutgoingMessage, Role};

/// A kind of message, the kind of role that sent it, and the kind of role that it was for.
pub type Route = (&'static str, &'static str, &'static str);

/// The routes of a run. What a node says to itself, or to a stranger, is not among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes(BTreeSet<Route>);

impl Routes {
    /// A message leaves.
    pub(in crate::world) fn note(&mut self, sent: &OutgoingMessage<'_>) {
        self.0.insert((sent.name, kind(sent.from.role), kind(sent.to.role)));
    }

    /// The routes of both.
    pub fn join(&mut self, other: &Routes) {
        self.0.extend(&other.0);
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = Route> + '_ {
        self.0.iter().copied()
    }
}

/// What a role is.
fn kind(role: Role) -> &'static str {
    match role {
        Role::Coordinator => "coordinator",
        Role::Repository(_) => "participant",
        Role::Service(_) => "service",
    }
}
