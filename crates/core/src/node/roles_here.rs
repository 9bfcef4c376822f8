//! How a node reaches one of its roles, or all.

/// Builds the context of a role from the node's parts, leaving the others free to be borrowed.
macro_rules! context {
    ($node:ident, $role:expr, $effects:ident) => {
        Context {
            me: Address { node: $node.id, role: $role },
            catalog: &$node.catalog,
            settings: &$node.settings,
            effects: $effects,
        }
    };
}

/// What a logged role does, if it lives here: `$then` with it as `$it`. `None`: it does not, or is
/// the coordinator, which logs nothing and is given the participants besides.
macro_rules! logged_role {
    (&mut $node:ident, $role:expr, |$it:ident| $then:expr) => {
        match $role {
            Role::Coordinator => None,
            Role::Repository(id) => find_mut(&mut $node.participants, id).map(|$it| $then),
            Role::Service(id) => find_mut(&mut $node.services, id).map(|$it| $then),
        }
    };
    (&$node:ident, $role:expr, |$it:ident| $then:expr) => {
        match $role {
            Role::Coordinator => None,
            Role::Repository(id) => find(&$node.participants, id).map(|$it| $then),
            Role::Service(id) => find(&$node.services, id).map(|$it| $then),
        }
    };
}

/// What each logged role does: participants in their order, then services.
macro_rules! each_logged_role {
    ($node:ident, $effects:ident, |$it:ident, $cx:ident| $then:expr) => {
        for (id, $it) in &mut $node.participants {
            let $cx = &mut context!($node, Role::Repository(*id), $effects);
            $then;
        }
        for (id, $it) in &mut $node.services {
            let $cx = &mut context!($node, Role::Service(*id), $effects);
            $then;
        }
    };
}

/// The role of this id in a list, to be looked at.
pub(super) fn find<I: PartialEq, R>(roles: &[(I, R)], wanted: I) -> Option<&R> {
    roles.iter().find(|(id, _)| *id == wanted).map(|(_, found)| found)
}

/// The role of this id in a list, to be changed.
pub(super) fn find_mut<I: PartialEq, R>(roles: &mut [(I, R)], wanted: I) -> Option<&mut R> {
    roles.iter_mut().find(|(id, _)| *id == wanted).map(|(_, found)| found)
}

pub(super) use {context, each_logged_role, logged_role};
