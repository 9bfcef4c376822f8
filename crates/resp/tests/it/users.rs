//! Users: who is let in, and what each may do.

use std::time::Duration;

use muesli::Options;
use muesli_resp::{RespOptions, RespUsers, UserRole};
use redis::Commands;

use crate::client::{Client, Server};

const NO_AUTH: &str = "NOAUTH Authentication required.";
const WRONG: &str = "WRONGPASS invalid username-password pair or user is disabled.";

/// A server with a user of each role, whose passwords are their names turned round, and
/// `default`, with `none`.
fn server() -> Server {
    let roles = [("nna", UserRole::Admin), ("bob", UserRole::Write), ("cid", UserRole::Read)];
    let mut lines: Vec<_> = roles
        .into_iter()
        .map(|(name, role)| {
            let password: String = name.chars().rev().collect();
            RespUsers::line(name, role, password.as_bytes()).unwrap()
        })
        .collect();
    lines.push(RespUsers::line("default", UserRole::Read, b"none").unwrap());
    let users = Some(RespUsers::parse(&lines.join("\n"), "users").unwrap());
    Server::with(Options::default(), &RespOptions { users, ..RespOptions::default() })
}

fn client(server: &Server, name: &str) -> Client {
    let (mut client, password) = (server.client(), name.chars().rev().collect::<String>());
    assert_eq!(client.ask(&format!("AUTH {name} {password}")), "OK");
    client
}

#[test]
fn nothing_is_done_for_who_has_not_said_who_it_is() {
    let server = server();
    let mut client = server.client();
    for command in ["GET a", "PING", "SET a 1", "MULTI", "EXEC", "SUBSCRIBE c", "INFO", "WATCH a"] {
        assert_eq!(client.ask(command), NO_AUTH, "{command}");
    }
    for command in ["CLIENT LIST", "COMMAND", "EVAL x 0", "SELECT 1", "RESET x", "BLPOP a 0"] {
        let found = client.ask(command);
        assert!(found == NO_AUTH || found.starts_with("ERR wrong number"), "{command}: {found}");
    }
    assert!(client.ask("HELLO").starts_with("NOAUTH HELLO must be called with the client already"));
    assert!(client.ask("HELLO 3").starts_with("NOAUTH HELLO"));
    client.play(&format!(
        "AUTH default wrong -> {WRONG}
         AUTH nobody none -> {WRONG}
         AUTH wrong -> {WRONG}
         AUTH (server) none -> {WRONG}
         HELLO 3 AUTH bob none -> {WRONG}
         AUTH a b c -> ERR syntax error
         GET a -> {NO_AUTH}
         RESET -> RESET
         AUTH none -> OK
         ACL WHOAMI -> default
         GET a -> nil
         AUTH bob none -> {WRONG}
         ACL WHOAMI -> default
         AUTH bob bob -> OK
         ACL WHOAMI -> bob
         SET a 1 -> OK
         RESET -> RESET
         GET a -> {NO_AUTH}
         QUIT -> OK"
    ));
    assert_eq!(client.reply(), "closed");
    let mut client = server.client();
    assert!(client.ask("HELLO 3 AUTH nna ann SETNAME me").starts_with("{server redis version"));
    client.play("CLIENT GETNAME -> me\nHGETALL none -> {}");
    let found = client.ask("CLIENT LIST");
    assert!(found.contains(" name=me ") && found.contains(" user=nna "), "{found}");
    assert!(client.ask("CLIENT INFO").contains(" user=nna "));
}

#[test]
fn without_users_passwords_are_told_to_be_of_no_use() {
    let server = Server::start();
    server.client().play(
        "AUTH secret -> ERR AUTH <password> called without any password configured for the default \
         user. Are you sure your configuration is correct?
         AUTH default any -> OK
         ACL WHOAMI -> default
         ACL USERS -> [default]
         ACL LIST -> [user default on nopass ~* &* +@all]
         FLUSHALL -> OK",
    );
}

