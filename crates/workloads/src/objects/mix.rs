//! What a client does next, and with which objects.

use crate::chance::Chance;
use crate::parameters::{ParameterError, Values};
use crate::placed_keys::{KeyOwner, PlacedKeys};

/// What a transaction does with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectUse {
    /// Reads it and nothing else.
    Read,
    /// Reads it, and writes what it holds after one more update.
    Update,
    /// Writes it unread.
    Blind,
}

/// A transaction with its inputs: different objects, each with its use.
pub(super) type DrawnObjects = Vec<(u64, ObjectUse)>;

/// The nodes that a transaction uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    OwnNode,
    Subtree,
    AllNodes,
}

/// The shares of transactions, and how objects are chosen.
#[derive(Clone, Debug)]
pub(super) struct ObjectMix {
    updates: u64,
    reads: u64,
    blind: f64,
    readonly: f64,
    local: f64,
    subtree: f64,
    /// Below how many lowest inner nodes a transaction over all nodes stays; 0: any.
    subtrees: usize,
    sharing: f64,
}

impl ObjectMix {
    pub fn new(values: &Values) -> Result<ObjectMix, ParameterError> {
        let mix = ObjectMix {
            updates: values.count("updates"),
            reads: values.count("reads"),
            blind: values.number("blind"),
            readonly: values.number("readonly"),
            local: values.number("local"),
            subtree: values.number("subtree"),
            subtrees: values.count("subtrees") as usize,
            sharing: values.number("sharing"),
        };
        let shares = mix.local + mix.subtree;
        if shares > 100.0 {
            let text = format!("local and subtree make {shares} %, over 100 %");
            return Err(ParameterError::Incompatible(text));
        }
        if mix.objects() == 0 {
            let text = "updates and reads are both 0: a transaction needs an object".to_owned();
            return Err(ParameterError::Incompatible(text));
        }
        Ok(mix)
    }

    /// How many objects a transaction uses.
    fn objects(&self) -> u64 {
        self.updates + self.reads
    }

    /// Whether every transaction finds as many different objects as it needs on a node.
    ///
    /// # Errors
    /// It may not, and why, in a text for whoever set the parameters.
    pub fn fits(&self, keys: &PlacedKeys, clients: u32) -> Result<(), String> {
        let all = keys.nodes().len();
        let narrowest = (0..all).map(|node| keys.subtree(node).len()).min().unwrap_or(1);
        let subtrees = (0..all).filter(|node| keys.subtree(*node).first() == Some(node)).count();
        if self.subtrees > subtrees {
            let asked = self.subtrees;
            return Err(format!("subtrees is {asked}, and the tree has {subtrees} to stay below"));
        }
        let (needed, fewest) = match (self.local > 0.0, self.subtree > 0.0, self.subtrees as u64) {
            (true, ..) => (self.objects(), 1),
            (false, true, _) => (self.objects(), narrowest),
            (false, false, 0) => (self.objects(), all),
            (false, false, shares) => (self.objects().div_ceil(shares), narrowest),
        };
        let needed = needed.div_ceil(fewest as u64);
        for (node, id) in keys.nodes().enumerate() {
            let shared = keys.count(node, KeyOwner::Shared);
            let shared_suffice = self.sharing == 100.0 && shared >= needed;
            // The last client has the fewest.
            let own = keys.count(node, KeyOwner::Client(clients.saturating_sub(1)));
            if own < needed && !shared_suffice {
                let total = keys.total();
                return Err(format!(
                    "{total} objects leave a client {own} of its own on node {}, and a transaction \
                     may use {needed} there: give more objects, or less of hot, updates, reads or \
                     clients",
                    id.0
                ));
            }
        }
        Ok(())
    }

    /// The next transaction of a client, its inputs included.
    pub fn draw(&self, client: u32, keys: &PlacedKeys, chance: &mut Chance) -> DrawnObjects {
        let readonly = chance.percent(self.readonly);
        let nodes = self.draw_nodes(client, keys, chance);
        let mut taken = Vec::with_capacity(nodes.len());
        let mut drawn = DrawnObjects::with_capacity(nodes.len());
        for (at, node) in (0..).zip(nodes) {
            let shared = chance.percent(self.sharing);
            let owners = [KeyOwner::Shared, KeyOwner::Client(client)];
            let wanted = owners.iter().filter(|it| shared || **it != KeyOwner::Shared);
            let mut found = wanted.filter_map(|owner| keys.draw(node, *owner, &taken, chance));
            let number = found.next().expect("a node has objects enough, as was looked first");
            let used = match at < self.updates && !readonly {
                true if chance.percent(self.blind) => ObjectUse::Blind,
                true => ObjectUse::Update,
                false => ObjectUse::Read,
            };
            taken.push(number);
            drawn.push((number, used));
        }
        drawn
    }

