//! A protocol by its name: what makes machines of it.

use std::fmt::Debug;
use std::sync::Arc;

use super::{AnyMachine, Machine};
use crate::catalog::Catalog;
use crate::contract::{Effects, Environment, Isolation, Protocol, StalenessSupport};
use crate::ids::NodeId;
use crate::node::Node;
use crate::options::Settings;
use crate::roles::ServiceKind;
use crate::time::Nanos;
use crate::wire::Wire;

/// What a message is called, and how long it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageInfo {
    /// [`Protocol::message_name`].
    pub name: &'static str,
    /// [`Protocol::wire_bytes`].
    pub bytes: usize,
}

/// Whether a protocol has validators: in a database of one node, one would live there.
pub fn has_validators<P: Protocol>(switches: &P::Switches) -> bool {
    let only = NodeId(0);
    let catalog = Catalog::new(&[only], 1, &[only]).expect("a database of one node");
    let services = P::services(switches, only, &catalog);
    services.iter().any(|service| service.kind() == ServiceKind::Validator)
}

/// A protocol with its switches set, whichever it is.
pub trait AnyProtocol: Debug + Send + Sync {
    /// [`Protocol::NAME`].
    fn name(&self) -> &'static str;
    /// [`Protocol::isolation`].
    fn isolation(&self) -> Isolation;
    /// [`Protocol::TIMESTAMP_STEP`].
    fn timestamp_step(&self) -> Option<Nanos>;
    /// [`Protocol::KEEPS_OLD_VERSIONS`].
    fn keeps_old_versions(&self) -> bool;
    /// [`Protocol::KEEPS_COPIES`].
    fn keeps_copies(&self) -> bool;
    /// [`Protocol::KEEPS_EVERYWHERE`].
    fn keeps_everywhere(&self) -> bool;
    /// [`Protocol::REPLICATES_ITSELF`].
    fn replicates_itself(&self) -> bool;
    /// [`Protocol::offers_strict`].
    fn offers_strict(&self) -> bool;
    /// [`Protocol::staleness`].
    fn staleness(&self) -> StalenessSupport;
    /// [`Protocol::has_masters`].
    fn has_masters(&self) -> bool;
    /// [`Protocol::has_shards`].
    fn has_shards(&self) -> bool;
    /// [`Protocol::exchanges_members`].
    fn exchanges_members(&self) -> bool;
    /// [`Protocol::may_start_empty`].
    fn may_start_empty(&self) -> bool;
    /// Whether it [has validators](has_validators), and goes by the tree of the catalog.
    fn has_validators(&self) -> bool;
    /// A message that was encoded, altered perhaps; `None`: the bytes are no message.
    fn look(&self, message: &[u8]) -> Option<MessageInfo>;
    /// An encoded message, for traces that people read.
    fn show(&self, message: &[u8]) -> String;
    /// [`Protocol::as_client`], of an encoded message.
    fn as_client(&self, message: &[u8], node: NodeId) -> Option<Vec<u8>>;
    /// The machine of a node that has not started, with the repositories whose home it is, empty.
    fn machine(
        &self,
        id: NodeId,
        incarnation: u32,
        catalog: Arc<Catalog>,
        settings: Arc<Settings>,
        environment: Environment,
    ) -> Box<dyn AnyMachine>;
}

/// A protocol of a known type, with its switches.
#[derive(Clone, Debug)]
pub struct Typed<P: Protocol>(pub P::Switches);

impl<P: Protocol> AnyProtocol for Typed<P> {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn isolation(&self) -> Isolation {
        P::isolation(&self.0)
    }

    fn timestamp_step(&self) -> Option<Nanos> {
        P::TIMESTAMP_STEP
    }

    fn keeps_old_versions(&self) -> bool {
        P::KEEPS_OLD_VERSIONS
    }

    fn keeps_copies(&self) -> bool {
        P::KEEPS_COPIES
    }

    fn keeps_everywhere(&self) -> bool {
        P::KEEPS_EVERYWHERE
    }

    fn replicates_itself(&self) -> bool {
        P::REPLICATES_ITSELF
    }

    fn offers_strict(&self) -> bool {
        P::offers_strict(&self.0)
    }

    fn staleness(&self) -> StalenessSupport {
        P::staleness(&self.0)
    }

    fn has_masters(&self) -> bool {
        P::has_masters(&self.0)
    }

    fn has_shards(&self) -> bool {
        P::has_shards(&self.0)
    }

    fn exchanges_members(&self) -> bool {
        P::exchanges_members(&self.0)
    }

    fn may_start_empty(&self) -> bool {
        P::may_start_empty(&self.0)
    }

    fn has_validators(&self) -> bool {
        has_validators::<P>(&self.0)
    }

    fn look(&self, message: &[u8]) -> Option<MessageInfo> {
        let message = P::Message::decode_all(message).ok()?;
        Some(MessageInfo { name: P::message_name(&message), bytes: P::wire_bytes(&message) })
    }

    fn show(&self, message: &[u8]) -> String {
        match P::Message::decode_all(message) {
            Ok(message) => format!("{message:?}"),
            Err(error) => error.to_string(),
        }
    }

    fn as_client(&self, message: &[u8], node: NodeId) -> Option<Vec<u8>> {
        let message = P::Message::decode_all(message).ok()?;
        let mut bytes = Vec::new();
        P::as_client(&message, node)?.encode(&mut bytes);
        Some(bytes)
    }

    fn machine(
        &self,
        id: NodeId,
        incarnation: u32,
        catalog: Arc<Catalog>,
        settings: Arc<Settings>,
        environment: Environment,
    ) -> Box<dyn AnyMachine> {
        let node = Node::<P>::new(id, incarnation, catalog, settings, &self.0);
        Box::new(Machine::new(node, Effects::new(environment)))
    }
}
