//! What a role sees of the world during one step, and how it asks for effects.

use std::sync::Arc;

use super::effects::{Effect, Effects, Envelope};
use super::{Answer, Protocol};
use crate::catalog::Catalog;
use crate::ids::{OpId, RepositoryId};
use crate::options::Settings;
use crate::outcome::Failure;
use crate::positions::LogPosition;
use crate::roles::{Address, Role};
use crate::time::Nanos;
use crate::timers::Timer;
/// The world as one role of a node sees it during one step.
pub struct Context<'a, P: Protocol> {
    /// Who is running.
    pub me: Address,
    /// Spaces and placement.
    pub catalog: &'a Catalog,
    /// Settings of the node.
    pub settings: &'a Settings,
    /// Where effects go.
    pub effects: &'a mut Effects<P>,
}

impl<P: Protocol> Context<'_, P> {
    /// The time of this turn.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.effects.now
    }

    /// Whether what was sent to wherever `repository` lives, at this time, may still be on its way
    /// over a link that stands: then it need not be sent again.
    pub fn is_outstanding(&self, repository: RepositoryId, sent: Nanos) -> bool {
        let links = &self.effects.links;
        !links.is_empty() && links.is_outstanding(self.catalog.home(repository), sent)
    }

    /// The same moment, as another role of the node sees it.
    #[inline]
    pub fn at(&mut self, role: Role) -> Context<'_, P> {
        Context {
            me: Address { node: self.me.node, role },
            catalog: self.catalog,
            settings: self.settings,
            effects: self.effects,
        }
    }

    /// What this role's effects must wait for: whoever logs speaks after what it logged before; a
    /// coordinator logs nothing, and waits for nothing unless it says so.
    fn gate(&self) -> LogPosition {
        match self.me.role {
            Role::Coordinator => LogPosition(0),
            role => self.gate_of(role),
        }
    }

    /// What the effects of a role of this node must wait for.
    pub fn gate_of(&self, role: Role) -> LogPosition {
        self.effects.positions.of(role).gate
    }

    /// The last record that this role has logged.
    pub fn logged(&self) -> LogPosition {
        self.effects.positions.of(self.me.role).logged
    }

    /// Sends `message`.
    pub fn send(&mut self, to: Address, message: P::Message) {
        let (envelope, after) = (Envelope { from: self.me, to, message }, self.gate());
        self.effects.list.push(Effect::Send { envelope, after });
    }

    /// Sends `message` to wherever `repository` lives.
    pub fn send_to_repository(&mut self, repository: RepositoryId, message: P::Message) {
        self.send(Address::repository(self.catalog.home(repository), repository), message);
    }

    /// As [`send_to_repository`](Self::send_to_repository), once the log is stable up to `after` as
    /// well.
    pub fn send_to_repository_after(
        &mut self,
        repository: RepositoryId,
        message: P::Message,
        after: LogPosition,
    ) {
        let to = Address::repository(self.catalog.home(repository), repository);
        let (envelope, after) = (Envelope { from: self.me, to, message }, self.gate().max(after));
        self.effects.list.push(Effect::Send { envelope, after });
    }

    /// Answers a client's operation.
    pub fn complete(&mut self, op: OpId, result: Result<Answer, Failure>) {
        let after = self.gate();
        self.complete_after(op, result, after);
    }

    /// Answers a client's operation once the log is stable up to `after`.
    pub fn complete_after(
        &mut self,
        op: OpId,
        result: Result<Answer, Failure>,
        after: LogPosition,
    ) {
        self.effects.list.push(Effect::Complete { op, result, after });
    }

    /// Sends `message` once everything that this role has logged is stable, lazily logged records
    /// included.
    pub fn send_when_logged(&mut self, to: Address, message: P::Message) {
        let (envelope, after) = (Envelope { from: self.me, to, message }, self.logged());
        self.effects.list.push(Effect::Send { envelope, after });
    }

    /// As [`send_when_logged`](Self::send_when_logged), to wherever `repository` lives.
    pub fn send_to_repository_when_logged(
        &mut self,
        repository: RepositoryId,
        message: P::Message,
    ) {
        self.send_when_logged(
            Address::repository(self.catalog.home(repository), repository),
            message,
        );
    }

    /// Logs what the closure makes, if records are logged at all; whatever this role says from now
    /// on waits for it.
    ///
    /// # Panics
    /// If a coordinator calls it: it has nothing that must survive.
    #[inline]
    pub fn log(&mut self, record: impl FnOnce() -> P::Record) {
        if self.settings.logging {
            self.log_lazily(record);
            self.wait_for_log();
        }
    }

    /// Whatever this role says from now on waits for all that it has logged so far, lazily logged
    /// records included.
    pub fn wait_for_log(&mut self) {
        self.effects.positions.wait(self.me.role);
    }

    /// Whatever this role says from now on waits until the log is stable up to `position`, which
    /// may have been logged long ago.
    pub fn wait_for_log_up_to(&mut self, position: LogPosition) {
        self.effects.positions.wait_up_to(self.me.role, position);
    }

    /// Logs what the closure makes, if records are logged at all; nothing waits for it but what is
    /// sent by [`send_when_logged`](Self::send_when_logged).
    ///
    /// # Panics
    /// If a coordinator calls it.
    pub fn log_lazily(&mut self, record: impl FnOnce() -> P::Record) {
        if !self.settings.logging {
            return;
        }
        let role = self.me.role;
        assert!(role != Role::Coordinator, "a coordinator logs nothing");
        self.effects.positions.append(role);
        self.effects.list.push(Effect::Log { role, record: record() });
    }

    /// Asks for a call of this role's `timer` as soon as what was said so far has left: for work
    /// that nobody should wait for who does not need it. A driver that has much else to do calls it
    /// in turn with that.
    pub fn defer(&mut self, timer: impl Timer) {
        self.set_timer(timer, Nanos(0));
    }

    /// Asks for the node's next life after this turn, from what its disk holds: as if its process
    /// had crashed and was started again. A driver whose node has no disk leaves that undone.
    pub fn restart(&mut self) {
        self.effects.restart = true;
    }

    /// The node is to go by this catalog, if it is newer, once this message and what its own roles
    /// say to each other of it is taken.
    pub fn go_by(&mut self, catalog: Arc<Catalog>) {
        self.effects.newer_catalog = Some(catalog);
    }

    /// Asks for a call of this role's `timer` in a while.
    pub fn set_timer(&mut self, timer: impl Timer, after: Nanos) {
        let (role, timer) = (self.me.role, timer.number());
        self.effects.list.push(Effect::SetTimer { role, timer, after });
    }
}
