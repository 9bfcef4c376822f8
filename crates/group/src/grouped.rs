//! A protocol whose repositories are kept by groups, as the protocol that it is itself.

use muesli_core::{
    Address, Catalog, Isolation, Nanos, NodeId, Protocol, Rejection, ServiceId, StalenessSupport,
    View, Wire,
};

use crate::front::Front;
use crate::judge;
use crate::layout;
use crate::protocol::{GroupSettings, Grouped, Message, Record, between_members};
use crate::replica::Replica;
use crate::service::NodeService;

/// About how many bytes a summary has.
const SUMMARY_BYTES: usize = 120;

impl<P: Protocol> Protocol for Grouped<P> {
    const NAME: &'static str = P::NAME;
    const TIMESTAMP_STEP: Option<Nanos> = P::TIMESTAMP_STEP;
    const REPLICATES_ITSELF: bool = P::REPLICATES_ITSELF;
    const KEEPS_COPIES: bool = P::KEEPS_COPIES;
    const KEEPS_EVERYWHERE: bool = P::KEEPS_EVERYWHERE;
    const KEEPS_OLD_VERSIONS: bool = P::KEEPS_OLD_VERSIONS;
    type Message = Message<P::Message>;
    type Record = Record<P::Record>;
    type Switches = GroupSettings<P::Switches>;
    type Coordinator = Front<P>;
    type Participant = Replica<P>;
    type Service = NodeService<P>;

    fn isolation(switches: &Self::Switches) -> Isolation {
        P::isolation(&switches.inner)
    }

    fn services(
        group_settings: &GroupSettings<P::Switches>,
        node: NodeId,
        catalog: &Catalog,
    ) -> Vec<ServiceId> {
        P::services(&group_settings.inner, node, &layout::inner(catalog))
    }

    fn offers_strict(group_settings: &GroupSettings<P::Switches>) -> bool {
        P::offers_strict(&group_settings.inner)
    }

    fn staleness(group_settings: &GroupSettings<P::Switches>) -> StalenessSupport {
        P::staleness(&group_settings.inner)
    }

    fn has_masters(group_settings: &GroupSettings<P::Switches>) -> bool {
        P::has_masters(&group_settings.inner)
    }

    fn is_for_all(_: &Message<P::Message>) -> bool {
        false
    }

    fn is_for_any(_: &Message<P::Message>) -> bool {
        false
    }

    fn wire_bytes(message: &Message<P::Message>) -> usize {
        match message {
            Message::Inside { message, .. } => 8 + P::wire_bytes(message),
            Message::Consensus(_, bytes) => 12 + bytes.len(),
            Message::Knows(_) => SUMMARY_BYTES,
            Message::Behind(_) | Message::NoState | Message::Long(_) => 16,
            Message::Reached { .. } | Message::FetchState(_) => 24,
            Message::Entries(batch) => {
                let entries = batch.entries.iter().map(|entry| 4 + entry.0.len());
                SUMMARY_BYTES + entries.sum::<usize>()
            }
            Message::State(piece) => 40 + piece.piece.as_ref().map_or(0, |it| it.0.len()),
            Message::Confirm { .. } | Message::Confirmed { .. } | Message::Leads { .. } => 32,
            Message::Fetch(_) => 48,
            Message::Ask | Message::AskPlacement | Message::Stable(_) => 16,
            Message::AskBegun(_) | Message::Begun(_) => 16,
            Message::Resync(_) | Message::At(_) => 16,
            Message::Placement { homes, leaving, .. } => 20 + 12 * homes.len() + 2 * leaving.len(),
        }
    }

    fn record_bytes(record: &Record<P::Record>) -> usize {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        bytes.len()
    }

    fn message_name(message: &Message<P::Message>) -> &'static str {
        match message {
            Message::Inside { message, .. } => P::message_name(message),
            Message::Consensus(..) => "Consensus",
            Message::At(_) => "At",
            Message::Confirm { .. } => "Confirm",
            Message::Confirmed { .. } => "Confirmed",
            Message::Leads { .. } => "Leads",
            Message::Ask => "AskMember",
            Message::AskBegun(_) => "AskBegun",
            Message::Begun(_) => "Begun",
            Message::AskPlacement => "AskPlacement",
            Message::Stable(_) => "Stable",
            Message::Placement { .. } => "Placement",
            Message::Knows(_) => "Knows",
            Message::Behind(_) => "Behind",
            Message::Reached { .. } => "Reached",
            Message::Fetch(_) => "Fetch",
            Message::Entries(_) => "Entries",
            Message::FetchState(_) => "FetchState",
            Message::State(_) => "State",
            Message::NoState => "NoState",
            Message::Long(_) => "Long",
            Message::Resync(_) => "Resync",
        }
    }

    fn judge(message: &Message<P::Message>, view: View<'_>) -> Result<(), Rejection> {
        judge::judge::<P>(message, view)
    }

    fn as_client(message: &Message<P::Message>, node: NodeId) -> Option<Message<P::Message>> {
        match message {
            Message::Inside { hops, message, .. } => {
                let (from, hops) = (Address::coordinator(node), *hops);
                P::as_client(message, node).map(|message| Message::Inside { from, hops, message })
            }
            Message::AskPlacement => Some(Message::AskPlacement),
            Message::AskBegun(group) => Some(Message::AskBegun(*group)),
            _ => None,
        }
    }

    fn is_about(message: &Message<P::Message>, catalog: &Catalog) -> bool {
        match message {
            // The catalog of the protocol inside is smaller: replicas and fronts ask again.
            Message::Inside { message, .. } => P::is_about(message, catalog),
            Message::Leads { group, .. } => *group < layout::groups(catalog),
            between_members!()
            | Message::AskBegun(_)
            | Message::Begun(_)
            | Message::AskPlacement
            | Message::Stable(_) => true,
            Message::Placement { homes, leaving, .. } => {
                let all = catalog.repositories();
                homes.len() == all && leaving.iter().all(|it| usize::from(it.0) < all)
            }
        }
    }
}
