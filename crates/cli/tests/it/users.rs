//! `muesli user`, and servers for Redis clients that ask who these are.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use redis::Commands;

/// Runs the program with this on its standard input.
fn run(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_muesli"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// A file with an administrator and a reader, whose password is the same.
fn users(folder: &Path) -> String {
    let mut lines = Vec::new();
    for (name, role) in [("ann", "admin"), ("cid", "read")] {
        let output = run(&["user", name, "--role", role], "secret\n");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        lines.extend(output.stdout);
    }
    let path = folder.join("users");
    std::fs::write(&path, lines).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A server, killed when it is dropped, and what it has announced until it serves.
struct Asking(Child, Vec<String>);

impl Asking {
    /// Starts a server in memory, and waits until it tells where its numbers are.
    fn start(further: &[&str]) -> Asking {
        let mut child = Command::new(env!("CARGO_BIN_EXE_muesli"))
            .args(["start", "--durability", "memory", "--metrics", "127.0.0.1:0"])
            .args(further)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut announced = Vec::new();
        let output = BufReader::new(child.stdout.take().unwrap());
        for line in output.lines().map(Result::unwrap) {
            let is_last = line.contains("http://");
            announced.push(line);
            if is_last {
                break;
            }
        }
        Asking(child, announced)
    }

    fn announced(&self, text: &str) -> bool {
        self.1.iter().any(|line| line.contains(text))
    }

    /// What is behind these words in what it has announced.
    fn behind(&self, words: &str) -> String {
        let rest = self.1.iter().find_map(|line| line.split_once(words)).unwrap().1;
        rest.split([';', '/', ' ']).next().unwrap().to_owned()
    }

    fn client(&self, user: &str) -> redis::RedisResult<redis::Connection> {
        let address = self.behind("Redis clients on ").replace("0.0.0.0", "127.0.0.1");
        redis::Client::open(format!("redis://{user}@{address}/"))?.get_connection()
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_with_users_asks_who_connects_and_measures_itself() {
    let folder = tempfile::tempdir().unwrap();
    let users = users(folder.path());
    for (further, warns) in [
        (&["--resp", "0.0.0.0:0", "--users", &users][..], true),
        (&["--resp", "0.0.0.0:0", "--users", &users, "--insecure"], false),
        (&["--resp", "127.0.0.1:0", "--users", &users, "--listen", "127.0.0.1:0"], false),
    ] {
        let server = Asking::start(further);
        assert_eq!(server.announced("in the clear"), warns, "{:?}", server.1);
        let mut admin = server.client("ann:secret").unwrap();
        let _: () = admin.set("a", 1).unwrap();
        let mut reader = server.client("cid:secret").unwrap();
        assert_eq!(reader.get::<_, i64>("a").unwrap(), 1);
        assert_eq!(reader.set::<_, _, ()>("a", 2).unwrap_err().code(), Some("NOPERM"));
        assert!(server.client("cid:wrong").is_err());
        let mut stream = TcpStream::connect(server.behind("http://")).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: m\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("connected_clients"), "{answer}");
    }
}

#[test]
fn without_users_a_server_that_others_reach_is_refused_or_warns() {
    let refused = run(&["start", "--durability", "memory", "--resp", "0.0.0.0:0"], "");
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2));
    assert!(error.contains("`--users FILE`") && error.contains("`--insecure`"), "{error}");
    let server = Asking::start(&["--resp", "0.0.0.0:0", "--insecure"]);
    assert!(server.announced("whoever can connect can do everything"), "{:?}", server.1);
    let server = Asking::start(&["--resp", "127.0.0.1:0"]);
    assert!(!server.announced("warning"), "{:?}", server.1);
}

#[test]
fn what_is_wrong_with_users_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users");
    std::fs::write(&path, "# mine\nann root x\n").unwrap();
    let path = path.to_str().unwrap();
    for (arguments, input, part) in [
        (&["start", "--resp", "127.0.0.1:0", "--users", path][..], "", "users, line 2: `root` is"),
        (&["start", "--users", "/nowhere/users"], "", "/nowhere/users cannot be read"),
        (&["user", "a b"], "secret", "`a b` is no name of a user"),
        (&["user", "ann"], "\n", "a password has 1 to 1024 bytes, and not 0"),
        (&["user", "ann", "--role", "root"], "secret", "root"),
        (&["user"], "secret", "NAME"),
    ] {
        let output = run(arguments, input);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(part), "{arguments:?}: {error}");
    }
}