#[test]
fn roles_are_kept_to() {
    let server = server();
    let refused = |name: &str, command: &str| {
        format!("NOPERM User {name} has no permissions to run the '{command}' command")
    };
    let mut reader = client(&server, "cid");
    let mut writer = client(&server, "bob");
    let mut admin = client(&server, "nna");
    admin.play("CONFIG SET timeout 0 -> OK\nFLUSHALL -> OK\nSWAPDB 0 1 -> OK");
    assert_eq!(
        admin.ask("ACL LIST"),
        "[user nna on ~* &* +@all user bob on ~* &* -@all +@read +@write user cid on ~* &* \
         -@all +@read user default on ~* &* -@all +@read]"
    );
    assert!(admin.ask("ACL SETUSER x").starts_with("ERR users are those of the file"));
    assert_eq!(admin.ask("ACL CAT"), "[read write admin]");
    writer.play(
        "SET a 1 -> OK\nPUBLISH c x -> 0\nCLIENT SETNAME w -> OK\nCONFIG GET save -> [save ]",
    );
    for (command, name) in [
        ("FLUSHALL", "flushall"),
        ("CONFIG SET timeout 0", "config|set"),
        ("CLIENT KILL ID 1", "client|kill"),
        ("CLIENT LIST", "client|list"),
        ("SCRIPT FLUSH", "script|flush"),
        ("FUNCTION FLUSH", "function|flush"),
        ("ACL USERS", "acl|users"),
        ("SWAPDB 0 1", "swapdb"),
        ("SHUTDOWN", "shutdown"),
    ] {
        assert_eq!(writer.ask(command), refused("bob", name), "{command}");
        assert_eq!(reader.ask(command), refused("cid", name), "{command}");
    }
    for (command, name) in
        [("SET a 2", "set"), ("BLPOP l 0", "blpop"), ("PUBLISH c x", "publish"), ("SORT a", "sort")]
    {
        assert_eq!(reader.ask(command), refused("cid", name), "{command}");
    }
    reader.play("GET a -> 1\nTTL a -> -1\nCLIENT SETNAME r -> OK\nDBSIZE -> 1");
}

#[test]
fn pipelines_are_judged_command_by_command() {
    let server = server();
    let mut client = server.client();
    client
        .send("GET a\r\nSET a 1\r\nAUTH cid dic\r\nGET a\r\nSET a 2\r\nGET a\r\nAUTH bob bob\r\n");
    client.send("SET a 3\r\nGET a\r\nRESET\r\nGET a\r\n");
    let no_perm = "NOPERM User cid has no permissions to run the 'set' command";
    for expected in
        [NO_AUTH, NO_AUTH, "OK", "nil", no_perm, "nil", "OK", "OK", "3", "RESET", NO_AUTH]
    {
        assert_eq!(client.reply(), expected);
    }
}

#[test]
fn what_comes_behind_a_password_may_be_long() {
    let server = server();
    let mut client = server.client();
    let value = "v".repeat(3 << 20);
    let set = format!("*3\r\n$3\r\nSET\r\n$1\r\na\r\n${}\r\n{value}\r\n", value.len());
    client.send(format!("AUTH bob bob\r\n{set}STRLEN a\r\n"));
    for expected in ["OK", "OK", "3145728"] {
        assert_eq!(client.reply(), expected);
    }
    // Who has not said who it is has narrow limits.
    for sent in ["*3\r\n$4\r\nAUTH\r\n$16385\r\n".to_owned(), "*11\r\n".to_owned()] {
        let mut stranger = server.client();
        stranger.send(sent);
        assert!(stranger.reply().starts_with("ERR Protocol error: invalid "));
        assert_eq!(stranger.reply(), "closed");
    }
    client.play("RESET -> RESET");
    client.send("*11\r\n");
    assert_eq!(client.reply(), "ERR Protocol error: invalid multibulk length");
}

#[test]
fn a_transaction_with_a_command_that_is_forbidden_is_not_run() {
    let server = server();
    let mut reader = client(&server, "cid");
    reader.play(
        "WATCH a -> OK
         MULTI -> OK
         GET a -> QUEUED
         SET a 1 -> NOPERM User cid has no permissions to run the 'set' command
         AUTH bob bob -> ERR Command not allowed inside a transaction
         EXEC -> EXECABORT Transaction discarded because of previous errors.
         MULTI -> OK
         GET a -> QUEUED
         EXEC -> [nil]
         MULTI -> OK
         RESET -> RESET
         EXEC -> NOAUTH Authentication required.",
    );
}

#[test]
fn listeners_have_said_who_they_are() {
    let server = server();
    let (mut listener, mut stranger) = (client(&server, "cid"), server.client());
    let mut writer = client(&server, "bob");
    listener.play("SUBSCRIBE c -> [subscribe c 1]");
    stranger.play(&format!("SUBSCRIBE c -> {NO_AUTH}\nPSUBSCRIBE * -> {NO_AUTH}"));
    writer.play("PUBLISH c x -> 1");
    assert_eq!(listener.reply(), "[message c x]");
    listener.play("RESET -> RESET");
    writer.play("PUBLISH c x -> 0");
}

