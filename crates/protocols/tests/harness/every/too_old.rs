//! A reader whose snapshot is too old at one of the repositories of its own node is not again.

use std::sync::Arc;

use muesli_core::parts::locator::Static;
use muesli_core::{
    Abort, Catalog, Effects, Failure, Node, NodeId, Protocol, RepositoryId, Settings, SmallBytes,
    SpaceId, SpaceOptions, Step, TxnOptions,
};

pub const HERE: NodeId = NodeId(0);
pub const SPACE: SpaceId = SpaceId(0);

pub struct Alone<P: Protocol> {
    pub node: Node<P>,
    pub effects: Effects<P>,
}

impl<P: Protocol> Alone<P> {
    /// A node with two repositories, and a key of each.
    pub fn new() -> (Alone<P>, [SmallBytes; 2]) {
        let catalog = Catalog::new(&[HERE, HERE], 1, &[HERE]).unwrap();
        let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).unwrap());
        let of = |repository: u16| {
            let keys = (0..).map(|it: u32| SmallBytes::from(format!("key {it}").as_str()));
            let home = |key: &SmallBytes| {
                let partition = catalog.partition(SPACE, key);
                Static.replicas_of(partition, &catalog).next() == Some(RepositoryId(repository))
            };
            keys.into_iter().find(home).unwrap()
        };
        let keys = [of(0), of(1)];
        let settings = Arc::new(Settings::default());
        let mut node = Node::new(HERE, 1, Arc::clone(&catalog), settings, &P::Switches::default());
        let mut effects = Effects::default();
        node.start(&mut effects);
        (Alone { node, effects }, keys)
    }

    /// Writes a key, alone in the whole database.
    pub fn write(&mut self, key: &SmallBytes) {
        let Alone { node, effects } = self;
        let txn = node.begin(TxnOptions::default(), effects).unwrap();
        node.put(txn, SPACE, key.clone(), Some("value".into()), effects).unwrap();
        assert!(matches!(node.commit(txn, effects), Step::Done(Ok(_))));
    }

    /// Reads both keys in one transaction.
    pub fn read(&mut self, keys: [&SmallBytes; 2]) -> Result<(), Failure> {
        let Alone { node, effects } = self;
        let txn = node.begin(TxnOptions::default(), effects).unwrap();
        for key in keys {
            match node.get(txn, SPACE, key, effects) {
                Step::Done(done) => done.map(drop)?,
                Step::Wait(_) => panic!("it is here"),
            }
        }
        assert!(matches!(node.commit(txn, effects), Step::Done(Ok(_))));
        Ok(())
    }
}

pub fn is_too_old_once<P: Protocol>() {
    for ahead in [0, 1] {
        let (mut alone, keys) = Alone::<P>::new();
        (0..5).for_each(|_| alone.write(&keys[ahead]));
        let mut read = || alone.read([&keys[1 - ahead], &keys[ahead]]);
        match read() {
            Ok(()) | Err(Failure::Aborted(Abort::SnapshotTooOld)) => {}
            Err(failure) => panic!("{failure}"),
        }
        assert_eq!(read(), Ok(()), "repository {ahead} is ahead");
    }
}