    /// The nodes of a transaction's objects, one after the other: each in another one, as long as
    /// there are others.
    fn draw_nodes(&self, client: u32, keys: &PlacedKeys, chance: &mut Chance) -> Vec<usize> {
        let own = keys.own_node(client);
        let objects = self.objects() as usize;
        match self.draw_reach(chance) {
            Reach::OwnNode => different(&[own], objects, chance),
            Reach::Subtree => different(keys.subtree(own), objects, chance),
            Reach::AllNodes if self.subtrees == 0 => {
                let all: Vec<usize> = (0..keys.nodes().len()).collect();
                different(&all, objects, chance)
            }
            Reach::AllNodes => self.in_shares(own, keys, chance),
        }
    }

    /// The same below the client's own lowest inner node and others, dealt to these in turn.
    fn in_shares(&self, own: usize, keys: &PlacedKeys, chance: &mut Chance) -> Vec<usize> {
        let mut subtrees = vec![keys.subtree(own)];
        while subtrees.len() < self.subtrees {
            let other = keys.subtree(chance.below(keys.nodes().len() as u64) as usize);
            if !subtrees.contains(&other) {
                subtrees.push(other);
            }
        }
        let share = self.objects().div_ceil(self.subtrees as u64) as usize;
        let shares: Vec<_> = subtrees.iter().map(|it| different(it, share, chance)).collect();
        let dealt = (0..share).flat_map(|at| shares.iter().map(move |it| it[at]));
        dealt.take(self.objects() as usize).collect()
    }

    fn draw_reach(&self, chance: &mut Chance) -> Reach {
        let drawn = chance.fraction() * 100.0;
        match drawn {
            _ if drawn < self.local => Reach::OwnNode,
            _ if drawn < self.local + self.subtree => Reach::Subtree,
            _ => Reach::AllNodes,
        }
    }
}

