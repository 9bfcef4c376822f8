//! A server opens what an embedded database has left, and the other way round.

use muesli::Connect;
use muesli::server::{Durability, RunningServer, ServerOptions};

use super::*;

fn server_options(path: &Path, protocol: &str) -> ServerOptions {
    ServerOptions {
        listen: crate::cluster::free_addresses(1).remove(0),
        protocol: protocol.to_owned(),
        repositories: 2,
        durability: Durability::Log(path.to_owned()),
        ..ServerOptions::default()
    }
}

fn goes_there_and_back(protocol: &str, loops: usize) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    for round in 0..2 {
        let db = open(&path, protocol, loops);
        let before = 4 * round;
        assert!(round == 0 || read_all(&db).iter().all(|found| *found == Some(before)));
        (0..KEYS).for_each(|key| add(&db, key, 1).unwrap());
        let in_use = RunningServer::start(server_options(&path, protocol), loops).unwrap_err();
        assert!(in_use.to_string().contains("is in use"), "{in_use}");
        drop(db);

        let server = RunningServer::start(server_options(&path, protocol), loops).unwrap();
        let addresses = vec![server.address().to_string()];
        let connect = Connect { addresses, protocol: protocol.to_owned(), ..Connect::default() };
        let client = Db::connect_with(connect).unwrap();
        let found = read_all(&client.strict());
        assert_eq!(found, vec![Some(before + 1); KEYS as usize], "{protocol}, {loops} loops");
        (0..KEYS).for_each(|key| add(&client, key, 3).unwrap());
        client.create_space("made there", SpaceOptions::default()).unwrap();
        let refused = Db::open(options(&path, protocol, loops)).unwrap_err();
        assert!(refused.to_string().contains("is in use"), "{refused}");
        drop(client);
        server.stop().unwrap();
    }
    let db = open(&path, protocol, loops);
    assert_eq!(read_all(&db), vec![Some(8); KEYS as usize], "{protocol}, {loops} loops");
    assert!(db.space("made there").is_ok());
}

#[test]
fn a_server_with_one_loop_and_an_embedded_database_share_a_folder() {
    for protocol in ["score", "two-phase-commit", "granola", "gmu", "alvin"] {
        goes_there_and_back(protocol, 1);
    }
}

#[test]
fn so_do_those_with_several_loops() {
    for protocol in ["score", "granola"] {
        goes_there_and_back(protocol, 2);
    }
}

#[test]
fn a_folder_of_one_server_of_several_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let servers = crate::cluster::start_with(2, |node| ServerOptions {
        repositories: 2,
        durability: Durability::Log(dir.path().join(node.0.to_string())),
        ..ServerOptions::default()
    });
    servers.stop();
    let refused = |node: &str| {
        loop {
            let error = Db::open(options(&dir.path().join(node), "score", 1)).unwrap_err();
            // On a slow disk what a server heard last is still being written when it has ended.
            if !error.to_string().contains("is in use") {
                return error;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    let first = refused("0").to_string();
    assert!(first.contains("the nodes of `servers` were [0, 1] and are [0]"), "{first}");
    let second = refused("1").to_string();
    assert!(second.contains("node `1`, not of `0`"), "{second}");
}
