//! A cluster with a secret: who does not prove it is no server and no administrator, and what
//! changes the cluster is taken from nobody else.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use muesli_cluster::lifecycle::visit::{Visit, VisitError};
use muesli_cluster::spaces::parts::SpaceParts;
use muesli_cluster::wire::challenge::Challenge;
use muesli_cluster::wire::control::Control;
use muesli_cluster::wire::frame::{self, FrameKind};
use muesli_cluster::wire::hello::{Hello, ProcessKind, Welcome};
use muesli_cluster::wire::proof::{self, SecretProof};
use muesli_cluster::wire::refusal::{ConnectionRefusal, Reason};
use muesli_cluster::{Client, ClientOptions, DataId, Server, ServerOptions, StartError};
use muesli_core::{NodeId, RepositoryId, Role, Secret, SpaceOptions, Wire, issuance};

use crate::running::{Running, serve};
use crate::until::until;

const PATIENCE: Duration = Duration::from_secs(20);

fn secret() -> Secret {
    Secret::new(b"known to the members alone").unwrap()
}

fn other() -> Secret {
    Secret::new(b"known to somebody else only").unwrap()
}

/// Two servers, as one that knows of the other is started.
fn one_of_two(node: u32, addresses: &[String], secret: Option<Secret>) -> ServerOptions {
    let servers = (0..).map(NodeId).zip(addresses.iter().cloned()).collect();
    let listen = addresses[node as usize].clone();
    ServerOptions { node: NodeId(node), listen, servers, secret, ..ServerOptions::default() }
}

/// Addresses that are free now, of a loopback address that belongs to this process: no other
/// program takes their ports before the servers do.
fn two_addresses() -> Vec<String> {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let own = std::net::Ipv4Addr::new(127, 1, high, low);
    let bound = [(), ()].map(|()| TcpListener::bind((own, 0)).unwrap());
    bound.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect()
}

fn lone(secret: Option<Secret>) -> ServerOptions {
    ServerOptions { listen: "127.0.0.1:0".to_owned(), secret, ..ServerOptions::default() }
}

fn send_frame(stream: &mut TcpStream, kind: FrameKind, body: &impl Wire) {
    let mut out = Vec::new();
    let start = frame::begin(kind, &mut out);
    body.encode(&mut out);
    frame::end(start, &mut out);
    stream.write_all(&out).unwrap();
}

/// The next frame that is no sign of life.
fn receive(stream: &mut TcpStream) -> (FrameKind, Vec<u8>) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut bytes = Vec::new();
    loop {
        if let Some(found) = frame::next(&bytes, 1 << 20).unwrap() {
            if found.kind != FrameKind::Alive {
                return (found.kind, found.body.to_vec());
            }
            bytes.clear();
        }
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        bytes.push(byte[0]);
    }
}

fn refusal(stream: &mut TcpStream) -> ConnectionRefusal {
    let (kind, body) = receive(stream);
    assert_eq!(kind, FrameKind::Refusal);
    ConnectionRefusal::decode_all(&body).unwrap()
}

fn hello(process_kind: ProcessKind) -> Hello {
    let protocol = "score".to_owned();
    Hello { protocol, process_kind, node: NodeId(1), data_id: DataId(7), ..Hello::default() }
}

#[test]
fn servers_and_administrators_prove_the_secret_and_a_proof_holds_once() {
    let addresses = two_addresses();
    let server = serve(one_of_two(0, &addresses, Some(secret())));
    for process_kind in [ProcessKind::Server, ProcessKind::Admin] {
        // Without a secret.
        let mut stream = TcpStream::connect(server.address).unwrap();
        send_frame(&mut stream, FrameKind::Hello, &hello(process_kind));
        let refused = refusal(&mut stream);
        assert_eq!(refused.reason, Reason::Unproven, "{refused}");
        assert!(refused.text.contains(process_kind.name()), "{refused}");
        assert!(refused.text.contains("secret_file"), "{refused}");
        // With another one, and without waiting for the challenge.
        let mut stream = TcpStream::connect(server.address).unwrap();
        let hello_of = Hello { proves: true, challenge: Challenge::draw(), ..hello(process_kind) };
        send_frame(&mut stream, FrameKind::Hello, &hello_of);
        let (kind, body) = receive(&mut stream);
        assert_eq!(kind, FrameKind::Challenge);
        let challenge = Challenge::decode_all(&body).unwrap();
        let tag = proof::of_dialler(&other(), &hello_of, challenge);
        send_frame(&mut stream, FrameKind::Proof, &SecretProof { tag });
        assert_eq!(refusal(&mut stream).reason, Reason::Unproven);
        // With the right one.
        let mut stream = TcpStream::connect(server.address).unwrap();
        send_frame(&mut stream, FrameKind::Hello, &hello_of);
        let challenge = Challenge::decode_all(&receive(&mut stream).1).unwrap();
        let tag = proof::of_dialler(&secret(), &hello_of, challenge);
        send_frame(&mut stream, FrameKind::Proof, &SecretProof { tag });
        let (kind, body) = receive(&mut stream);
        assert_eq!(kind, FrameKind::Welcome);
        let welcome = Welcome::decode_all(&body).unwrap();
        assert!(proof::is_signed(&secret(), hello_of.challenge, &welcome));
        // What was overheard is of no use on another connection.
        let mut stream = TcpStream::connect(server.address).unwrap();
        send_frame(&mut stream, FrameKind::Hello, &hello_of);
        receive(&mut stream);
        send_frame(&mut stream, FrameKind::Proof, &SecretProof { tag });
        assert_eq!(refusal(&mut stream).reason, Reason::Unproven);
    }
    assert_eq!(server.status("unproven"), 6);
    server.stop();
}

