//! A short torture of real processes; the long one is run by hand.

use std::process::Command;

#[test]
fn nothing_is_lost_in_a_few_seconds_of_faults() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_muesli"));
    let output = command.args(["torture", "--minutes", "0.1", "--seed", "6"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said} {error}");
    assert!(said.contains("every history holds"), "{said}");
    assert!(!said.contains(" 0 committed"), "{said}");
}
