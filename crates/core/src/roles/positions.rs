//! How far each role of a node has logged, and what its effects wait for.
//!
//! A node has one log, so positions are numbers of its records. Each role has its own: what it
//! logged last, and its *gate*, the position that must be stable before anything that it says may
//! leave. What another role of the node logs holds nothing of it back.

use crate::roles::Role;

/// How many records a node has logged. Position 0 is always stable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition(pub u64);

/// The positions of one role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RolePositions {
    /// Its last record.
    pub logged: LogPosition,
    /// The last record that its effects wait for: its own, and never after the last.
    pub gate: LogPosition,
}

/// The positions of a node's roles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions {
    /// The last record of any role.
    logged: LogPosition,
    /// By role, in order; a role that has logged nothing need not be here.
    roles: Vec<(Role, RolePositions)>,
}

impl Positions {
    /// How many records the node has logged in its life.
    #[inline]
    pub fn logged(&self) -> LogPosition {
        self.logged
    }

    /// The positions of a role.
    pub fn of(&self, role: Role) -> RolePositions {
        let at = self.roles.binary_search_by_key(&role, |(it, _)| *it);
        at.map_or_else(|_| RolePositions::default(), |at| self.roles[at].1)
    }

    fn of_mut(&mut self, role: Role) -> &mut RolePositions {
        let at = match self.roles.binary_search_by_key(&role, |(it, _)| *it) {
            Ok(at) => at,
            Err(at) => {
                self.roles.insert(at, (role, RolePositions::default()));
                at
            }
        };
        &mut self.roles[at].1
    }

    /// A role logs a record; its position.
    pub fn append(&mut self, role: Role) -> LogPosition {
        self.logged.0 += 1;
        let logged = self.logged;
        self.of_mut(role).logged = logged;
        logged
    }

    /// What a role says from now on waits for all that it has logged.
    pub fn wait(&mut self, role: Role) {
        let of = self.of_mut(role);
        of.gate = of.logged;
    }

    /// What a role says from now on waits until the log is stable up to `position`.
    pub fn wait_up_to(&mut self, role: Role, position: LogPosition) {
        assert!(position <= self.logged, "{role} waits for {position:?}, which nobody has logged");
        let of = self.of_mut(role);
        of.gate = of.gate.max(position);
    }

    /// The positions of a node with one role, which stands here.
    pub fn alone(role: Role, positions: RolePositions) -> Positions {
        assert!(positions.gate <= positions.logged, "{role} waits for what it has not logged");
        Positions { logged: positions.logged, roles: vec![(role, positions)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::RepositoryId;

    const ONE: Role = Role::Repository(RepositoryId(1));
    const TWO: Role = Role::Repository(RepositoryId(2));

    #[test]
    fn a_role_waits_for_its_own_records_alone() {
        let mut positions = Positions::default();
        assert_eq!(positions.of(TWO), RolePositions::default());
        assert_eq!(
            (positions.append(TWO), positions.append(ONE)),
            (LogPosition(1), LogPosition(2))
        );
        positions.wait(TWO);
        assert_eq!(positions.of(TWO).gate, LogPosition(1));
        assert_eq!(
            positions.of(ONE),
            RolePositions { logged: LogPosition(2), gate: LogPosition(0) }
        );
        positions.wait_up_to(TWO, LogPosition(2));
        positions.wait_up_to(TWO, LogPosition(1));
        assert_eq!((positions.of(TWO).gate, positions.logged()), (LogPosition(2), LogPosition(2)));
        let alone = Positions::alone(ONE, positions.of(ONE));
        assert_eq!((alone.logged(), alone.of(ONE)), (LogPosition(2), positions.of(ONE)));
    }

    #[test]
    #[should_panic(expected = "which nobody has logged")]
    fn nobody_waits_for_what_is_not_logged() {
        Positions::default().wait_up_to(ONE, LogPosition(1));
    }
}