/// So many of these nodes, each another one as long as there are others.
fn different(within: &[usize], count: usize, chance: &mut Chance) -> Vec<usize> {
    let mut nodes: Vec<usize> = Vec::with_capacity(count);
    while nodes.len() < count {
        let round = nodes.len() / within.len() * within.len();
        let node = within[chance.below(within.len() as u64) as usize];
        if !nodes[round..].contains(&node) {
            nodes.push(node);
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use muesli_core::{Catalog, NodeId, SpaceId};

    use super::super::PARAMETERS;
    use super::*;

    const CLIENTS: u32 = 4;

    fn mix(given: &str) -> Result<ObjectMix, ParameterError> {
        let given: Vec<_> = given.split_whitespace().map(str::to_owned).collect();
        ObjectMix::new(&Values::read("objects", PARAMETERS, &given)?)
    }

    /// Objects on eight nodes, two of each in a row, `hot` shared on each.
    fn objects(total: u64, hot: u64) -> PlacedKeys {
        let homes: Vec<_> = (0..8).map(NodeId).collect();
        let catalog = Catalog::new(&homes, 1, &homes).unwrap();
        let space = muesli::SpaceOptions {
            partitioning: PlacedKeys::partitioning(8),
            ..muesli::SpaceOptions::default()
        };
        let catalog = catalog.with_space("objects", space).unwrap();
        PlacedKeys::new(&catalog, SpaceId(0), total, (CLIENTS, hot), 2)
    }

    /// The nodes of many transactions of client 5, whose own node is 5.
    fn nodes(given: &str) -> Vec<Vec<usize>> {
        let (mix, keys, mut chance) = (mix(given).unwrap(), objects(800, 4), Chance::new(1, 0, 1));
        let drawn = |chance: &mut Chance| mix.draw(5, &keys, chance);
        let of = |drawn: DrawnObjects| drawn.iter().map(|it| keys.node_of(it.0)).collect();
        (0..200).map(|_| of(drawn(&mut chance))).collect()
    }

    #[test]
    fn updates_are_each_in_another_node_as_in_the_thesis() {
        for nodes in nodes("") {
            assert_eq!(nodes.iter().collect::<BTreeSet<_>>().len(), 8, "{nodes:?}");
        }
        for nodes in nodes("updates=6 reads=12") {
            let count = |node: usize| nodes.iter().filter(|it| **it == node).count();
            assert!((0..8).all(|node| (2..=3).contains(&count(node))), "{nodes:?}");
        }
    }

    #[test]
    fn nodes_are_those_that_were_asked_for() {
        assert!(nodes("local=100").iter().flatten().all(|node| *node == 5));
        let below = nodes("subtree=100 updates=4");
        assert!(below.iter().all(|it| it.iter().filter(|node| **node == 4).count() == 2));
        assert!(below.iter().flatten().all(|node| [4, 5].contains(node)));
        for nodes in nodes("subtrees=3 updates=5") {
            let below = |row: usize| nodes.iter().filter(|node| **node / 2 == row).count();
            let mut shares: Vec<_> = (0..4).map(below).collect();
            shares.sort_unstable();
            assert_eq!((below(2), &shares[..]), (2, &[0, 1, 2, 2][..]), "{nodes:?}");
        }
        let mixed = nodes("local=25 subtree=25");
        let different = |nodes: &Vec<usize>| nodes.iter().collect::<BTreeSet<_>>().len();
        let within = |most| mixed.iter().filter(|nodes| different(nodes) <= most).count();
        assert!((30..70).contains(&within(1)) && (75..125).contains(&within(2)));
    }

    /// Of many transactions of two clients, how many objects both use.
    fn in_common(given: &str) -> usize {
        let (mix, keys, mut chance) = (mix(given).unwrap(), objects(800, 4), Chance::new(1, 0, 1));
        let used = |client, chance: &mut Chance| -> BTreeSet<u64> {
            (0..100).flat_map(|_| mix.draw(client, &keys, chance)).map(|it| it.0).collect()
        };
        let one = used(0, &mut chance);
        one.intersection(&used(1, &mut chance)).count()
    }

    #[test]
    fn clients_meet_at_shared_objects_alone() {
        assert_eq!(in_common("sharing=0"), 0);
        assert_eq!(in_common("sharing=50"), 8 * 4);
        assert_eq!(in_common("sharing=100 updates=8"), 8 * 4);
    }

    #[test]
    fn objects_of_a_transaction_differ_and_their_uses_are_as_asked_for() {
        let mix = mix("updates=6 reads=3 blind=50 readonly=20 sharing=90 local=50").unwrap();
        let (keys, mut chance) = (objects(800, 4), Chance::new(2, 0, 1));
        let (mut readers, mut blind) = (0, 0);
        for _ in 0..500 {
            let drawn = mix.draw(1, &keys, &mut chance);
            let different: BTreeSet<_> = drawn.iter().map(|it| it.0).collect();
            assert_eq!(different.len(), 9, "{drawn:?}");
            let count = |wanted| drawn.iter().filter(|it| it.1 == wanted).count();
            match count(ObjectUse::Read) {
                9 => readers += 1,
                reads => assert_eq!(reads, 3, "{drawn:?}"),
            }
            blind += count(ObjectUse::Blind);
        }
        assert!((70..130).contains(&readers), "{readers}");
        assert!((1_000..1_400).contains(&blind), "{blind} of about 2,400");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let error = |given| mix(given).unwrap_err().to_string();
        assert!(error("local=60 subtree=50").contains("110 %"));
        assert!(error("updates=0").contains("needs an object"));
        let fits = |given, total| mix(given).unwrap().fits(&objects(total, 4), CLIENTS);
        assert_eq!(fits("", 8 * 8), Ok(()));
        let text = fits("", 8 * 7).unwrap_err();
        assert!(text.contains("56 objects leave a client 0 of its own"), "{text}");
        assert!(fits("local=1", 8 * 8).unwrap_err().contains("may use 8 there"));
        assert!(fits("subtrees=5", 8 * 8).unwrap_err().contains("has 4 to stay below"));
        assert!(fits("subtrees=4", 8 * 8).is_ok());
        assert!(fits("subtree=1", 8 * 8).unwrap_err().contains("may use 4 there"));
        assert_eq!(fits("sharing=100 updates=4 local=100", 8 * 4), Ok(()));
    }
}
