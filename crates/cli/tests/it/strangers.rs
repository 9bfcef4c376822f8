//! What somebody can do to a cluster who can connect to it and does not know its secret.

use std::time::Duration;

use muesli::{Error, SpaceOptions};
use muesli_cluster::lifecycle::visit::Visit;
use muesli_cluster::wire::control::Control;
use muesli_core::NodeId;

use crate::cluster::{Cluster, muesli, output_text};

const WITHIN: Duration = Duration::from_secs(20);

/// Writes a key and reads it back.
fn serves(cluster: &Cluster, round: u8) {
    let db = cluster.connect(false);
    let space = db.create_space(&format!("space-{round}"), SpaceOptions::default()).unwrap();
    let seen = db.blocking().transact(async move |tx| {
        tx.put(space, "key", vec![round]).await?;
        tx.get(space, "key").await?.ok_or_else(|| Error::rollback("it was just written".to_owned()))
    });
    assert_eq!(seen.unwrap().as_slice(), &[round]);
}

#[test]
fn one_message_does_not_stop_a_cluster() {
    let cluster = Cluster::up(&["--nodes", "3", "--group", "3"]);
    serves(&cluster, 0);
    for address in cluster.addresses() {
        let mut stranger = Visit::begin(&address, WITHIN).unwrap();
        let mut map = stranger.welcome.map.clone();
        map.left = vec![NodeId(0), NodeId(1), NodeId(2)];
        let refused = stranger.ask(&Control::Place(map)).unwrap_err().to_string();
        assert!(refused.contains("may not say where members live"), "{refused}");
        let admin = Visit::begin_as_admin(&address, WITHIN, None).err().unwrap().to_string();
        assert!(admin.contains("secret"), "{admin}");
    }
    serves(&cluster, 1);
    cluster.checked_output(&["kill", "1"]);
    assert!(cluster.checked_output(&["restart", "1"]).contains("serves"));
    serves(&cluster, 2);
}

#[test]
fn changes_need_the_secret_and_questions_do_not() {
    let cluster = Cluster::up(&["--nodes", "3", "--group", "3", "--memory"]);
    let addresses = cluster.addresses().join(",");
    let admin = |arguments: &[&str]| {
        let output = muesli(&[&["admin", "--connect", &addresses], arguments].concat()).output();
        output.unwrap()
    };
    let members = admin(&["members"]);
    assert_eq!(members.status.code(), Some(0), "{}", output_text(&members));
    assert!(output_text(&members).contains("placement"), "{}", output_text(&members));
    for change in [&["shrink", "0", "1"][..], &["drain", "1"], &["leave", "2"]] {
        let refused = admin(change);
        assert_eq!(refused.status.code(), Some(2), "{}", output_text(&refused));
        let why = output_text(&refused);
        assert!(why.contains("takes no changes from here") && why.contains("secret"), "{why}");
    }
    let secret = cluster.secret();
    let allowed = admin(&["shrink", "0", "1", "--secret-file", &secret]);
    assert_eq!(allowed.status.code(), Some(0), "{}", output_text(&allowed));
}

#[test]
fn a_server_without_a_secret_does_not_listen_to_other_machines() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let start = ["start", "--listen", "0.0.0.0:0", "--data-dir", data.to_str().unwrap()];
    let refused = muesli(&start).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let why = output_text(&refused);
    assert!(why.contains("secret_file") && why.contains("trust_network"), "{why}");
    assert!(!data.exists(), "nothing is begun before that");
}