#[test]
fn administrators_and_servers_make_sure_of_each_other() {
    let server = serve(lone(Some(secret())));
    let address = server.address.to_string();
    let admin = |secret: Option<&Secret>| Visit::begin_as_admin(&address, PATIENCE, secret);
    assert!(admin(Some(&secret())).is_ok());
    assert!(matches!(admin(None), Err(VisitError::Refused(why)) if why.contains("secret_file")));
    assert!(matches!(admin(Some(&other())), Err(VisitError::Refused(_))));
    server.stop();
    let server = serve(lone(None));
    let address = server.address.to_string();
    let without = Visit::begin_as_admin(&address, PATIENCE, Some(&secret()));
    assert!(without.is_err_and(|error| error.to_string().contains("has no secret")));
    assert!(Visit::begin_as_admin(&address, PATIENCE, None).is_ok());
    server.stop();
}

#[test]
fn only_administrators_say_where_members_live() {
    let server = serve(lone(Some(secret())));
    let address = server.address.to_string();
    let mut probe = Visit::begin(&address, PATIENCE).unwrap();
    let request = Control::Place(probe.welcome.map.clone());
    let refused = probe.ask(&request).unwrap_err().to_string();
    assert!(refused.contains("a probe may not say where members live"), "{refused}");
    // A client may not, either.
    let mut client = TcpStream::connect(server.address).unwrap();
    send_frame(
        &mut client,
        FrameKind::Hello,
        &Hello { node: NodeId(1 << 31), ..hello(ProcessKind::Client) },
    );
    assert_eq!(receive(&mut client).0, FrameKind::Welcome);
    send_frame(&mut client, FrameKind::Control, &request);
    assert_eq!(refusal(&mut client).reason, Reason::Unproven);
    assert_eq!(server.status("unproven"), 2);
    let mut admin = Visit::begin_as_admin(&address, PATIENCE, Some(&secret())).unwrap();
    assert!(matches!(admin.ask(&request), Ok(Control::Members { .. })));
    // Not what would stop everybody: its members live there.
    let mut all_gone = admin.welcome.map.clone();
    all_gone.left = vec![NodeId(0)];
    assert!(admin.ask(&Control::Place(all_gone)).is_err());
    assert_eq!(server.status("ready"), 1);
    server.stop();
}

#[test]
fn probes_make_no_spaces_and_clients_make_them_within_limits() {
    let server = serve(ServerOptions { clients_prove: true, ..lone(Some(secret())) });
    let address = server.address.to_string();
    let space = SpaceParts { name: "s".to_owned(), ..SpaceParts::default() };
    for request in [Control::CreateSpace { request: 1, space }, Control::SpacesMade(u64::MAX)] {
        let mut probe = Visit::begin(&address, PATIENCE).unwrap();
        let refused = probe.ask(&request).unwrap_err().to_string();
        assert!(refused.contains("a probe may not make spaces"), "{refused}");
        let mut admin = Visit::begin_as_admin(&address, PATIENCE, Some(&secret())).unwrap();
        let refused = admin.ask(&request).unwrap_err().to_string();
        assert!(refused.contains("an administrator may not make spaces"), "{refused}");
    }
    assert_eq!(server.status("unproven"), 4);
    let addresses = vec![address];
    let options = ClientOptions { addresses, secret: Some(secret()), ..ClientOptions::default() };
    let client = Client::connect(options.clone()).unwrap();
    let long = client.create_space(&"n".repeat(17 << 20), &SpaceOptions::default());
    let refused = long.unwrap_err().to_string();
    assert!(refused.contains("a name of 17825792 bytes is over the limit of 255"), "{refused}");
    assert_eq!(client.create_space("s", &SpaceOptions::default()), Ok(()));
    assert_eq!(client.catalog().spaces().len(), 1);
    // Whoever comes next is told the map.
    assert_eq!(Client::connect(options).unwrap().catalog().spaces().len(), 1);
    client.close();
    server.stop();
}

