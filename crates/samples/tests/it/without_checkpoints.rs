//! A protocol that keeps its whole log, as it has no checkpoints.

use muesli_core::parts::single_repository::{
    RepositoryMessage, SingleRepositoryCoordinator, SingleRepositoryProtocol,
};
use muesli_core::{
    Address, Catalog, Context, Isolation, LoggedRole, NoTimer, NodeId, Participant, Protocol,
    Rejection, RepositoryId, Settings, SmallBytes, SpaceId, StateMachine, Timestamp, TxnId, View,
};
use muesli_registry::{Grouping, NoProtocol, protocol};

use super::searches::register;

/// Its repositories are never asked anything here, and would not answer.
#[derive(Clone, Copy, Debug)]
enum Forgetful {}

impl Protocol for Forgetful {
    const NAME: &'static str = "forgetful";
    const REPLICATES_ITSELF: bool = false;
    type Message = RepositoryMessage;
    type Record = TxnId;
    type Switches = ();
    type Coordinator = SingleRepositoryCoordinator<Forgetful>;
    type Participant = Silent;

    fn isolation(_: &Self::Switches) -> Isolation {
        Isolation::StrictSerializable
    }

    muesli_core::protocol_without_services!();
    muesli_core::protocol_without_extras!();
    muesli_core::protocol_measured_by_encoding!();

    fn is_about(_: &RepositoryMessage, _: &Catalog) -> bool {
        true
    }

    fn judge(message: &RepositoryMessage, view: View<'_>) -> Result<(), Rejection> {
        message.judge(view)
    }

    fn offers_strict((): &()) -> bool {
        true
    }
}

impl SingleRepositoryProtocol for Forgetful {
    fn base(_: NodeId, _: &Catalog) -> RepositoryId {
        RepositoryId(0)
    }
}

/// Its participant.
#[derive(Clone, Debug)]
struct Silent;

impl StateMachine<Forgetful> for Silent {
    type Timer = NoTimer;

    muesli_core::role_without_links!(Forgetful);
    muesli_core::role_without_judgement!(Forgetful);

    fn unfinished(&self) -> usize {
        0
    }

    fn assert_invariants(&self) {}
}

impl LoggedRole<Forgetful> for Silent {
    muesli_core::role_without_checkpoints!(Forgetful);
    muesli_core::role_that_stays!(Forgetful);

    fn start(&mut self, _: &mut Context<'_, Forgetful>) {}

    fn receive(&mut self, _: Address, _: RepositoryMessage, _: &mut Context<'_, Forgetful>) {}

    fn timer(&mut self, timer: NoTimer, _: &mut Context<'_, Forgetful>) {
        match timer {}
    }

    fn replay(&mut self, _: TxnId, _: &mut Context<'_, Forgetful>) {}
}

impl Participant<Forgetful> for Silent {
    muesli_core::participant_without_marks!(Forgetful);
    muesli_core::participant_without_readers!(Forgetful);
    muesli_core::participant_kept_by_one_node!();
    muesli_core::participant_without_sizes!();

    fn new(_: RepositoryId, _: &Settings, (): &()) -> Silent {
        Silent
    }

    fn chains(&self, _: &Catalog) -> Vec<(SpaceId, SmallBytes, Vec<Timestamp>)> {
        Vec::new()
    }
}

#[test]
fn groups_refuse_a_protocol_without_checkpoints() {
    register::<Forgetful>("forgetful", ());
    assert!(protocol("forgetful", None).is_ok());
    let refused = protocol("forgetful", Some(Grouping::default())).err();
    assert_eq!(refused, Some(NoProtocol::WithoutCheckpoints { name: "forgetful" }));
}
