//! Procedures that say themselves where a call of them has fragments: a call that lacks one is
//! refused by all that it reaches, and what happens where a participant does not look.

use std::sync::Arc;

use muesli_core::procedure::LocatedKey;
use muesli_core::sabotage::Sabotage;
use muesli_core::{
    Address, Catalog, Effect, Effects, Envelope, Node, NodeId, Partitioning, Procedure,
    ProcedureId, Procedures, RepositoryId, Settings, SmallBytes, SpaceId, SpaceOptions, Stop,
    Store, TxnId,
};
use muesli_protocols::granola::message::{Part, PartAnswer, Refusal, ReplyOutcome, Request, Task};
use muesli_protocols::granola::{Granola, GranolaSwitch, Message, Switches};

const SPACE: SpaceId = SpaceId(0);
/// Where the coordinator would be.
const CLIENT: NodeId = NodeId(2);

/// The two keys, one at each repository.
fn keys() -> [SmallBytes; 2] {
    ["a".into(), "n".into()]
}

fn number(store: &mut dyn Store, key: &SmallBytes) -> Result<i64, Stop> {
    let found = store.get(SPACE, key)?;
    Ok(found.map_or(0, |it| String::from_utf8_lossy(it.as_slice()).parse().unwrap_or(0)))
}

/// Takes one from the first key and gives it to the second one; each where it is here.
fn give(store: &mut dyn Store, _: &SmallBytes) -> Result<SmallBytes, Stop> {
    for (key, by) in keys().iter().zip([-1, 1]) {
        if store.is_here(SPACE, key, true) {
            let sum = number(store, key)? + by;
            store.put(SPACE, key.clone(), Some(sum.to_string().as_str().into()))?;
        }
    }
    Ok(SmallBytes::EMPTY)
}

fn places(_: &Catalog, _: &SmallBytes) -> Result<Vec<LocatedKey>, Stop> {
    Ok(keys().map(|key| LocatedKey { space: SPACE, key, writes: true }).to_vec())
}

/// What is here of the sum.
fn sum(store: &mut dyn Store, _: &SmallBytes) -> Result<SmallBytes, Stop> {
    let mut all = 0;
    for key in keys() {
        if store.is_here(SPACE, &key, false) {
            all += number(store, &key)?;
        }
    }
    Ok(all.to_string().as_str().into())
}

/// Two repositories, each alone on its node.
struct TwoNodes {
    nodes: Vec<(Node<Granola>, Effects<Granola>)>,
    sequence: u64,
}

impl TwoNodes {
    fn new(switches: &Switches) -> TwoNodes {
        let homes = [NodeId(0), NodeId(1)];
        let catalog = Catalog::new(&homes, 1, &[NodeId(0), NodeId(1), CLIENT]).unwrap();
        let partitioning = Partitioning::Range(vec!["m".into()]);
        let options = SpaceOptions { partitioning, ..SpaceOptions::default() };
        let catalog = Arc::new(catalog.with_space("keys", options).unwrap());
        let known = Procedures::default().with("give", 1, Procedure::new(give).at(places));
        let procedures = known.with("sum", 1, Procedure::new(sum).read_only());
        let settings = Arc::new(Settings { procedures, ..Settings::default() });
        let node = |id| {
            let (catalog, settings) = (Arc::clone(&catalog), Arc::clone(&settings));
            (Node::new(id, 1, catalog, settings, switches), Effects::default())
        };
        TwoNodes { nodes: homes.map(node).into(), sequence: 0 }
    }

    /// A call with one fragment, at one repository.
    fn call(&mut self, name: &str, at: u16) -> ReplyOutcome {
        self.sequence += 1;
        let procedure = ProcedureId { name: name.into(), version: 1 };
        let arguments = SmallBytes::EMPTY;
        let task = Task::Call { procedure, arguments, shares: false, spaces: 1 };
        let part = Part { partition: at, owners: None, task };
        let txn = TxnId { node: CLIENT, incarnation: 1, sequence: self.sequence };
        let here = RepositoryId(at);
        let request = Request::new(txn, [here].into_iter().collect(), [part].into_iter().collect());
        let request = Request { settled_below: 0, read_only: name == "sum", ..request };
        let to = Address::repository(NodeId(at.into()), here);
        let (from, message) = (Address::coordinator(CLIENT), Message::Request(Arc::new(request)));
        let (node, effects) = &mut self.nodes[usize::from(at)];
        node.deliver(Envelope { from, to, message }, effects);
        let ends =
            std::mem::take(&mut effects.list).into_iter().filter_map(|effect| match effect {
                Effect::Send { envelope, .. } => match envelope.message {
                    Message::Reply { end, .. } => Some(end),
                    _ => None,
                },
                _ => None,
            });
        ends.last().expect("it is answered")
    }

    /// The sum of both keys, which no transfer changes.
    fn sum(&mut self) -> i64 {
        let part = |end: ReplyOutcome| {
            let ReplyOutcome::Done { answers, .. } = end else { panic!("{end:?}") };
            let Some((_, PartAnswer::Given(sum))) = answers.first() else { panic!("{answers:?}") };
            String::from_utf8_lossy(sum.as_slice()).parse::<i64>().expect("a number")
        };
        [0, 1].map(|at| part(self.call("sum", at))).iter().sum()
    }
}

#[test]
fn a_call_that_lacks_a_fragment_is_refused_wherever_it_comes() {
    let mut nodes = TwoNodes::new(&Switches::default());
    for at in [0, 1, 0] {
        let end = nodes.call("give", at);
        let ReplyOutcome::Refused { refusal: Refusal::Faulty(why), .. } = end else {
            panic!("{end:?}")
        };
        let expected = format!(
            "procedure give v1: the call names partitions [{at}], and its plan needs one fragment \
             in each of [0, 1]"
        );
        assert_eq!(why, expected);
    }
    assert_eq!(nodes.sum(), 0);
}

#[test]
fn who_does_not_look_does_its_share_alone() {
    // One that looks whether any of the places is among the call's does not see what is missing.
    for switch in [GranolaSwitch::PlacesChecked, GranolaSwitch::PlacesWhole] {
        let mut nodes = TwoNodes::new(&Switches::default().without(switch));
        let end = nodes.call("give", 0);
        assert!(matches!(end, ReplyOutcome::Done { .. }), "{switch:?}: {end:?}");
        assert_eq!(nodes.sum(), -1, "{switch:?}: what was taken was given");
    }
}
