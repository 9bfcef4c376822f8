//! What a transaction has read and writes, on its way with votes and decisions, as printed.

use std::sync::Arc;

use muesli_core::parts::locator::Static;
use muesli_core::{
    Address, Catalog, Effect, Effects, Envelope, Node, NodeId, RepositoryId, ServiceId,
    ServiceKind, Settings, SmallBytes, SpaceId, SpaceOptions, Timestamp, TxnId,
};
use muesli_protocols::hierarchy::{HierarchicalValidation, Leaves, Switches};
use muesli_protocols::two_phase::message::Message;
use muesli_protocols::two_phase::message::merged_vote::MergedVote;
use muesli_protocols::two_phase::message::voted_footprint::VotedFootprint;
use muesli_protocols::two_phase::{Sabotage as _, TreeSwitch};

const TXN: TxnId = TxnId { node: NodeId(1), incarnation: 1, sequence: 1 };
const SPACE: SpaceId = SpaceId(0);

/// Node 0 of two with a repository each, with the root's validator.
fn node(switches: &Switches) -> Node<HierarchicalValidation> {
    let homes = [NodeId(0), NodeId(1)];
    let catalog = Catalog::new(&homes, 1, &homes).expect("a catalog");
    let catalog = catalog.with_space("s", SpaceOptions::default()).expect("a space");
    Node::new(NodeId(0), 1, Arc::new(catalog), Arc::new(Settings::default()), switches)
}

/// Some key of a repository.
fn key(catalog: &Catalog, repository: u16) -> SmallBytes {
    let mut keys = (0u32..).map(|number| SmallBytes::new(&number.to_be_bytes()));
    let holds = |key: &SmallBytes| {
        Static.holds(RepositoryId(repository), catalog.partition(SPACE, key), catalog)
    };
    keys.find(holds).expect("each holds some")
}

/// What the participants of a commit are sent once both have voted, with what they read and write:
/// by repository.
fn decisions(switches: &Switches) -> Vec<(Address, Message<Leaves>)> {
    let mut node = node(switches);
    let root = ServiceId::new(ServiceKind::Validator, 0);
    let mut sent = Vec::new();
    for voter in [0, 1].map(RepositoryId) {
        let key = key(node.catalog(), voter.0);
        let value = Some(SmallBytes::new(b"value"));
        let carried = VotedFootprint {
            snapshot: Timestamp::ZERO,
            reads: vec![(SPACE, key.clone())],
            writes: vec![(SPACE, key, value)],
        };
        let carried = Some(Box::new(carried));
        let ballot = MergedVote::of(TXN, [0, 1].map(RepositoryId).into_iter().collect(), voter);
        let ballot = MergedVote { proposal: Timestamp::new(7, voter), carried, ..ballot };
        let from = Address::repository(NodeId(u32::from(voter.0)), voter);
        let (to, mut effects) = (Address::service(NodeId(0), root), Effects::default());
        let message = Message::MergedVote(Box::new(ballot));
        node.deliver(Envelope { from, to, message }, &mut effects);
        node.assert_invariants();
        sent.extend(effects.list.into_iter().filter_map(|effect| match effect {
            Effect::Send { envelope, .. } => Some((envelope.to, envelope.message)),
            _ => None,
        }));
    }
    sent.retain(|(_, message)| {
        matches!(message, Message::Decide { .. } | Message::MergedDecision(_))
    });
    sent
}

#[test]
fn as_printed_each_participant_is_sent_back_what_it_holds() {
    let printed = Switches::default().without(TreeSwitch::VotesAloneClimb);
    let catalog = Arc::clone(node(&printed).catalog());
    let sent = decisions(&printed);
    // Its own node's repository hears of it, too.
    assert!(!sent.is_empty());
    for (to, message) in sent {
        let Message::MergedDecision(ended) = message else { panic!("{message:?}") };
        let [participant] = ended.participants[..] else { panic!("{ended:?}") };
        assert_eq!(to, Address::repository(NodeId(u32::from(participant.0)), participant));
        let carried = ended.carried.expect("it has what it holds");
        let own = key(&catalog, participant.0);
        assert_eq!(carried.reads, [(SPACE, own.clone())]);
        assert_eq!(carried.writes, [(SPACE, own, Some(SmallBytes::new(b"value")))]);
    }
}

#[test]
fn else_participants_are_told_the_end_alone() {
    let sent = decisions(&Switches::default());
    assert!(!sent.is_empty());
    let ends =
        |(_, message): &(Address, Message<Leaves>)| matches!(message, Message::Decide { .. });
    assert!(sent.iter().all(ends), "{sent:?}");
}