#[test]
fn others_are_served_while_passwords_are_checked_and_so_many_wait() {
    let server = server();
    let mut writer = client(&server, "bob");
    let mut guessers: Vec<_> = (0..150).map(|_| server.client()).collect();
    for (at, guesser) in guessers.iter_mut().enumerate() {
        guesser.begin(&format!("AUTH bob {at}"));
    }
    for at in 0..20 {
        writer.play(&format!("SET a {at} -> OK"));
    }
    // Its password was right before, and is not checked again.
    client(&server, "bob").play("GET a -> 19");
    let waiting = guessers.iter_mut().filter_map(|it| it.comes_within(Duration::from_millis(1)));
    assert!(waiting.filter(|comes| !comes).count() > 0, "they have not waited");
    let replies: Vec<_> = guessers.iter_mut().map(Client::reply).collect();
    let is_busy = |it: &&String| it.starts_with("ERR too many passwords are being checked");
    let busy = replies.iter().filter(is_busy).count();
    let wrong = replies.iter().filter(|it| *it == WRONG).count();
    assert!(busy > 0 && wrong >= 64 && busy + wrong == 150, "{busy} {wrong}");
    guessers[0].play("AUTH bob bob -> OK\nGET a -> 19");
}

#[test]
fn the_crate_redis_says_who_it_is() -> redis::RedisResult<()> {
    let server = server();
    for protocol in ["resp2", "resp3"] {
        let open = |user: &str| {
            let url = format!("redis://{user}@{}/?protocol={protocol}", server.address());
            redis::Client::open(url)?.get_connection()
        };
        let mut writer = open("bob:bob")?;
        let _: () = writer.set("a", 1)?;
        let mut reader = open("cid:dic")?;
        assert_eq!(reader.get::<_, i64>("a")?, 1);
        let refused = reader.set::<_, _, ()>("a", 2).unwrap_err();
        assert_eq!(refused.code(), Some("NOPERM"));
        assert_eq!(open(":none")?.get::<_, i64>("a")?, 1);
        let refused = open("bob:wrong").err().unwrap();
        let text = refused.to_string();
        assert!(text.contains("WRONGPASS") || text.contains("authentication failed"), "{text}");
        let mut stranger =
            redis::Client::open(format!("redis://{}/", server.address()))?.get_connection()?;
        let refused = stranger.get::<_, i64>("a").unwrap_err();
        assert_eq!(refused.code(), Some("NOAUTH"));
    }
    Ok(())
}

#[cfg(feature = "scripts")]
#[test]
fn scripts_may_do_what_their_client_may() {
    let server = server();
    let refused = "ERR The user executing the script can't run this command or subcommand";
    let eval = |client: &mut Client, code: &str| client.ask_list(&["EVAL", code, "0"]);
    let mut reader = client(&server, "cid");
    let mut writer = client(&server, "bob");
    let mut admin = client(&server, "nna");
    let set = "return redis.call('set', 'a', '1')";
    let found = eval(&mut reader, set);
    assert!(found.contains(&refused[4..]), "{found}");
    assert_eq!(eval(&mut writer, set), "OK");
    assert_eq!(eval(&mut reader, "return redis.call('get', 'a')"), "1");
    let caught = "local it = redis.pcall('del', 'a') return it.err or 'done'";
    assert!(eval(&mut reader, caught).contains("can't run this command"));
    assert!(eval(&mut reader, "return redis.call('publish', 'c', 'x')").contains("can't run"));
    assert!(eval(&mut writer, "return redis.call('flushall')").contains("can't run this command"));
    writer.play("GET a -> 1");
    assert_eq!(eval(&mut admin, "return redis.call('flushall')"), "OK");
    writer.play("GET a -> nil");
    let check = "return redis.acl_check_cmd('set', 'a', '1') and 1 or 0";
    assert_eq!(eval(&mut reader, check), "0");
    assert_eq!(eval(&mut writer, check), "1");
    // Who wrote a library is no matter: its functions may do what their caller may.
    let code = "#!lua name=l\nredis.register_function('f', function() return redis.call('set', \
        'a', '1') end)";
    assert_eq!(admin.ask_list(&["FUNCTION", "LOAD", code]), "l");
    assert!(reader.ask("FCALL f 0").contains("can't run this command"));
    writer.play("FCALL f 0 -> OK");
    assert!(writer.ask_list(&["FUNCTION", "LOAD", code]).starts_with("NOPERM User bob"));
}
