//! Each program is run as a newcomer would run it, and ends well.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// What the program printed, with these arguments.
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect("it can be run");
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{program}: {}\n{out}{err}", output.status);
    out
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A program that stays, and is ended with the test.
struct Stays(Child);

impl Drop for Stays {
    fn drop(&mut self) {
        let _ = self.0.kill(); // It may have ended.
        let _ = self.0.wait();
    }
}

#[test]
fn the_bank_adds_up() {
    let out = run(env!("CARGO_BIN_EXE_bank"), &[]);
    assert!(out.contains("4 tellers made 2000 transfers"), "{out}");
}

#[test]
fn sessions_are_kept_for_the_web() {
    let out = run(env!("CARGO_BIN_EXE_web_sessions"), &[]);
    assert!(out.contains("ann logged in, came twice, and logged out"), "{out}");
}

#[test]
fn jobs_are_done_once() {
    let out = run(env!("CARGO_BIN_EXE_job_queue"), &[]);
    assert!(out.contains("4 workers did 300 jobs, the last of them: send letter 299"), "{out}");
}

#[test]
fn members_of_a_map_are_alike() {
    let out = run(env!("CARGO_BIN_EXE_replicated_map"), &[]);
    assert!(out.contains("three members hold the same 6 keys"), "{out}");
}

#[test]
fn a_client_counts_on_a_server() {
    let out = run(env!("CARGO_BIN_EXE_cluster_client"), &[]);
    assert!(out.contains("counted 101 times"), "{out}");
}

#[test]
fn the_simulated_shop_is_sound_and_repeats_itself() {
    let all = run(env!("CARGO_BIN_EXE_simulated_shop"), &[]);
    let third = run(env!("CARGO_BIN_EXE_simulated_shop"), &["3"]);
    assert!(third.contains("seed 3: horizon"), "{third}");
    assert!(all.contains(&third), "{third}\nis not in\n{all}");
}

#[test]
fn the_inventory_refuses_what_is_not_there() {
    let out = run(env!("CARGO_BIN_EXE_inventory"), &[]);
    assert!(out.contains("refused: only 1 inks left") && out.ends_with("pens: 7\n"), "{out}");
}

/// The server of one's own procedures is stopped by SIGTERM, cleanly, and has its data when it is
/// started again.
#[test]
fn the_inventory_server_stops_on_sigterm_and_keeps_its_data() {
    let folder = std::env::temp_dir().join(format!("muesli-inventory-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for pens in [7, 14] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_inventory"));
        let data = folder.to_str().expect("the folder's name is text");
        command.args(["serve", data, "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut server = Stays(command.spawn().expect("it can be run"));
        let mut lines = BufReader::new(server.0.stdout.take().expect("piped")).lines();
        let first = lines.next().expect("a line").expect("text");
        let address = first.strip_prefix("listening on ").expect("it tells where it listens");
        let ordered = run(env!("CARGO_BIN_EXE_inventory"), &["order", address]);
        assert!(ordered.ends_with(&format!("pens: {pens}\n")), "{ordered}");
        let pid = server.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success());
        let last = lines.map_while(Result::ok).last();
        assert_eq!(last.as_deref(), Some("stopped"));
        assert!(server.0.wait().expect("it ends").success());
    }
    std::fs::remove_dir_all(&folder).expect("it is ours");
}
