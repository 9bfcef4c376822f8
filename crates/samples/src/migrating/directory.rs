//! The directory of owners, a service beside repository 0.

use muesli_core::parts::locator::{Locator, OwnerDirectory};
use muesli_core::{
    Address, Catalog, Context, LoggedRole, NoTimer, NodeId, RepositoryId, Role, Service, ServiceId,
    ServiceKind, Settings, StateMachine,
};

use super::{Key, Message, Migrating, Switches};

/// The directory's name: there is one.
pub(super) fn directory() -> ServiceId {
    ServiceId::new(ServiceKind::Directory, 0)
}

pub(super) fn directory_of(catalog: &Catalog) -> Address {
    Address::service(catalog.home(RepositoryId(0)), directory())
}

/// The directory: who owns what, as far as owners have told it in this life.
#[derive(Clone, Debug, Default)]
pub struct OwnersOfAll {
    owners: OwnerDirectory<Key>,
}

impl StateMachine<Migrating> for OwnersOfAll {
    type Timer = NoTimer;

    muesli_core::role_without_links!(Migrating);
    muesli_core::role_without_judgement!(Migrating);

    fn unfinished(&self) -> usize {
        0
    }

    fn assert_invariants(&self) {
        self.owners.assert_invariants();
    }
}

impl LoggedRole<Migrating> for OwnersOfAll {
    muesli_core::role_without_records!(Migrating);

    fn start(&mut self, _: &mut Context<'_, Migrating>) {}

    fn placed(&mut self, _: &mut Context<'_, Migrating>) {}

    fn receive(&mut self, from: Address, message: Message, cx: &mut Context<'_, Migrating>) {
        match message {
            Message::Owns { key, owners } => self.owners.learn([(key, owners)]),
            Message::WhereIs { key } => {
                let Role::Repository(asker) = from.role else { return };
                if let Some(owners) = self.owners.moved(&key) {
                    let owners = (**owners).clone();
                    cx.send_to_repository(asker, Message::Owns { key, owners });
                }
            }
            _ => {} // For repositories.
        }
    }

    fn timer(&mut self, timer: NoTimer, _: &mut Context<'_, Migrating>) {
        match timer {}
    }
}

impl Service<Migrating> for OwnersOfAll {
    fn new(_: ServiceId, _: NodeId, _: u32, _: &Settings, _: &Switches) -> OwnersOfAll {
        OwnersOfAll::default()
    }
}
