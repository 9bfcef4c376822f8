//! A server's folder: one process at a time, one protocol, one version; what does not fit is
//! refused before anything in it is changed.

use std::collections::BTreeMap;
use std::path::Path;

use muesli_cluster::{
    ClusterId, Durability, Server, ServerOptions, StartError, storage::folder::FolderError,
};
use muesli_core::NodeId;

use crate::running::serve;

fn options(path: &Path) -> ServerOptions {
    ServerOptions {
        listen: "127.0.0.1:0".to_owned(),
        durability: Durability::Log(path.to_owned()),
        ..ServerOptions::default()
    }
}

fn refused(options: ServerOptions) -> StartError {
    Server::open(options).err().expect("it was opened")
}

/// All files below a folder, with what they hold.
fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => drop(found.insert(path.display().to_string(), std::fs::read(&path).unwrap())),
        }
    }
    found
}

#[test]
fn a_second_server_on_a_folder_changes_nothing_there() {
    let dir = tempfile::tempdir().unwrap();
    let first = serve(options(dir.path()));
    let before = files(dir.path());
    let error = refused(options(dir.path()));
    assert!(matches!(error, StartError::Folder(FolderError::InUse { .. })), "{error}");
    assert!(error.to_string().contains(&dir.path().display().to_string()), "{error}");
    assert!(files(dir.path()) == before, "the folder was changed");
    first.stop();
    serve(options(dir.path())).stop();
}

#[test]
fn data_of_another_protocol_node_cluster_or_shape_are_refused_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    serve(options(dir.path())).stop();
    let before = files(dir.path());
    let refusal_of = |options: ServerOptions| {
        let error = refused(options).to_string();
        assert!(files(dir.path()) == before, "the folder was changed: {error}");
        error
    };
    for protocol in ["rr", "bumper", "granola"] {
        let error =
            refusal_of(ServerOptions { protocol: protocol.to_owned(), ..options(dir.path()) });
        let both = error.contains("`score`") && error.contains(&format!("`{protocol}`"));
        assert!(both, "{error}");
    }
    let error = refusal_of(ServerOptions { cluster: ClusterId(9), ..options(dir.path()) });
    assert!(error.contains("cluster `1`, not of `9`"), "{error}");
    let error = refusal_of(ServerOptions {
        repositories: 4,
        partitions_per_repository: 2,
        ..options(dir.path())
    });
    assert!(error.contains("`repositories` was 1 and is 4"), "{error}");
    assert!(error.contains("`spread` was 1 and is 2"), "{error}");
    let servers = (0..2).map(|node| (NodeId(node), format!("127.0.0.1:{}", 1 + node))).collect();
    let error = refusal_of(ServerOptions { node: NodeId(1), servers, ..options(dir.path()) });
    assert!(error.contains("node `0`, not of `1`"), "{error}");
    serve(options(dir.path())).stop();
}

#[test]
fn files_of_another_version_are_not_called_damaged_and_stay_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    serve(options(dir.path())).stop();
    for (file, at, version) in [("identity", 8, 9u8), ("map", 8, 9)] {
        let path = dir.path().join(file);
        let whole = std::fs::read(&path).unwrap();
        let mut newer = whole.clone();
        newer[at] = version;
        std::fs::write(&path, &newer).unwrap();
        let before = files(dir.path());
        let error = refused(options(dir.path())).to_string();
        assert!(error.contains("version 9") && error.contains("version 3"), "{error}");
        assert!(error.contains("Nothing is damaged and nothing was changed"), "{error}");
        assert!(!error.contains("empty"), "advice that loses data: {error}");
        assert!(files(dir.path()) == before);
        std::fs::write(&path, &whole).unwrap();
    }
    serve(options(dir.path())).stop();
}
