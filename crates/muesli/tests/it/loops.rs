//! A server of several loops, which reach each other in memory.

use std::sync::Arc;

use muesli::server::{RunningServer, ServerOptions};
use muesli::{Connect, Db, Error, SmallBytes, SpaceOptions};
use muesli_core::NodeId;

const LOOPS: usize = 3;
/// Several of a transaction are more than what is on its way between two loops at one time.
const LONG: usize = 400 << 10;

/// A server whose loops keep a repository each, and a client.
fn start(protocol: &str) -> (RunningServer, Db) {
    let options = ServerOptions {
        node: NodeId(0),
        listen: super::cluster::free_addresses(1).remove(0),
        protocol: protocol.to_owned(),
        repositories: LOOPS,
        ..ServerOptions::default()
    };
    let server = RunningServer::start(options, LOOPS).unwrap();
    let addresses = vec![server.address().to_string()];
    let protocol = protocol.to_owned();
    let db = Db::connect_with(Connect { addresses, protocol, ..Connect::default() }).unwrap();
    (server, db)
}

#[test]
fn votes_climb_from_loop_to_loop() {
    let (server, db) = start("hierarchy");
    db.create_space("counters", SpaceOptions::default()).unwrap();
    for round in 0..50 {
        assert_eq!(super::cluster::increment(&db.strict()).unwrap(), 8 * round);
    }
    drop(db);
    server.stop().unwrap();
}

/// Votes carry them up from each loop to the one with the validator, and decisions carry them back.
#[test]
fn long_values_pass_between_loops_whole_and_in_order() {
    let (server, db) = start("hierarchy-unchecked");
    let space = db.create_space("values", SpaceOptions::default()).unwrap();
    let keys: Vec<SmallBytes> = (0..12_u8).map(|key| SmallBytes::new(&[key])).collect();
    let keys: Arc<[SmallBytes]> = keys.into();
    for round in 0..6_u8 {
        let (keys, value) = (Arc::clone(&keys), SmallBytes::new(&vec![round; LONG]));
        let write = async move |tx: &muesli::Tx| {
            for key in &*keys {
                tx.put(space, key.clone(), value.clone()).await?;
            }
            Ok::<_, Error>(())
        };
        db.blocking().transact(write).unwrap();
    }
    let (all, last) = (Arc::clone(&keys), SmallBytes::new(&vec![5; LONG]));
    let read = async move |tx: &muesli::Tx| tx.get_many(space, all.iter().cloned()).await;
    let found = db.strict().blocking().transact(read).unwrap();
    assert!(found.iter().all(|value| value.as_ref() == Some(&last)));
    drop(db);
    server.stop().unwrap();
}