#[test]
fn a_server_with_another_secret_does_not_come_in_and_one_without_is_told() {
    let addresses = two_addresses();
    let first = serve(one_of_two(0, &addresses, Some(secret())));
    // It is refused; and what refuses it has not proven that it may, so it goes on looking.
    let wrong = serve(one_of_two(1, &addresses, Some(other())));
    until("the wrong secret is refused", || first.status("unproven") >= 2);
    assert_eq!((first.status("ready"), wrong.status("ready")), (0, 0));
    wrong.stop();
    let without = serve(one_of_two(1, &addresses, None));
    let ended = without.thread.join().unwrap().unwrap_err().to_string();
    assert!(ended.contains("secret_file"), "{ended}");
    let right = serve(one_of_two(1, &addresses, Some(secret())));
    until("both are ready", || first.status("ready") + right.status("ready") == 2);
    right.stop();
    first.stop();
}

#[test]
fn clients_are_asked_for_the_secret_where_the_server_is_told_to() {
    let open = serve(lone(Some(secret())));
    let connect = |server: &Running, secret: Option<Secret>| {
        let addresses = vec![server.address.to_string()];
        let connect_within = Duration::from_secs(2);
        Client::connect(ClientOptions { addresses, secret, connect_within, ..Default::default() })
    };
    // Nobody has to, but who does is sure of the server.
    assert!(connect(&open, None).is_ok());
    assert!(connect(&open, Some(secret())).is_ok());
    assert!(connect(&open, Some(other())).is_err());
    open.stop();
    let closed = serve(ServerOptions { clients_prove: true, ..lone(Some(secret())) });
    assert!(connect(&closed, Some(secret())).is_ok());
    let refused = connect(&closed, None).err().unwrap().to_string();
    assert!(refused.contains("a client has to prove"), "{refused}");
    closed.stop();
}

#[test]
fn a_client_does_not_speak_for_a_repository() {
    let server = serve(lone(Some(secret())));
    let mut client = TcpStream::connect(server.address).unwrap();
    send_frame(
        &mut client,
        FrameKind::Hello,
        &Hello { node: NodeId(1 << 31), ..hello(ProcessKind::Client) },
    );
    assert_eq!(receive(&mut client).0, FrameKind::Welcome);
    // With a proof of nothing, to repository 0, from repository 0: some message about space 9.
    let mut request = Vec::new();
    issuance::Proof::default().encode(&mut request);
    Role::Repository(RepositoryId(0)).encode(&mut request);
    Role::Repository(RepositoryId(0)).encode(&mut request);
    request.extend([&[0; 18][..], &[1, 0, 0, 0, 9, 0, 0, 0, 0, 0]].concat());
    let mut out = Vec::new();
    let start = frame::begin(FrameKind::Messages, &mut out);
    out.extend_from_slice(&request);
    frame::end(start, &mut out);
    client.write_all(&out).unwrap();
    send_frame(&mut client, FrameKind::Control, &Control::AskStatus);
    let (kind, body) = receive(&mut client);
    assert_eq!(kind, FrameKind::Control);
    let Ok(Control::Status(lines)) = Control::decode_all(&body) else { panic!("no status") };
    let of = |name: &str| lines.iter().find(|(it, _)| it == name).map(|(_, value)| *value);
    assert_eq!(of("unproven"), Some(1), "{lines:?}");
    server.stop();
}

#[test]
fn without_a_secret_only_the_loopback_interface_is_listened_on() {
    let anywhere = |secret, trusts_network| {
        let listen = "0.0.0.0:0".to_owned();
        Server::open(ServerOptions { listen, trusts_network, ..lone(secret) })
    };
    let error = anywhere(None, false).err().unwrap();
    assert!(matches!(error, StartError::Unprotected { .. }), "{error}");
    let error = error.to_string();
    assert!(error.contains("secret_file") && error.contains("trust_network"), "{error}");
    assert!(anywhere(Some(secret()), false).is_ok());
    assert!(anywhere(None, true).is_ok());
    let clients = Server::open(ServerOptions { clients_prove: true, ..lone(None) });
    assert!(matches!(clients, Err(StartError::Invalid(broken)) if broken.len() == 1));
}
